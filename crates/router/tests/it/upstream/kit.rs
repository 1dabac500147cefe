//! Upstreams by configuration, and servers to be asked.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use herma_dialect::endpoint::Endpoint;
use herma_router::config::{Config, Lookup};
use herma_router::upstream::{BadUpstream, BodyBroken, Outgoing, SendError, Upstream, UpstreamBody};
use http::Response;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The key of every upstream here.
pub(crate) const KEY: &str = "sk-canary-4f9d/+0a1b2c3d4e5f";

/// Longer than any limit of a test, shorter than anybody's patience.
pub(crate) const LONG: Duration = Duration::from_secs(20);

struct Environment {
    url: String,
}

impl Lookup for Environment {
    fn variable(&self, name: &str) -> Option<OsString> {
        match name {
            "KEY" => Some(KEY.into()),
            "URL" => Some(self.url.clone().into()),
            _ => None,
        }
    }

    fn keyring(&self, _: &str, _: &str) -> Result<String, String> {
        Err("there is none".to_owned())
    }
}

/// The upstream `up` of a configuration that has these lines for it, and these limits.
pub(crate) fn configured(lines: &str, url: &str, limits: &str) -> Result<Upstream, BadUpstream> {
    let text = format!(
        "state = \"state\"\n[listen]\naddress = \"127.0.0.1:4000\"\n[limits]\n{limits}\n\
         [upstreams.up]\n{lines}\n[models.m]\nchain = [\"up/m\"]\n"
    );
    let config =
        Config::parse(&text, Path::new("/nowhere/router.toml")).unwrap_or_else(|bad| panic!("{bad}"));
    let secrets = config.secrets(&Environment { url: url.to_owned() }).unwrap_or_else(|bad| panic!("{bad}"));
    Upstream::new("up", &config.upstreams["up"], &secrets, &config.limits)
}

/// One of these providers with key and URL, and with short limits.
pub(crate) fn up(provider: &str, url: &str) -> Upstream {
    up_with(provider, url, "")
}

/// The same with more lines.
pub(crate) fn up_with(provider: &str, url: &str, more: &str) -> Upstream {
    let lines =
        format!("provider = \"{provider}\"\nkey = {{ env = \"KEY\" }}\nurl = {{ env = \"URL\" }}\n{more}");
    configured(&lines, url, SHORT).unwrap()
}

/// Limits of which each can be met in a test.
pub(crate) const SHORT: &str = "connect = \"2s\"\nfirst_byte = \"3s\"\nidle = \"300ms\"";

/// The URL of a server on this machine.
pub(crate) fn http(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// A small request to an endpoint.
pub(crate) fn asking(endpoint: Endpoint) -> Outgoing {
    Outgoing {
        endpoint,
        beta_query: false,
        headers: http::HeaderMap::new(),
        body: Bytes::from_static(br#"{"model":"m","messages":[{"role":"user","content":"Hello."}]}"#),
        run: Arc::from("run-1"),
    }
}

/// The whole body, or how it broke with what came before.
pub(crate) async fn body(response: Response<UpstreamBody>) -> Result<Vec<u8>, (Vec<u8>, BodyBroken)> {
    let mut body = response.into_body();
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => all.extend_from_slice(&frame.into_data().unwrap_or_default()),
            Err(broken) => return Err((all, broken)),
        }
    }
    Ok(all)
}

/// The result of one request to an upstream.
pub(crate) async fn ask(upstream: &Upstream, endpoint: Endpoint) -> Result<(u16, Vec<u8>), SendError> {
    let response = upstream.send(asking(endpoint)).await?;
    let status = response.status().as_u16();
    Ok((status, body(response).await.unwrap()))
}

/// A server that does this with each connection, which are counted from 0.
pub(crate) async fn server<F>(each: impl Fn(usize, TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for number in 0.. {
            let Ok((stream, _)) = listener.accept().await else { return };
            tokio::spawn(each(number, stream));
        }
    });
    address
}

/// The requests that a server got, as they came.
pub(crate) type Got = Arc<Mutex<Vec<String>>>;

/// A server that answers every request on its connections with the same bytes, and keeps the requests.
pub(crate) async fn answering(answer: &'static str) -> (SocketAddr, Got) {
    let got = Got::default();
    let keeps = got.clone();
    let address = server(move |_, mut stream| {
        let keeps = keeps.clone();
        async move {
            while let Some(request) = request(&mut stream).await {
                keeps.lock().unwrap().push(request);
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    (address, got)
}

/// An answer with nothing special.
pub(crate) const FINE: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// Reads one request of HTTP/1.1, in full. None where the connection ends.
pub(crate) async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let head = bytes.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4);
        if let Some(head) = head {
            let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if bytes.len() >= head + length.unwrap_or(0) {
                return Some(String::from_utf8(bytes).unwrap());
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// Waits until the other side closes.
pub(crate) async fn closed(stream: &mut TcpStream) {
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
}
