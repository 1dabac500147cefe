//! The hidden `herma-bench __bench-upstream`: the model that every contender is measured in front of. It answers
//! with fixed bytes, so that it costs much less than what is measured.

mod answer;

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};

use self::answer::{Answer, Canned};
use crate::serve::{argument, serve};
use crate::wire;

/// The name of the hidden subcommand. A port follows it.
pub(crate) const SUBCOMMAND: &str = "__bench-upstream";

/// Answers until the process is killed; returns only if that fails. `args` is what follows the subcommand.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> io::Error {
    let served = argument(&mut args, "a port").and_then(|port| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let canned = Canned::new();
        let service = service_fn(move |request| reply(canned.clone(), request));
        runtime.block_on(serve(port, service))
    });
    match served {
        Err(error) => error,
        Ok(never) => match never {},
    }
}

async fn reply(canned: Canned, request: Request<Incoming>) -> Result<Response<Answer>, Infallible> {
    // Some gateways put a path of their own in front.
    let is_chat = request.uri().path().ends_with("/chat/completions");
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
    let Some(body) = body.ok().filter(|_| is_chat) else {
        let mut refused = Response::new(Answer::nothing());
        *refused.status_mut() = StatusCode::NOT_FOUND;
        return Ok(refused);
    };
    let (kind, answer) = match wire::asked(&body) {
        None => ("application/json", canned.whole()),
        Some(shape) => ("text/event-stream; charset=utf-8", canned.stream(shape)),
    };
    let mut response = Response::new(answer);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}
