//! A client of the proxy that sends exactly the bytes that a test says.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use super::hellos::Hello;
use super::kit::{Proxy, WAIT_TIMEOUT};

pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    pub(crate) fn new(proxy: &Proxy) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", proxy.port)).unwrap();
        stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
        Self(stream)
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).unwrap();
    }

    /// All that comes until the end. A connection that breaks ends too.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        if let Err(error) = self.0.read_to_end(&mut rest) {
            assert!(error.kind() == std::io::ErrorKind::ConnectionReset, "{error}");
        }
        rest
    }

    pub(crate) fn rest_as_text(&mut self) -> String {
        String::from_utf8_lossy(&self.rest()).into_owned()
    }

    pub(crate) fn exactly(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// The head of an answer, with its end.
    pub(crate) fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(self.exactly(1));
        }
        String::from_utf8(head).unwrap()
    }

    pub(crate) fn end_half(&self) {
        self.0.shutdown(Shutdown::Write).unwrap();
    }
}

/// Asks for a tunnel. Gives the client after the answer's head.
pub(crate) fn connect(proxy: &Proxy, place: &str) -> (Client, String) {
    let mut client = Client::new(proxy);
    client.send(format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n"));
    let head = client.head();
    (client, head)
}

/// Asks for a tunnel that does not come. Gives all of the answer.
pub(crate) fn refused(proxy: &Proxy, place: &str) -> String {
    let (mut client, head) = connect(proxy, place);
    head + &client.rest_as_text()
}

/// A tunnel to port 443 whose hello has been sent.
pub(crate) fn tunnel(proxy: &Proxy, host: &str) -> (Client, Vec<u8>) {
    let (mut client, head) = connect(proxy, &format!("{host}:443"));
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let hello = Hello::of(host).bytes();
    client.send(&hello);
    (client, hello)
}

/// Sends a whole request and gives the whole answer.
pub(crate) fn ask(proxy: &Proxy, request: impl AsRef<[u8]>) -> String {
    let mut client = Client::new(proxy);
    client.send(request);
    client.rest_as_text()
}
