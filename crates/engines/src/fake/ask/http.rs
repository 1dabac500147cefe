//! HTTP over the router's socket, as small as it can be: one request, one answer, and the connection is closed.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::Router;

/// The largest answer that is read.
const MAX_BYTES: u64 = 8 << 20;

/// The longest path that a socket can be called by: the system's own limit.
const LONGEST_PATH: usize = 107;

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Sends the body and reads the answer to its end.
pub(super) fn post(router: &Router, path: &str, body: &[u8]) -> Result<Answer, String> {
    let talk = || {
        let mut stream = connect(&router.socket)?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: herma\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             anthropic-version: 2023-06-01\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            router.token.expose(),
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat())?;
        let mut bytes = Vec::new();
        stream.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = talk().map_err(|why: io::Error| format!("the router could not be asked: {why}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("the answer has more than {MAX_BYTES} bytes"));
    }
    read(&bytes)
}

/// Calls the socket, also where its path is longer than the system takes one: then by its directory.
fn connect(socket: &Path) -> io::Result<UnixStream> {
    if socket.as_os_str().len() <= LONGEST_PATH {
        return UnixStream::connect(socket);
    }
    let (Some(dir), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let dir = File::open(dir)?;
    UnixStream::connect(Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name))
}

/// Takes an answer apart. What is not one, or breaks off, is an error.
fn read(bytes: &[u8]) -> Result<Answer, String> {
    let broken = || "the answer breaks off".to_owned();
    let end = find(bytes, b"\r\n\r\n").ok_or_else(broken)?;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let rest = &bytes[end + 4..];
    let mut lines = head.lines();
    let first = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).and_then(|line| line.get(..3));
    let status = first.and_then(|code| code.parse().ok()).ok_or("the answer is not one of HTTP/1.1")?;
    let field = |name: &str| {
        lines.clone().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    };
    let body = if field("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        unchunked(rest).ok_or_else(broken)?
    } else if let Some(length) = field("content-length").and_then(|value| value.parse().ok()) {
        rest.get(..length).ok_or_else(broken)?.to_vec()
    } else {
        rest.to_vec()
    };
    Ok(Answer { status, body })
}

/// The body of chunks; none where it breaks off.
fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = find(rest, b"\r\n")?;
        let size = std::str::from_utf8(&rest[..line]).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        let start = line + 2;
        let end = start.checked_add(size)?;
        body.extend_from_slice(rest.get(start..end)?);
        rest = rest.get(end..)?.strip_prefix(b"\r\n")?;
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_answer_is_read_by_its_length_by_chunks_or_to_its_end() {
        let body = |text: &str| read(text.as_bytes()).map(|answer| String::from_utf8(answer.body).unwrap());
        assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc").unwrap(), "ab");
        assert_eq!(body("HTTP/1.1 200 OK\r\n\r\nabc").unwrap(), "abc");
        let chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n";
        assert_eq!(body(chunks).unwrap(), "abc");
        for cut in 0..chunks.len() - 4 {
            assert!(body(&chunks[..cut]).is_err(), "{cut}");
        }
        assert!(body("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc").is_err(), "cut short");
        assert!(body("SSH-2.0-x\r\n\r\n").is_err());
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), chunked: bool) {
            let head: &[u8] = if chunked { b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" } else { b"" };
            let _ = read(&[head, &bytes].concat());
        }
    }
}
