//! The step `connect`: asks the run's egress proxy for a tunnel.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde::Deserialize;

use super::call_error::CallError;

/// The variable by which programs find the egress proxy.
pub const PROXY_VARIABLE: &str = "HTTPS_PROXY";

/// The timeout for the proxy's answer: longer than the proxy's own.
const CONNECT_TIMEOUT: Duration = Duration::from_mins(1);
/// The largest answer that is read.
const MAX_ANSWER_BYTES: u64 = 4 << 10;

/// The step `connect`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connect {
    /// `HOST:PORT`.
    pub to: String,
    /// Whether the script ends where it fails.
    #[serde(default)]
    pub must: bool,
}

impl Connect {
    /// Requests the tunnel and closes it; returns the proxy's answer.
    pub(super) fn put(&self, proxy: Option<SocketAddr>) -> Result<String, CallError> {
        let proxy = proxy.ok_or(CallError::NoProxy)?;
        let ask = || {
            let mut stream = TcpStream::connect(proxy)?;
            stream.set_read_timeout(Some(CONNECT_TIMEOUT))?;
            write!(stream, "CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", self.to)?;
            let mut answer = Vec::new();
            let mut part = [0; 512];
            // An established tunnel sends only a head; a denial is read to its end.
            while answer.len() as u64 <= MAX_ANSWER_BYTES && !is_established(&answer) {
                match stream.read(&mut part)? {
                    0 => break,
                    count => answer.extend_from_slice(part.get(..count).unwrap_or_default()),
                }
            }
            Ok(answer)
        };
        let answer = ask().map_err(CallError::Proxy)?;
        let text = String::from_utf8_lossy(&answer).replace("\r\n", "\n");
        let first = text.lines().next().unwrap_or("no answer");
        let said = text.split_once("\n\n").map_or("", |(_, body)| body.trim());
        if is_established(&answer) {
            return Ok(format!("the proxy answered with {first}"));
        }
        Err(CallError::Refused { status_line: first.to_owned(), body: said.to_owned() })
    }
}

fn is_established(answer: &[u8]) -> bool {
    answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(b"\r\n\r\n")
}
