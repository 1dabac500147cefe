//! Connections over HTTP/1.1 to one upstream.
//!
//! Each is driven by the call that uses it, in that call's own task: no other task is woken to send a request or to hand on
//! a part of an answer, and a call that is dropped closes its connection. Between calls nobody drives them; whether one
//! was closed meanwhile is looked at before it is used again, and now and then.

use std::future::poll_fn;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Response, Uri};
use http_body::SizeHint;
use tower_service::Service as _;

use super::answer_head::{AnswerHead, Framing};
use super::chunked::Chunked;
use super::connector::{Connector, NoConnection};
use super::headers::Fields;
use super::line::{Broken, Line, Message, Unanswered};
use super::problem::SendError;

/// What has room for the head of nearly every request.
const HEAD: usize = 512;

/// So many connections are kept for calls to come.
const MOST_IDLE: usize = 1024;

/// All connections to one upstream.
pub(super) struct Lines {
    connector: Connector,
    to: Uri,
    host: HeaderValue,
    first_byte: Duration,
    idle: Arc<Idle>,
}

/// The connections that no call uses, the last one used last.
#[derive(Default)]
struct Idle(Mutex<Vec<(Instant, Box<Line>)>>);

impl Lines {
    /// `to` says where, `host` is what the upstream is called there; within `first_byte` its answers begin.
    pub(super) fn new(connector: Connector, to: Uri, host: HeaderValue, first_byte: Duration) -> Self {
        Self { connector, to, host, first_byte, idle: Arc::default() }
    }

    /// Posts to a URI that is only a path, and waits until the answer begins.
    pub(super) async fn post(
        &self,
        uri: &Uri,
        headers: &Fields,
        body: &[u8],
    ) -> Result<Response<LineBody>, SendError> {
        let head = self.head(uri, headers, body.len());
        let message = Message { head: &head, body };
        while let Some(line) = self.idle.take() {
            match self.ask(line, message).await {
                Ok(response) => return Ok(response),
                // It was closed before any of the request was written.
                Err(Unanswered { is_unsent: true, .. }) => {}
                Err(Unanswered { why, .. }) => return Err(why),
            }
        }
        let line = self.connect().await.map_err(|error| SendError::NotReached(error.0))?;
        self.ask(line, message).await.map_err(|unanswered| unanswered.why)
    }

    /// The head of a request. Neither a path nor a header's value can hold the end of a line: their types see to that.
    fn head(&self, uri: &Uri, headers: &Fields, length: usize) -> Vec<u8> {
        let mut head = Vec::with_capacity(HEAD);
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        for part in [b"POST ", path.as_bytes(), b" HTTP/1.1\r\n"] {
            head.extend_from_slice(part);
        }
        for (name, value) in headers.iter().map(|(name, value)| (name, value)).chain([(&HOST, &self.host)]) {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                head.extend_from_slice(part);
            }
        }
        // A Vec takes everything.
        let _ = write!(head, "content-length: {length}\r\n\r\n");
        head
    }

    async fn connect(&self) -> Result<Box<Line>, NoConnection> {
        let mut connector = self.connector.clone();
        poll_fn(|cx| connector.poll_ready(cx)).await?;
        let connected = connector.call(self.to.clone()).await?;
        Ok(Box::new(Line::new(connected.into(), self.first_byte)))
    }

    async fn ask(&self, mut line: Box<Line>, message: Message<'_>) -> Result<Response<LineBody>, Unanswered> {
        let AnswerHead { status, headers, framing, is_kept } = line.ask(message).await?;
        let home = is_kept.then(|| self.idle.clone());
        let mut response = Response::new(LineBody { line: Some(line), framing, home });
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        Ok(response)
    }

    /// Lets go of connections that were closed, and of those that nobody used for this long.
    pub(super) fn tidy(&self, kept: Duration) {
        self.idle.lock().retain_mut(|(since, line)| since.elapsed() < kept && line.is_open());
    }
}

impl Idle {
    fn take(&self) -> Option<Box<Line>> {
        loop {
            let (_, mut line) = self.lock().pop()?;
            if line.is_open() {
                return Some(line);
            }
            // An upstream that closed one, as in a restart, has closed others.
            self.lock().retain_mut(|(_, line)| line.is_open());
        }
    }

    fn keep(&self, line: Box<Line>) {
        let mut idle = self.lock();
        if idle.len() < MOST_IDLE {
            idle.push((Instant::now(), line));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Instant, Box<Line>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The body of an answer, with the connection that brings it. Dropping it before its end closes the connection.
pub(super) struct LineBody {
    line: Option<Box<Line>>,
    framing: Framing,
    /// Where the connection goes behind the body's end, if it can be used again.
    home: Option<Arc<Idle>>,
}

impl LineBody {
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        let Some(line) = &mut self.line else { return Poll::Ready(None) };
        let next = line.poll_body(&mut self.framing, cx);
        if matches!(next, Poll::Ready(Some(Err(_)))) {
            self.line = None;
        } else if self.is_end_stream()
            && let (Some(line), Some(home)) = (self.line.take(), self.home.take())
        {
            home.keep(line);
        }
        next
    }

    /// Whether nothing more comes.
    pub(super) fn is_end_stream(&self) -> bool {
        matches!(self.framing, Framing::Length(0) | Framing::Chunked(Chunked::Over))
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match self.framing {
            Framing::Length(left) => SizeHint::with_exact(left),
            Framing::Chunked(_) | Framing::Close => SizeHint::default(),
        }
    }
}
