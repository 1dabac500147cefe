//! The proxy's own responses, and the graceful end of a connection.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use hyper::ext::ReasonPhrase;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::decision::{EgressVerdict, ProxyDecision};

/// How long, and how much, is still read after a response, so that the client sees it.
const LINGER: Duration = Duration::from_secs(3);
const MAX_LINGER_BYTES: u64 = 64 << 10;

const REASON_HEADER: HeaderName = HeaderName::from_static("x-herma-egress");

/// The response to a request that does not pass.
pub(super) fn refusal(decided: &ProxyDecision) -> Response<Full<Bytes>> {
    let (status, outcome, reason, next_step) = match decided.verdict {
        EgressVerdict::Denied(reason) => (reason.status(), "denied", reason.code(), reason.next_step()),
        EgressVerdict::Failed(fault) => (fault.status(), "could not reach", fault.code(), "Try again later."),
        // Nothing refuses an allowed request.
        EgressVerdict::Allowed => (StatusCode::OK, "allowed", "allowed", ""),
    };
    let request = match (decided.method.as_str(), decided.host.as_str()) {
        ("", _) => "the request".to_owned(),
        (method, host) => format!("{method} {host}:{}", decided.port),
    };
    let detail = match decided.detail.as_str() {
        "" => String::new(),
        detail => format!(" ({detail})"),
    };
    let body = format!("herma egress {outcome} {request}: {reason}{detail}. {next_step}\n");
    // A response to HEAD has no body.
    let body = if decided.method == "HEAD" { String::new() } else { body };
    response(status, reason, body)
}

/// The response to an allowed request to which the server gave none that can be forwarded.
pub(super) fn no_response() -> Response<Full<Bytes>> {
    let body = "herma egress got no valid HTTP/1.1 response from the server. Try again later.\n";
    response(StatusCode::BAD_GATEWAY, "no_response", body.to_owned())
}

/// The response that turns a connection into a tunnel.
pub(super) fn established() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    response.extensions_mut().insert(ReasonPhrase::from_static(b"Connection established"));
    response
}

fn response(status: StatusCode, reason: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(REASON_HEADER, HeaderValue::from_static(reason));
    // Many clients show only the status line.
    let phrase = format!("{} (herma egress: {reason})", status.canonical_reason().unwrap_or_default());
    if let Ok(phrase) = ReasonPhrase::try_from(phrase) {
        response.extensions_mut().insert(phrase);
    }
    response
}

/// Writes the last bytes of a connection and closes it gracefully: closing with unread bytes would reset it, and the client
/// might never see the response.
pub(super) async fn finish(client: &mut (impl AsyncRead + AsyncWrite + Unpin), bytes: &[u8]) {
    let write = async {
        client.write_all(bytes).await?;
        client.shutdown().await?;
        tokio::io::copy(&mut client.take(MAX_LINGER_BYTES), &mut tokio::io::sink()).await
    };
    // A client that does not read its response gets none.
    let _ = tokio::time::timeout(LINGER, write).await;
}
