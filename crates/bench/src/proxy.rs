//! The hidden `herma-bench __bench-proxy`: a proxy on the HTTP library hyper that parses nothing. It is the floor
//! that the router is measured against.

use std::ffi::OsString;
use std::io;

use http::uri::{Authority, Scheme, Uri};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;

use crate::serve::{argument, serve};

/// The name of the hidden subcommand. A port and the address of the upstream follow it.
pub(crate) const SUBCOMMAND: &str = "__bench-proxy";

/// Passes on until the process is killed; returns only if that fails. `args` is what follows the subcommand.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> io::Error {
    match pass_on(&mut args) {
        Err(error) => error,
        Ok(never) => match never {},
    }
}

fn pass_on(args: &mut impl Iterator<Item = OsString>) -> io::Result<std::convert::Infallible> {
    let port = argument(args, "a port")?;
    let upstream: Authority = argument(args, "the address of the upstream")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let service = service_fn(move |request| forward(client.clone(), upstream.clone(), request));
    runtime.block_on(serve(port, service))
}

async fn forward(
    client: Client<HttpConnector, Incoming>,
    upstream: Authority,
    mut request: Request<Incoming>,
) -> Result<Response<Incoming>, Error> {
    let mut to = std::mem::take(request.uri_mut()).into_parts();
    to.scheme = Some(Scheme::HTTP);
    to.authority = Some(upstream);
    *request.uri_mut() = Uri::from_parts(to).unwrap_or_default();
    client.request(request).await
}
