//! Clients of the router.

use std::time::Duration;

use herma_core::Digest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::kit::TOKEN;

/// No request may take longer.
const STUCK: Duration = Duration::from_secs(40);

/// The observations of a client.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The digest of its body, by which it is on record.
    pub(crate) request: String,
    /// The status; none if there was no answer.
    pub(crate) status: Option<u16>,
    /// The whole answer.
    pub(crate) body: String,
}

/// When a client leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leaves {
    AtTheEnd,
    After(Duration),
}

/// Asks once, over a connection of its own.
pub(crate) async fn ask(address: &str, body: String, leaves: Leaves) -> Seen {
    let request = Digest::of(body.as_bytes()).to_string();
    let asked = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: \
             application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        // A router that was killed gives what it gave.
        let _ = stream.read_to_end(&mut answer).await;
        Some(answer)
    };
    let patience = match leaves {
        Leaves::AtTheEnd => STUCK,
        Leaves::After(patience) => patience,
    };
    let answer = tokio::time::timeout(patience, asked).await;
    assert!(answer.is_ok() || matches!(leaves, Leaves::After(_)), "a request is stuck: {body}");
    let answer = answer.ok().flatten().unwrap_or_default();
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text.get(9..12).and_then(|status| status.parse().ok());
    Seen { request, status, body: text }
}

/// A chat request with a text that no other has.
pub(crate) fn chat(number: u64, stream: bool, max: Option<u64>, text: &str) -> String {
    let max = max.map(|max| format!(r#""max_tokens":{max},"#)).unwrap_or_default();
    format!(
        r#"{{"model":"m",{max}"stream":{stream},"messages":[{{"role":"user","content":"{text} {number}"}}]}}"#
    )
}
