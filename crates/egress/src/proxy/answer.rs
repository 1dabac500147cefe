//! The response to a denied request.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::decision::{EgressVerdict, ProxyDecision};

/// How long, and how much, is still read after a response, so that the client sees it.
const LINGER: Duration = Duration::from_secs(3);
const MOST_LINGER: u64 = 64 << 10;

/// The response to a request that does not pass.
pub(super) fn refusal(decided: &ProxyDecision) -> Vec<u8> {
    let (status, done, word, next_step) = match decided.verdict {
        EgressVerdict::Allowed => return Vec::new(),
        EgressVerdict::Denied(reason) => (reason.status(), "denied", reason.word(), reason.next_step()),
        EgressVerdict::Failed(fault) => (fault.status(), "could not reach", fault.word(), "Try again later."),
    };
    let what = match (decided.method.as_str(), decided.host.as_str()) {
        ("", _) => "the request".to_owned(),
        (method, host) => format!("{method} {host}:{}", decided.port),
    };
    let detail = match decided.detail.as_str() {
        "" => String::new(),
        detail => format!(" ({detail})"),
    };
    let body = format!("herma egress {done} {what}: {word}{detail}. {next_step}\n");
    // Many clients show only the status line.
    let head = format!(
        "HTTP/1.1 {status} (herma egress: {word})\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         x-herma-egress: {word}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // A response to HEAD has no body.
    let body = if decided.method == "HEAD" { "" } else { &body };
    [head.as_bytes(), body.as_bytes()].concat()
}

/// Writes the last bytes of a connection and closes it gracefully: closing with unread bytes would reset it, and the client
/// might never see the response.
pub(super) async fn finish(client: &mut (impl AsyncRead + AsyncWrite + Unpin), bytes: &[u8]) {
    let write = async {
        client.write_all(bytes).await?;
        client.shutdown().await?;
        tokio::io::copy(&mut client.take(MOST_LINGER), &mut tokio::io::sink()).await
    };
    // A client that does not read its response goes without.
    let _ = tokio::time::timeout(LINGER, write).await;
}
