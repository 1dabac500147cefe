//! An agent that sends whatever bytes it likes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::kit::{LONG, TOKEN};

/// Where a router listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether all of the body came that was announced.
    pub(crate) is_whole: bool,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Sees that it is an error in the words of a path's dialect. Gives the message.
    #[track_caller]
    pub(crate) fn error(&self, path: &str, status: u16) -> String {
        assert_eq!(self.status, status, "{path}: {}", self.text());
        assert!(self.is_whole);
        assert_eq!(self.header("content-type"), Some("application/json"));
        let body = self.json();
        assert_eq!(body.get("type").is_some(), path.starts_with("/v1/messages"), "{path}: {body}");
        assert!(body["error"]["type"].is_string(), "{body}");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.len() > 10, "{message}");
        message.to_owned()
    }
}

/// A request with the agent's token.
pub(crate) fn request(path: &str, body: &str) -> String {
    request_with(path, "", body)
}

/// The same with more headers.
pub(crate) fn request_with(path: &str, more: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: router\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n{more}\r\n{body}",
        body.len()
    )
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address }
    }

    pub(crate) fn connect(self) -> Connection {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Connection { stream, ahead: Vec::new(), reads_slowly: false }
    }

    pub(crate) fn post(self, path: &str, body: &str) -> Reply {
        self.send(request(path, body).as_bytes())
    }

    /// Sends these bytes and reads the first answer to them.
    #[track_caller]
    pub(crate) fn send(self, bytes: &[u8]) -> Reply {
        let mut connection = self.connect();
        connection.send(bytes);
        connection.reply().unwrap_or_else(|| panic!("no answer to {:?}", String::from_utf8_lossy(bytes)))
    }
}

/// A connection to a router.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    ahead: Vec<u8>,
    /// Whether it reads so slowly that the router has to wait.
    pub(crate) reads_slowly: bool,
}

impl Connection {
    /// The router may close before all is sent.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        drop(self.stream.write_all(bytes));
    }

    /// Reads one more time. Nothing at the end, however it comes.
    fn more(&mut self) -> bool {
        let mut part = [0; 16 << 10];
        if self.reads_slowly {
            std::thread::sleep(Duration::from_micros(500));
        }
        match self.stream.read(&mut part) {
            Ok(read) => {
                self.ahead.extend_from_slice(&part[..read]);
                read > 0
            }
            Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                panic!("the router says nothing; so far: {}", String::from_utf8_lossy(&self.ahead))
            }
            Err(_) => false,
        }
    }

    /// The next answer; none where the connection ends before its head.
    pub(crate) fn reply(&mut self) -> Option<Reply> {
        let head = loop {
            if let Some(at) = self.ahead.windows(4).position(|end| end == b"\r\n\r\n") {
                break self.ahead.drain(..at + 4).collect::<Vec<u8>>();
            }
            if !self.more() {
                return None;
            }
        };
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        let headers: Vec<(String, String)> = lines.filter_map(header).collect();
        let mut reply = Reply { status, headers, body: Vec::new(), is_whole: true };
        match (
            reply.header("content-length").map(|length| length.parse::<usize>().unwrap()),
            reply.header("transfer-encoding"),
        ) {
            (Some(length), None) => {
                while self.ahead.len() < length && self.more() {}
                reply.is_whole = self.ahead.len() >= length;
                reply.body = self.ahead.drain(..length.min(self.ahead.len())).collect();
            }
            (None, None) if status < 200 => {}
            (None, Some("chunked")) => reply.is_whole = self.chunks(&mut reply.body),
            (length, encoding) => panic!("a body with {length:?} and {encoding:?}"),
        }
        Some(reply)
    }

    /// Reads chunks up to the last. Gives whether that came.
    fn chunks(&mut self, body: &mut Vec<u8>) -> bool {
        loop {
            let Some(line) = self.ahead.windows(2).position(|end| end == b"\r\n") else {
                if self.more() {
                    continue;
                }
                return false;
            };
            let size = std::str::from_utf8(&self.ahead[..line]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap_or_else(|_| panic!("{size:?} is no size"));
            while self.ahead.len() < line + size + 4 {
                if !self.more() {
                    let from = (line + 2).min(self.ahead.len());
                    body.extend(self.ahead.drain(from..));
                    return false;
                }
            }
            body.extend_from_slice(&self.ahead[line + 2..line + 2 + size]);
            self.ahead.drain(..line + size + 4);
            if size == 0 {
                return true;
            }
        }
    }

    /// Reads until so many bytes of anything came.
    pub(crate) fn until(&mut self, wanted: &str) {
        while !String::from_utf8_lossy(&self.ahead).contains(wanted) {
            assert!(self.more(), "it ended before {wanted:?}");
        }
    }

    /// Reads to the end of the connection. Gives what came and was not read yet, and how long that took.
    pub(crate) fn rest(&mut self) -> (String, Duration) {
        let started = Instant::now();
        while self.more() {}
        (String::from_utf8_lossy(&std::mem::take(&mut self.ahead)).into_owned(), started.elapsed())
    }

    /// Leaves.
    pub(crate) fn leave(self) {
        drop(self.stream.shutdown(Shutdown::Both));
    }
}
