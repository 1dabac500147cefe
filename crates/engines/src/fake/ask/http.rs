//! One HTTP request over the router's socket.

use herma_net::client;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Request};

use super::Router;
use crate::fake::call_error::CallError;

/// The largest answer that is read.
const MAX_BYTES: usize = 8 << 20;

/// The response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HttpResponse {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Sends the body and reads the answer to its end.
pub(super) fn post(router: &Router, path: &str, body: &[u8]) -> Result<HttpResponse, CallError> {
    let bearer = format!("Bearer {}", router.token.expose());
    let mut bearer = HeaderValue::try_from(bearer).map_err(CallError::Token)?;
    bearer.set_sensitive(true);
    let request = Request::post(path)
        .header(HOST, "herma")
        .header(AUTHORIZATION, bearer)
        .header(CONTENT_TYPE, "application/json")
        .header("anthropic-version", "2023-06-01")
        .header(CONNECTION, "close")
        .body(body.to_vec().into())?;
    let response = client::send(&router.socket, request, MAX_BYTES)?;
    Ok(HttpResponse { status: response.status().as_u16(), body: response.into_body().into() })
}
