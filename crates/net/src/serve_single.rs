//! Serves a connection that carries one request, as a proxy does, with hyper behind a [`StrictStream`].

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CONNECTION;
use http::{HeaderValue, Method, Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::head::{BadHead, HeadLimits, RequestHead, parse};
use crate::strict_stream::{Control, HeadCheck, StrictStream};

/// How a connection with one request is served.
#[derive(Clone, Copy, Debug)]
pub struct SingleOptions {
    /// The bounds of the request head.
    pub head: HeadLimits,
    /// How long the head may take.
    pub head_timeout: Duration,
    /// How long a client may take nothing of the response.
    pub write_timeout: Duration,
}

/// A request whose head was interpreted before hyper read it.
#[derive(Debug)]
pub struct SingleRequest<T> {
    /// The interpretation of its head.
    pub head: T,
    /// Its body.
    pub body: Incoming,
    /// The bytes behind it.
    pub pipelining: Pipelining,
}

/// The bytes that a client sends behind its only request.
#[derive(Clone, Debug)]
pub struct Pipelining(Arc<Control>);

impl Pipelining {
    /// From now on, such bytes end the connection at once. Until then they stay unread.
    pub fn refuse(&self) {
        self.0.refuse_pipelining();
    }

    /// Whether such bytes ended the connection.
    #[must_use]
    pub fn has_ended_connection(&self) -> bool {
        self.0.is_pipelined()
    }
}

/// Serves the one request of a connection. `interpret` reads the head from its bytes, before hyper does; the handler gets
/// the result and responds. A head that is not complete in time is [`BadHead::TimedOut`].
///
/// Returns the connection once the response is written, with bytes that came behind the request: after a 2xx to CONNECT
/// it is a tunnel. `None` if the connection broke.
pub async fn serve_single<S, T, E, F, B>(
    stream: S,
    options: SingleOptions,
    interpret: impl Fn(&RequestHead<'_>) -> Result<T, E> + Unpin,
    handler: impl FnOnce(Result<SingleRequest<T>, E>) -> F,
) -> Option<(S, BytesMut)>
where
    S: AsyncRead + AsyncWrite + Unpin,
    E: From<BadHead>,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let control = Arc::new(Control::single());
    let interpreted: Mutex<Option<Result<T, E>>> = Mutex::new(None);
    let handler = Mutex::new(Some(handler));
    let service = service_fn(|request: Request<Incoming>| {
        let is_connect = request.method() == Method::CONNECT;
        let received = lock(&interpreted).take().zip(lock(&handler).take());
        let responding = received.map(|(head, handler)| {
            let pipelining = Pipelining(control.clone());
            handler(head.map(|head| SingleRequest { head, body: request.into_body(), pipelining }))
        });
        async move {
            let mut response = responding.ok_or(SecondRequest)?.await;
            if !(is_connect && response.status().is_success()) {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, SecondRequest>(response)
        }
    });
    let check = Interpreter { read: interpret, limits: options.head, slot: &interpreted };
    let (head_timeout, write_timeout) = (options.head_timeout, options.write_timeout);
    let strict = StrictStream::new(stream, check, control.clone(), options.head, head_timeout, write_timeout);
    let mut serving = pin!(
        http1::Builder::new()
            // The stream has a timeout of its own for heads.
            .header_read_timeout(None)
            .auto_date_header(false)
            .serve_connection(TokioIo::new(strict), service)
            .without_shutdown()
    );
    let served = std::future::poll_fn(|cx| {
        loop {
            let polled = serving.as_mut().poll(cx);
            if polled.is_ready() || !control.take_unnoticed() {
                return polled;
            }
        }
    });
    Some(served.await.ok()?.io.into_inner().into_parts())
}

/// Interprets the head of the one request.
struct Interpreter<'a, I, T, E> {
    read: I,
    limits: HeadLimits,
    slot: &'a Mutex<Option<Result<T, E>>>,
}

impl<I, T, E> HeadCheck for Interpreter<'_, I, T, E>
where
    I: Fn(&RequestHead<'_>) -> Result<T, E>,
    E: From<BadHead>,
{
    fn check(&mut self, head: Result<&[u8], BadHead>) -> Option<u64> {
        let parsed = head.and_then(|head| parse(head, self.limits)).map_err(E::from);
        let (body_length, interpreted) = match parsed {
            Ok(head) => (head.body_length, (self.read)(&head)),
            Err(bad) => (0, Err(bad)),
        };
        let is_accepted = interpreted.is_ok();
        *lock(self.slot) = Some(interpreted);
        is_accepted.then_some(body_length)
    }
}

/// A connection has one request. The stream lets hyper read no second one.
#[derive(Debug, thiserror::Error)]
#[error("the connection has had its request")]
struct SecondRequest;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
