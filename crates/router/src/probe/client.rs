//! A client of the router, as small as it can be: one connection for each question, and an answer of bounded size that
//! comes in bounded time.

use std::time::Duration;

use bytes::Bytes;
use herma_core::secret::Secret;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout_at};

use crate::config::Address;
use herma_dialect::endpoint::{Endpoint, path_of};

/// The largest answer that is read. One within the probe's budget has a few kilobytes.
const MAX_ANSWER: usize = 4 << 20;

/// The upstream of a response. The router adds it.
const X_UPSTREAM: HeaderName = HeaderName::from_static("x-herma-upstream");
/// The output maximum, where the router lowered it.
const X_MAX_OUTPUT: HeaderName = HeaderName::from_static("x-herma-max-output");

/// Asks a router.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client<'a> {
    pub(super) address: &'a Address,
    pub(super) token: &'a Secret<String>,
    /// The most time for one answer.
    pub(super) time: Duration,
}

/// A response.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Whether it comes from an upstream, and not from the router itself.
    pub(super) by_upstream: bool,
    /// The output maximum, where the router lowered it.
    pub(super) lowered_to: Option<u64>,
    pub(super) is_stream: bool,
    /// The body, as far as it was received.
    pub(super) body: Vec<u8>,
    pub(super) end: End,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    Broken,
    TooLate,
    TooLarge,
}

/// There was no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The connection was refused.
    NotReached,
    /// The response is not HTTP.
    NotHttp,
    /// The connection was closed before anything came, as the router does where the provider breaks off at once.
    HungUp,
    /// The token cannot be sent.
    Token,
    /// It took too long.
    TooLate,
}

impl Client<'_> {
    /// Sends the body to an endpoint and reads what comes.
    pub(super) async fn post(&self, endpoint: Endpoint, body: Vec<u8>) -> Result<Answer, NoAnswer> {
        let until = Instant::now() + self.time;
        let request = self.request(endpoint, body).ok_or(NoAnswer::Token)?;
        let sent = async {
            match self.address {
                Address::Tcp(address) => {
                    let stream = TcpStream::connect(address).await.map_err(|_| NoAnswer::NotReached)?;
                    send(stream, request).await
                }
                Address::Unix(path) => {
                    let stream = UnixStream::connect(path).await.map_err(|_| NoAnswer::NotReached)?;
                    send(stream, request).await
                }
            }
        };
        let response = timeout_at(until, sent).await.map_err(|_| NoAnswer::TooLate)??;
        let (head, body) = response.into_parts();
        let (body, end) = read(body, until).await;
        Ok(Answer {
            status: head.status.as_u16(),
            by_upstream: head.headers.contains_key(X_UPSTREAM),
            lowered_to: head.headers.get(X_MAX_OUTPUT).and_then(|value| value.to_str().ok()?.parse().ok()),
            is_stream: is_stream(&head.headers),
            body,
            end,
        })
    }

    fn request(&self, endpoint: Endpoint, body: Vec<u8>) -> Option<Request<Full<Bytes>>> {
        let mut token = HeaderValue::try_from(format!("Bearer {}", self.token.expose())).ok()?;
        token.set_sensitive(true);
        Request::post(path_of(endpoint))
            .header(HOST, "herma")
            .header(AUTHORIZATION, token)
            .header(CONTENT_TYPE, "application/json")
            .header("anthropic-version", "2023-06-01")
            .body(Full::new(Bytes::from(body)))
            .ok()
    }
}

async fn send<T>(stream: T, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, NoAnswer>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|_| NoAnswer::NotHttp)?;
    // It ends with the answer, or with the runtime, which lives no longer than the probe.
    tokio::spawn(connection);
    sender
        .send_request(request)
        .await
        .map_err(|e| if e.is_parse() { NoAnswer::NotHttp } else { NoAnswer::HungUp })
}

async fn read(mut body: Incoming, until: Instant) -> (Vec<u8>, End) {
    let mut bytes = Vec::new();
    loop {
        let frame = match timeout_at(until, body.frame()).await {
            Err(_) => return (bytes, End::TooLate),
            Ok(None) => return (bytes, End::Whole),
            Ok(Some(Err(_))) => return (bytes, End::Broken),
            Ok(Some(Ok(frame))) => frame,
        };
        let Some(chunk) = frame.data_ref() else { continue };
        if bytes.len() + chunk.len() > MAX_ANSWER {
            return (bytes, End::TooLarge);
        }
        bytes.extend_from_slice(chunk);
    }
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    kind.get(..17).is_some_and(|start| start.eq_ignore_ascii_case(b"text/event-stream"))
}
