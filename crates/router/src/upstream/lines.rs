//! Connections over HTTP/1.1 to one upstream.
//!
//! Each is driven by the call that uses it, in that call's own task: no other task is woken to send a request or to hand on
//! a part of an answer, and a call that is dropped closes its connection. Between calls nobody drives them; whether one
//! was closed meanwhile is looked at before it is used again, and now and then.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service as _;

use super::connector::{Connector, NoConnection};
use super::problem::SendError;

type Io = MaybeHttpsStream<TokioIo<TcpStream>>;

/// All connections to one upstream.
pub(super) struct Lines {
    connector: Connector,
    to: Uri,
    host: HeaderValue,
    idle: Arc<Idle>,
}

/// The connections that no call uses, the last one used last.
#[derive(Default)]
struct Idle(Mutex<Vec<(Instant, Box<Line>)>>);

/// One connection.
struct Line {
    sender: SendRequest<Full<Bytes>>,
    connection: http1::Connection<Io, Full<Bytes>>,
}

impl Lines {
    /// `to` says where, `host` is what the upstream is called there.
    pub(super) fn new(connector: Connector, to: Uri, host: HeaderValue) -> Self {
        Self { connector, to, host, idle: Arc::default() }
    }

    /// Sends a request whose URI is only a path, and waits until its answer begins.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<LineBody>, SendError> {
        request.headers_mut().insert(HOST, self.host.clone());
        while let Some(line) = self.idle.take() {
            match self.ask(line, request).await {
                Ok(response) => return Ok(response),
                // It was closed before any of the request was written.
                Err(Unanswered { unsent: Some(unsent), .. }) => request = unsent,
                Err(Unanswered { why, .. }) => return Err(why),
            }
        }
        let line = self.connect().await.map_err(|error| SendError::NotReached(error.0))?;
        self.ask(line, request).await.map_err(|unanswered| unanswered.why)
    }

    async fn connect(&self) -> Result<Box<Line>, NoConnection> {
        let mut connector = self.connector.clone();
        poll_fn(|cx| connector.poll_ready(cx)).await?;
        let io = connector.call(self.to.clone()).await?;
        let (sender, connection) = http1::handshake(io).await.map_err(|error| NoConnection::of(&error))?;
        Ok(Box::new(Line { sender, connection }))
    }

    async fn ask(
        &self,
        mut line: Box<Line>,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<LineBody>, Unanswered> {
        let mut answer = pin!(line.sender.try_send_request(request));
        let mut connection = Some(Pin::new(&mut line.connection));
        let answered = poll_fn(|cx| {
            // Only the connection brings the answer, so nobody else has to wake this task for it.
            if connection.as_mut().is_some_and(|connection| connection.as_mut().poll(cx).is_ready()) {
                connection = None;
            }
            answer.as_mut().poll(&mut quiet())
        });
        match answered.await {
            Ok(response) => {
                Ok(response.map(|incoming| LineBody { incoming, line: Some(line), home: self.idle.clone() }))
            }
            Err(mut failed) => {
                let unsent = failed.take_message();
                Err(Unanswered { why: no_answer(failed.error()), unsent })
            }
        }
    }

    /// Lets go of connections that were closed, and of those that nobody used for this long.
    pub(super) fn tidy(&self, kept: Duration) {
        self.idle.lock().retain_mut(|(since, line)| since.elapsed() < kept && line.is_open());
    }
}

struct Unanswered {
    why: SendError,
    /// The request, where none of it was written.
    unsent: Option<Request<Full<Bytes>>>,
}

/// What an error means for a request that was given to a connection: it may be on its way, whatever became of it.
fn no_answer(error: &hyper::Error) -> SendError {
    SendError::Ambiguous(if error.is_parse() { "not_http" } else { "closed_before_headers" })
}

impl Line {
    /// Whether the other side still holds it.
    fn is_open(&mut self) -> bool {
        Pin::new(&mut self.connection).poll(&mut quiet()).is_pending() && !self.sender.is_closed()
    }
}

impl Idle {
    fn take(&self) -> Option<Box<Line>> {
        loop {
            let (_, mut line) = self.lock().pop()?;
            if line.is_open() {
                return Some(line);
            }
        }
    }

    /// Keeps a connection, if it is ready for another request.
    fn keep(&self, mut line: Box<Line>) {
        if line.is_open() && line.sender.is_ready() {
            self.lock().push((Instant::now(), line));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Instant, Box<Line>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The body of an answer, with the connection that brings it.
pub(super) struct LineBody {
    incoming: Incoming,
    line: Option<Box<Line>>,
    home: Arc<Idle>,
}

impl LineBody {
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // Asking for more is what lets the connection read on.
        if let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(&mut quiet()) {
            return Poll::Ready(frame);
        }
        if self.line.as_mut().is_some_and(|line| Pin::new(&mut line.connection).poll(cx).is_ready()) {
            self.line = None;
        }
        Pin::new(&mut self.incoming).poll_frame(&mut quiet())
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl Drop for LineBody {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            // One on which the answer still comes is not ready, and is closed.
            self.home.keep(line);
        }
    }
}

/// For what is certain to be polled again when it matters.
fn quiet() -> Context<'static> {
    Context::from_waker(Waker::noop())
}
