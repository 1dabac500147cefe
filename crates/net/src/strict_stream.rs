//! A connection that gives hyper one validated request at a time.
//!
//! The stream buffers each request head until it is complete, validates it, and only then lets hyper read it, with exactly
//! the bytes of its body behind it. hyper therefore never sees a partial or an ambiguous head, and never a byte of the next
//! request before the response to this one is complete: such bytes are discarded, the response goes on, and the connection
//! ends with a refusal. Where the head is bad, hyper gets a request of ours in its place, so that the refusal is written by
//! hyper too.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

use crate::head::{BadHead, HeadLimits, find_end, validate};
use crate::idle_timeout::IdleTimeout;

/// The read buffer for heads.
const READ_BYTES: usize = 4 << 10;
/// A larger buffer is freed between requests.
const KEPT_BYTES: usize = 16 << 10;
/// Stands in for a bad head. The service answers it with the refusal, without a look at it.
const REFUSED: &[u8] = b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n";

/// What the service of a connection tells its stream, and the other way round.
#[derive(Debug, Default)]
pub(crate) struct Control {
    is_closing: AtomicBool,
    is_answered: AtomicBool,
    /// Whether the stream has not been read since the response was complete.
    is_unnoticed: AtomicBool,
    refusal: Mutex<Option<BadHead>>,
}

impl Control {
    /// Ends the connection as soon as no request is under way.
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

    /// Whether hyper has to poll again: blocked on reading during the response, it would wait for bytes of the client.
    pub(crate) fn take_unnoticed(&self) -> bool {
        self.is_unnoticed.swap(false, Ordering::AcqRel)
    }

    /// The refusal that is the answer to the current request, if its head was bad.
    pub(crate) fn refusal(&self) -> Option<BadHead> {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection whose request heads are validated before they are read.
#[derive(Debug)]
pub(crate) struct StrictStream<S> {
    stream: S,
    control: Arc<Control>,
    limits: HeadLimits,
    /// Bytes that came and were not passed on.
    buffer: BytesMut,
    phase: Phase,
    /// Whether bytes came while a response was under way.
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
    /// The request was read, and its response is under way.
    Response,
    /// So much of our own request, which stands in for a bad head, was read.
    Refused { read: usize },
    /// No request follows.
    Closed,
}

impl<S: AsyncRead + Unpin> StrictStream<S> {
    /// Wraps an accepted connection.
    pub(crate) fn new(
        stream: S,
        control: Arc<Control>,
        limits: HeadLimits,
        head_timeout: Duration,
        write_timeout: Duration,
    ) -> Self {
        Self {
            stream,
            control,
            limits,
            buffer: BytesMut::new(),
            phase: Phase::Head { scanned: 0 },
            is_pipelined: false,
            head_timeout: IdleTimeout::new(head_timeout),
            write_timeout: IdleTimeout::new(write_timeout),
        }
    }

    /// Waits for a complete head and moves on to the next phase.
    fn poll_head(&mut self, scanned: usize, cx: &mut Context<'_>) -> Poll<()> {
        match find_end(&self.buffer, scanned, self.limits) {
            Ok(None) => {}
            Ok(Some(end)) => {
                match validate(&self.buffer[..end], self.limits) {
                    Ok(body) => {
                        self.control.is_answered.store(false, Ordering::Release);
                        // Past the blank line. A length near the maximum cannot be met; saturating is as good.
                        self.phase = Phase::Request { left: (end as u64 + 4).saturating_add(body) };
                    }
                    Err(bad) => self.refuse(bad),
                }
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
                self.phase = Phase::Closed;
            }
        }
        Poll::Ready(())
    }

    fn refuse(&mut self, bad: BadHead) {
        *self.control.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(bad);
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

    /// Watches for the client's end while a response is under way. Ready once the next head may come, or none will.
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

    /// Passes on the request that stands in for a bad head, then discards whatever comes: closing a socket with unread
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

impl<S: AsyncRead + Unpin> AsyncRead for StrictStream<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match this.phase {
                Phase::Head { scanned } => ready!(this.poll_head(scanned, cx)),
                Phase::Request { left: 0 } => this.phase = Phase::Response,
                Phase::Request { left } => return this.poll_request(left, cx, out),
                Phase::Response => ready!(this.poll_response(cx)),
                Phase::Refused { read } => return this.poll_refused(read, cx, out).map(Ok),
                Phase::Closed => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> StrictStream<S> {
    /// Fails a write of which the client has taken nothing for too long.
    fn timed<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.write_timeout.reset();
            return written;
        }
        self.write_timeout.poll_elapsed(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StrictStream<S> {
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
