//! Servers with configurable answers: any bytes, too early, too late, or none.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

use super::kit::LONG;

/// The reaction of a server to a request.
#[derive(Clone, Debug)]
pub(crate) enum Do {
    /// Sends these bytes.
    Send(Vec<u8>),
    Pause(Duration),
    /// Waits for [`Server::go_on`].
    Wait,
    /// Closes the connection in order.
    Close,
    /// Resets the connection.
    Reset,
    /// Does nothing until the other side closes.
    Hang,
}

/// A server of HTTP/1.1, as far as a test needs one.
pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<StreamSummary>,
    go_on: Sender<()>,
    /// Reserves its address while it does not listen.
    _held: Option<OwnedFd>,
}

#[derive(Default)]
struct StreamSummary {
    requests: Mutex<Vec<String>>,
    connections: AtomicUsize,
    left: AtomicUsize,
}

impl Server {
    /// One that does this with each request; they are counted from 0.
    pub(crate) fn new(plan: impl Fn(usize, &str) -> Vec<Do> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(StreamSummary::default());
        let (go_on, waits) = channel();
        let (plan, waits) = (Arc::new(plan), Arc::new(Mutex::new(waits)));
        let noted = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                stream.set_nodelay(true).unwrap();
                noted.connections.fetch_add(1, Ordering::SeqCst);
                let (plan, noted, waits) = (plan.clone(), noted.clone(), waits.clone());
                thread::spawn(move || serve(stream, &*plan, &noted, &waits));
            }
        });
        Self { address, seen, go_on, _held: None }
    }

    /// One that answers every request with this.
    pub(crate) fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::new(move |_, _| vec![Do::Send(answer.clone())])
    }

    /// One that is not there. Nobody else gets its port meanwhile.
    pub(crate) fn absent() -> Self {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = getsockname(&socket).unwrap().try_into().unwrap();
        Self { address, seen: Arc::default(), go_on: channel().0, _held: Some(socket) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests that it got, head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// The body of its last request.
    pub(crate) fn last_body(&self) -> String {
        let last = self.requests().pop().unwrap();
        last.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// How many connections were closed by the other side while it hung.
    pub(crate) fn left(&self) -> usize {
        self.seen.left.load(Ordering::SeqCst)
    }

    pub(crate) fn go_on(&self) {
        self.go_on.send(()).unwrap();
    }
}

fn serve(
    mut stream: TcpStream,
    plan: &(dyn Fn(usize, &str) -> Vec<Do> + Send + Sync),
    seen: &StreamSummary,
    waits: &Mutex<Receiver<()>>,
) {
    while let Some(request) = request(&mut stream) {
        let number = {
            let mut requests = seen.requests.lock().unwrap();
            requests.push(request.clone());
            requests.len() - 1
        };
        for step in plan(number, &request) {
            match step {
                // The other side may have left.
                Do::Send(bytes) => drop(stream.write_all(&bytes)),
                Do::Pause(time) => thread::sleep(time),
                Do::Wait => drop(waits.lock().unwrap().recv_timeout(LONG)),
                Do::Close => return,
                Do::Reset => {
                    set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
                    return;
                }
                Do::Hang => {
                    let mut rest = [0; 1024];
                    while stream.read(&mut rest).is_ok_and(|read| read > 0) {}
                    seen.left.fetch_add(1, Ordering::SeqCst);
                    return;
                }
            }
        }
    }
}

/// A whole request; none where the connection ends.
fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut part = [0; 16 << 10];
    loop {
        if let Some(head) = bytes.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4) {
            let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if bytes.len() >= head + length.unwrap_or(0) {
                return Some(String::from_utf8(bytes).unwrap());
            }
        }
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&part[..read]),
        }
    }
}

/// An answer with a body of this type.
pub(crate) fn http(status: u16, kind: &str, more: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{more}\r\n{body}")
        .into_bytes()
}

/// An error, with these headers.
pub(crate) fn error(status: u16, more: &str) -> Vec<u8> {
    http(status, "application/json", more, r#"{"error":{"message":"no","type":"t"}}"#)
}

/// The beginning of a stream that has no length.
pub(crate) const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A chunk of such a body.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A whole stream.
pub(crate) fn stream(body: &[u8]) -> Vec<u8> {
    [STREAM.as_bytes(), &chunk(body), b"0\r\n\r\n"].concat()
}

/// A good answer in the dialect of a path, as the golden files have it: 12 tokens in and 6 out in Messages, and more in
/// the others.
pub(crate) fn good(path: &str) -> Vec<u8> {
    let body = match path {
        "/v1/messages" => crate::kit::golden("messages/text.json"),
        "/v1/messages/count_tokens" => br#"{"input_tokens":7}"#.to_vec(),
        "/v1/responses" => crate::kit::golden("responses/completed.json"),
        "/v1/completions" => crate::kit::golden("chat/completion.json"),
        "/v1/embeddings" => crate::kit::golden("chat/embeddings.json"),
        _ => crate::kit::golden("chat/openai.json"),
    };
    http(200, "application/json", "", std::str::from_utf8(&body).unwrap())
}

/// A good stream in the dialect of a path, as it is.
pub(crate) fn good_stream(path: &str) -> Vec<u8> {
    match path {
        "/v1/messages" => crate::kit::golden("messages/text-with-cache.sse"),
        "/v1/responses" => crate::kit::golden("responses/completed.sse"),
        _ => crate::kit::golden("chat/openai-usage-chunk.sse"),
    }
}

/// A server that answers each endpoint well.
pub(crate) fn fine() -> Server {
    Server::new(|_, request| {
        let path = request.split(' ').nth(1).unwrap();
        let body = request.split_once("\r\n\r\n").unwrap().1;
        vec![Do::Send(if body.contains(r#""stream":true"#) {
            stream(&good_stream(path))
        } else {
            good(path)
        })]
    })
}
