//! Serves HTTP/1 with hyper behind a [`StrictStream`].

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::head::{BadHead, HeadLimits, validate};
use crate::strict_stream::{Control, HeadCheck, StrictStream};

/// How a connection is served.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The bounds of a request head.
    pub head: HeadLimits,
    /// How long a connection may take until a head is complete, idle time included.
    pub head_timeout: Duration,
    /// How long a client may take nothing of a response.
    pub write_timeout: Duration,
    /// The response to a bad head. The connection ends with it.
    pub refuse: fn(BadHead) -> Response<Bytes>,
}

/// Serves a connection until the client leaves, or until `stop` changes and no request is in flight. The handler is dropped
/// when the client leaves before it is done, and so is the body of its response.
pub async fn serve<S, F, B>(
    stream: S,
    options: Options,
    stop: watch::Receiver<bool>,
    handler: impl Fn(Request<Incoming>) -> F,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let control = Arc::new(Control::default());
    let refusal = Refusal::default();
    let check = Validate { limits: options.head, refusal: refusal.clone() };
    let (head_timeout, write_timeout) = (options.head_timeout, options.write_timeout);
    let strict = StrictStream::new(stream, check, control.clone(), options.head, head_timeout, write_timeout);
    let service = service_fn(|request: Request<Incoming>| {
        let is_old = request.version() < Version::HTTP_11;
        let outcome = match refusal.get() {
            Some(bad) => Err(bad),
            None => Ok(handler(request)),
        };
        let control = &control;
        async move {
            let mut response = match outcome {
                Ok(response) => response.await.map(Either::Left),
                Err(bad) => (options.refuse)(bad).map(|body| Either::Right(Full::new(body))),
            };
            // An HTTP/1.0 client gets one response: whether it could take another is not asked.
            if is_old {
                *response.version_mut() = Version::HTTP_10;
            }
            if is_old || control.is_closing() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response.map(|body| TrackedBody { body, control: control.clone() }))
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            // The stream has a timeout of its own for heads.
            .header_read_timeout(None)
            .serve_connection(TokioIo::new(strict), service)
    );
    let mut watched = stop.clone();
    let mut stopping = pin!(watched.changed());
    let mut is_registered = false;
    std::future::poll_fn(|cx| {
        // Polled once, to be woken; later polls read only the flag.
        if !std::mem::replace(&mut is_registered, true) {
            let _ = stopping.as_mut().poll(cx);
        }
        if stop.has_changed().unwrap_or(true) {
            control.close_when_idle();
        }
        loop {
            // A connection that broke has no client to report to.
            let polled = connection.as_mut().poll(cx).map(drop);
            if polled.is_ready() || !control.take_unnoticed() {
                return polled;
            }
        }
    })
    .await;
}

/// The reason why the current head is refused.
#[derive(Clone, Debug, Default)]
struct Refusal(Arc<Mutex<Option<BadHead>>>);

impl Refusal {
    fn get(&self) -> Option<BadHead> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, bad: BadHead) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(bad);
    }
}

/// Accepts every head that is valid.
struct Validate {
    limits: HeadLimits,
    refusal: Refusal,
}

impl HeadCheck for Validate {
    fn check(&mut self, head: Result<&[u8], BadHead>) -> Option<u64> {
        head.and_then(|head| validate(head, self.limits)).map_err(|bad| self.refusal.set(bad)).ok()
    }
}

/// A response body that tells the stream when hyper is done with it.
struct TrackedBody<B> {
    body: Either<B, Full<Bytes>>,
    control: Arc<Control>,
}

impl<B> Drop for TrackedBody<B> {
    fn drop(&mut self) {
        self.control.set_answered();
    }
}

impl<B> Body for TrackedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
