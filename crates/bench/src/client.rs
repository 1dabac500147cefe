//! One keep-alive connection to a contender, and the requests on it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::error::BenchError;
use crate::wire;

/// So much of an unexpected body is repeated in an error.
const SAID: usize = 300;

/// Where a contender listens, and what it wants to be asked with.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    pub(crate) address: SocketAddr,
    pub(crate) path: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) model: String,
}

/// One connection. Dropping it closes it.
pub(crate) struct Line {
    front: Arc<Front>,
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Front {
    /// The contender at this port, asked as clients of models ask.
    pub(crate) fn new(address: SocketAddr, token: &str) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let mut front =
            Self { address, path: Uri::from_static(wire::PATH), headers, model: wire::MODEL.to_owned() };
        front.header(HOST, &address.to_string());
        front.header(AUTHORIZATION, &format!("Bearer {token}"));
        front
    }

    /// Sets a header, where its value can be one.
    pub(crate) fn header(&mut self, name: HeaderName, value: &str) {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
    }
}

impl Line {
    pub(crate) async fn open(front: &Arc<Front>) -> Result<Self, BenchError> {
        let failed = || BenchError::io(format!("cannot connect to {}", front.address));
        let stream = TcpStream::connect(front.address).await.map_err(failed())?;
        stream.set_nodelay(true).map_err(failed())?;
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(BenchError::http("cannot speak HTTP"))?;
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { front: Arc::clone(front), sender, driver })
    }

    /// Asks and reads the whole answer; says how long both took.
    pub(crate) async fn ask(&mut self, body: &Bytes) -> Result<Duration, BenchError> {
        let started = Instant::now();
        let mut answer = self.send(body).await?.into_body();
        while let Some(frame) = answer.frame().await {
            frame.map_err(BenchError::http("an answer broke off"))?;
        }
        Ok(started.elapsed())
    }

    /// Asks and gives the answer's text: to see once that it is the upstream's.
    pub(crate) async fn ask_for_text(&mut self, body: &Bytes) -> Result<Bytes, BenchError> {
        let answer = self.send(body).await?.into_body();
        Ok(answer.collect().await.map_err(BenchError::http("an answer broke off"))?.to_bytes())
    }

    /// Asks for a stream and waits for the first byte of its body.
    pub(crate) async fn begin(&mut self, body: &Bytes) -> Result<Begun, BenchError> {
        let started = Instant::now();
        let mut answer = self.send(body).await?.into_body();
        let mut end = Vec::new();
        while end.is_empty() {
            match next(&mut answer).await? {
                Some(data) => keep_end(&mut end, &data),
                None => return Err(BenchError::Cut("it is empty".to_owned())),
            }
        }
        Ok(Begun { first_byte: started.elapsed(), answer, end })
    }

    async fn send(&mut self, body: &Bytes) -> Result<Response<Incoming>, BenchError> {
        self.sender.ready().await.map_err(BenchError::http("the connection was closed"))?;
        let mut request = Request::new(Full::new(body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.front.path.clone();
        *request.headers_mut() = self.front.headers.clone();
        let response =
            self.sender.send_request(request).await.map_err(BenchError::http("there was no answer"))?;
        if response.status() == StatusCode::OK {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.map(http_body_util::Collected::to_bytes);
        let said = body.unwrap_or_default();
        Err(BenchError::Answer {
            status,
            said: String::from_utf8_lossy(&said[..said.len().min(SAID)]).into_owned(),
        })
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A stream whose first byte has come.
pub(crate) struct Begun {
    pub(crate) first_byte: Duration,
    answer: Incoming,
    /// The last bytes so far.
    end: Vec<u8>,
}

impl Begun {
    /// Reads the rest, and that it ends as the upstream's streams end.
    pub(crate) async fn finish(mut self) -> Result<(), BenchError> {
        while let Some(data) = next(&mut self.answer).await? {
            keep_end(&mut self.end, &data);
        }
        if self.end.trim_ascii_end().ends_with(wire::DONE.trim_ascii_end()) {
            return Ok(());
        }
        Err(BenchError::Cut(String::from_utf8_lossy(&self.end).into_owned()))
    }
}

async fn next(answer: &mut Incoming) -> Result<Option<Bytes>, BenchError> {
    while let Some(frame) = answer.frame().await {
        let frame = frame.map_err(BenchError::http("a stream broke off"))?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

fn keep_end(end: &mut Vec<u8>, data: &[u8]) {
    end.extend_from_slice(&data[data.len().saturating_sub(64)..]);
    end.drain(..end.len().saturating_sub(64));
}
