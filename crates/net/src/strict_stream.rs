//! A connection that gives hyper one validated request at a time.
//!
//! The stream buffers each request head until it is complete, checks it, and only then lets hyper read it, with exactly
//! the bytes of its body behind it. hyper therefore never sees a partial or an ambiguous head, and never a byte of the next
//! request before the response to this one is complete. If the head is refused, hyper gets a request of ours in its place,
//! so that hyper writes the refusal too.
//!
//! Bytes behind a request: on a connection with keep-alive they are discarded, the response goes on, and the connection
//! ends with a refusal. On a connection for a single request they stay unread, because a CONNECT may turn them into the
//! start of a tunnel, until the handler refuses them; then they end the connection at once.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

use crate::head::{BadHead, HeadLimits, find_end};
use crate::idle_timeout::IdleTimeout;

/// The read buffer for heads.
const READ_BYTES: usize = 4 << 10;
/// A larger buffer is freed between requests.
const KEPT_BYTES: usize = 16 << 10;
/// Replaces a refused head. The service answers it with the refusal, without a look at it.
const REFUSED: &[u8] = b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n";

/// The state that the service of a connection shares with its stream.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// Whether the connection carries one request only.
    is_single: bool,
    is_closing: AtomicBool,
    is_answered: AtomicBool,
    /// Whether bytes behind a single request end the connection.
    refuses_pipelining: AtomicBool,
    /// Whether they did.
    is_pipelined: AtomicBool,
    /// Whether the state changed and the stream has not been read since.
    is_unnoticed: AtomicBool,
}

impl Control {
    /// The state of a connection for one request.
    pub(crate) fn single() -> Self {
        Self { is_single: true, ..Self::default() }
    }

    /// Ends the connection as soon as no request is in flight.
    pub(crate) fn close_when_idle(&self) {
        self.is_closing.store(true, Ordering::Release);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// The response to the current request is complete: the next one may come.
    pub(crate) fn set_answered(&self) {
        self.is_answered.store(true, Ordering::Release);
        self.is_unnoticed.store(true, Ordering::Release);
    }

    /// From now on, bytes behind the single request end the connection.
    pub(crate) fn refuse_pipelining(&self) {
        self.refuses_pipelining.store(true, Ordering::Release);
        self.is_unnoticed.store(true, Ordering::Release);
    }

    /// Whether bytes behind the single request ended the connection.
    pub(crate) fn is_pipelined(&self) -> bool {
        self.is_pipelined.load(Ordering::Acquire)
    }

    /// Whether hyper has to poll again: blocked on reading during the response, it would wait for bytes of the client.
    pub(crate) fn take_unnoticed(&self) -> bool {
        self.is_unnoticed.swap(false, Ordering::AcqRel)
    }
}

/// Checks the heads of a connection.
pub(crate) trait HeadCheck {
    /// Gets a complete head, without its blank line, or the reason why there is none. Returns the length of the body, or
    /// `None` if the head is refused; the check keeps the reason for the service.
    fn check(&mut self, head: Result<&[u8], BadHead>) -> Option<u64>;
}

/// A connection whose request heads are validated before they are read.
#[derive(Debug)]
pub(crate) struct StrictStream<S, C> {
    stream: S,
    check: C,
    control: Arc<Control>,
    limits: HeadLimits,
    /// Bytes that came and were not passed on.
    buffer: BytesMut,
    phase: Phase,
    /// Whether bytes came while a response was in flight.
    is_pipelined: bool,
    /// How long a complete head may take.
    head_timeout: IdleTimeout,
    /// How long the client may take nothing of the response.
    write_timeout: IdleTimeout,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// A head is incomplete; so much of the buffer was scanned for its end.
    Head { scanned: usize },
    /// hyper reads this many bytes more: the head and its body.
    Request { left: u64 },
    /// The request was read, and its response is in flight.
    Response,
    /// The client closed its half behind a single request, whose response may still come.
    HalfClosed,
    /// So much of our own request, which replaces a refused head, was read.
    Refused { read: usize },
    /// No request follows.
    Closed,
}

impl<S: AsyncRead + Unpin, C: HeadCheck> StrictStream<S, C> {
    /// Wraps an accepted connection.
    pub(crate) fn new(
        stream: S,
        check: C,
        control: Arc<Control>,
        limits: HeadLimits,
        head_timeout: Duration,
        write_timeout: Duration,
    ) -> Self {
        Self {
            stream,
            check,
            control,
            limits,
            buffer: BytesMut::new(),
            phase: Phase::Head { scanned: 0 },
            is_pipelined: false,
            head_timeout: IdleTimeout::new(head_timeout),
            write_timeout: IdleTimeout::new(write_timeout),
        }
    }

    /// The connection, and the bytes of it that hyper has not read.
    pub(crate) fn into_parts(self) -> (S, BytesMut) {
        (self.stream, self.buffer)
    }

    /// Waits for a complete head and moves on to the next phase.
    fn poll_head(&mut self, scanned: usize, cx: &mut Context<'_>) -> Poll<()> {
        match find_end(&self.buffer, scanned, self.limits) {
            Ok(None) => {}
            Ok(Some(end)) => {
                let Some(body) = self.check.check(Ok(&self.buffer[..end])) else {
                    self.replace_request();
                    return Poll::Ready(());
                };
                self.control.is_answered.store(false, Ordering::Release);
                // Past the blank line. A length near the maximum cannot be met; saturating is as good.
                self.phase = Phase::Request { left: (end as u64 + 4).saturating_add(body) };
                return Poll::Ready(());
            }
            Err(bad) => {
                self.refuse(bad);
                return Poll::Ready(());
            }
        }
        let scanned = self.buffer.len();
        self.buffer.reserve(READ_BYTES);
        match pin!(self.stream.read_buf(&mut self.buffer)).poll(cx) {
            Poll::Ready(Ok(1..)) => self.phase = Phase::Head { scanned },
            Poll::Ready(Ok(0) | Err(_)) => self.phase = Phase::Closed,
            Poll::Pending if self.buffer.is_empty() && self.control.is_closing() => {
                self.phase = Phase::Closed;
            }
            Poll::Pending => {
                ready!(self.head_timeout.poll_elapsed(cx));
                if self.control.is_single && !self.buffer.is_empty() {
                    self.refuse(BadHead::TimedOut);
                } else {
                    self.phase = Phase::Closed;
                }
            }
        }
        Poll::Ready(())
    }

    fn refuse(&mut self, bad: BadHead) {
        // A check refuses every reason.
        let _ = self.check.check(Err(bad));
        self.replace_request();
    }

    /// Discards the client's request and gives hyper the one of ours.
    fn replace_request(&mut self) {
        self.buffer = BytesMut::new();
        self.phase = Phase::Refused { read: 0 };
    }

    /// Passes on bytes of the current request.
    fn poll_request(
        &mut self,
        left: u64,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        if self.buffer.is_empty() {
            let mut limited = (&mut self.stream).take(left);
            ready!(Pin::new(&mut limited).poll_read(cx, out))?;
        } else {
            let most = usize::try_from(left).unwrap_or(usize::MAX);
            let count = most.min(out.remaining()).min(self.buffer.len());
            out.put_slice(&self.buffer[..count]);
            self.buffer.advance(count);
        }
        let count = (out.filled().len() - before) as u64;
        self.phase = Phase::Request { left: left.saturating_sub(count) };
        Poll::Ready(Ok(()))
    }

    /// Reads behind a single request once the handler refuses such bytes; they are an error then.
    fn poll_pipelined(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.control.refuses_pipelining.load(Ordering::Acquire) {
            // No waker: until the handler refuses them or the connection becomes a tunnel, no one reads these bytes.
            return Poll::Pending;
        }
        self.control.is_unnoticed.store(false, Ordering::Release);
        if self.buffer.is_empty() && ready!(self.poll_discard(cx)).is_err() {
            self.phase = Phase::HalfClosed;
            return Poll::Pending;
        }
        self.control.is_pipelined.store(true, Ordering::Release);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, BadHead::Pipelined)))
    }

    /// Watches for the client's end while a response is in flight. Ready once the next head may come, or none will.
    fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.buffer.is_empty() {
            self.is_pipelined = true;
            self.buffer.clear();
        }
        if self.control.is_answered.load(Ordering::Acquire) {
            self.control.is_unnoticed.store(false, Ordering::Release);
            if self.is_pipelined {
                self.refuse(BadHead::Pipelined);
            } else {
                if self.buffer.capacity() > KEPT_BYTES {
                    self.buffer = BytesMut::new();
                }
                self.head_timeout.reset();
                self.phase = Phase::Head { scanned: 0 };
            }
            return Poll::Ready(());
        }
        match ready!(self.poll_discard(cx)) {
            Ok(()) => self.is_pipelined = true,
            Err(Left) => self.phase = Phase::Closed,
        }
        Poll::Ready(())
    }

    /// Reads and discards some bytes.
    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Left>> {
        let mut scratch = [0; 256];
        let mut buf = ReadBuf::new(&mut scratch);
        match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf)) {
            Ok(()) if !buf.filled().is_empty() => Poll::Ready(Ok(())),
            Ok(()) | Err(_) => Poll::Ready(Err(Left)),
        }
    }

    /// Passes on the request that replaces a refused head, then discards whatever comes: closing a socket with unread
    /// bytes would reset the connection, and the client might never see the refusal.
    fn poll_refused(&mut self, read: usize, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<()> {
        let rest = REFUSED.get(read..).unwrap_or_default();
        if !rest.is_empty() {
            let count = rest.len().min(out.remaining());
            out.put_slice(&rest[..count]);
            self.phase = Phase::Refused { read: read + count };
            return Poll::Ready(());
        }
        while ready!(self.poll_discard(cx)).is_ok() {}
        // The end of the client's half is not the end of the refusal.
        Poll::Pending
    }
}

/// The client closed the connection.
struct Left;

impl<S: AsyncRead + Unpin, C: HeadCheck + Unpin> AsyncRead for StrictStream<S, C> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match this.phase {
                Phase::Head { scanned } => ready!(this.poll_head(scanned, cx)),
                Phase::Request { left: 0 } => this.phase = Phase::Response,
                Phase::Request { left } => return this.poll_request(left, cx, out),
                Phase::Response if this.control.is_single => return this.poll_pipelined(cx),
                Phase::Response => ready!(this.poll_response(cx)),
                Phase::HalfClosed => return Poll::Pending,
                Phase::Refused { read } => return this.poll_refused(read, cx, out).map(Ok),
                Phase::Closed => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl<S: AsyncWrite + Unpin, C> StrictStream<S, C> {
    /// Fails a write of which the client has taken nothing for too long.
    fn timed<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.write_timeout.reset();
            return written;
        }
        self.write_timeout.poll_elapsed(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin, C: Unpin> AsyncWrite for StrictStream<S, C> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.timed(written, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.timed(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(cx);
        this.timed(flushed, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
