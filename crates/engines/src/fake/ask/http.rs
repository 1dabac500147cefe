//! One HTTP request over the router's socket.

use herma_net::client;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Request};

use super::Router;

/// The largest answer that is read.
const MAX_BYTES: usize = 8 << 20;

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Sends the body and reads the answer to its end.
pub(super) fn post(router: &Router, path: &str, body: &[u8]) -> Result<Answer, String> {
    let bearer = format!("Bearer {}", router.token.expose());
    let mut bearer =
        HeaderValue::try_from(bearer).map_err(|_| "the token cannot be sent in a header".to_owned())?;
    bearer.set_sensitive(true);
    let request = Request::post(path)
        .header(HOST, "herma")
        .header(AUTHORIZATION, bearer)
        .header(CONTENT_TYPE, "application/json")
        .header("anthropic-version", "2023-06-01")
        .header(CONNECTION, "close")
        .body(body.to_vec().into())
        .map_err(|error| error.to_string())?;
    let response = client::send(&router.socket, request, MAX_BYTES).map_err(|error| error.to_string())?;
    Ok(Answer { status: response.status().as_u16(), body: response.into_body().into() })
}
