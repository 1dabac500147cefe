//! A connection on which a request can be read in one way only.
//!
//! Requests are smuggled where two readers disagree about where one ends. So the head is looked at before the HTTP library
//! sees any of it: what readers are known to take differently is refused, whether or not the library would take it well. A body
//! has a `Content-Length`, and nothing follows it before the answer is over.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::head::{self, BadHead};

/// Whether a request of a connection is being answered. The answer's body clears it when it is over.
#[derive(Clone, Debug, Default)]
pub(super) struct Busy(Arc<AtomicBool>);

impl Busy {
    fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// The answer is over.
    pub(super) fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What the connection is at.
#[derive(Debug)]
enum State {
    /// In the head of a request, of which this much came.
    Head(Vec<u8>),
    /// In its body, of which this much is to come.
    Body(u64),
    /// The request was read; its answer is under way or over.
    Read,
    /// A request is refused: this is still to be written, then the connection ends.
    Refused { answer: Vec<u8>, written: usize },
    /// More came before the answer was over. It is thrown away; the answer goes on, then the connection ends.
    Ahead,
    /// The connection has ended.
    Ended,
}

/// A connection that is read strictly.
#[derive(Debug)]
pub(super) struct Strict<T> {
    inner: T,
    state: State,
    busy: Busy,
    /// What was looked at and waits to be read: a head that came in parts.
    checked: Vec<u8>,
    /// Whether all of the answer that was written so far has left the HTTP library.
    is_flushed: bool,
}

impl<T> Strict<T> {
    pub(super) fn new(inner: T, busy: Busy) -> Self {
        Self { inner, state: State::Head(Vec::new()), busy, checked: Vec::new(), is_flushed: true }
    }

    /// Takes note of bytes that came. Gives how many of them can be read now; those of a head that is not whole wait.
    fn take(&mut self, bytes: &[u8]) -> usize {
        if matches!(self.state, State::Read) {
            if self.busy.is_set() {
                self.state = State::Ahead;
                return 0;
            }
            self.state = State::Head(Vec::new());
        }
        let mut taken = 0;
        if let State::Head(seen) = &mut self.state {
            let earlier = seen.len();
            match head::more(seen, bytes) {
                Ok(None) => return 0,
                Ok(Some(found)) => {
                    taken = found.used;
                    seen.truncate(earlier);
                    self.checked = std::mem::take(seen);
                    self.busy.set();
                    self.state = State::Body(found.body);
                }
                Err(bad) => {
                    self.refuse(bad);
                    return 0;
                }
            }
        }
        if let State::Body(left) = &mut self.state {
            let here = u64::try_from(bytes.len() - taken).unwrap_or(u64::MAX).min(*left);
            *left -= here;
            taken += usize::try_from(here).unwrap_or(0);
            if *left == 0 {
                self.state = if taken < bytes.len() { State::Ahead } else { State::Read };
            }
        }
        taken
    }

    fn refuse(&mut self, bad: BadHead) {
        self.state = State::Refused { answer: bad.answer(), written: 0 };
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Strict<T> {
    /// Writes the refusal, then ends the connection.
    fn poll_refuse(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let State::Refused { answer, written } = &mut self.state else { return Poll::Ready(Ok(())) };
        while *written < answer.len() {
            let more = ready!(Pin::new(&mut self.inner).poll_write(cx, &answer[*written..]))?;
            if more == 0 {
                break;
            }
            *written += more;
        }
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        self.state = State::Ended;
        Poll::Ready(Ok(()))
    }

    /// Throws away what comes while the answer goes on, so that a client that leaves is still noticed. Only when all of
    /// the answer was written the refusal is.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_answered() {
            self.refuse(BadHead::Ahead);
            return self.poll_refuse(cx);
        }
        let mut scratch = [0; 1024];
        loop {
            let mut buf = ReadBuf::new(&mut scratch);
            ready!(Pin::new(&mut self.inner).poll_read(cx, &mut buf))?;
            if buf.filled().is_empty() {
                self.state = State::Ended;
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<T> Strict<T> {
    fn is_answered(&self) -> bool {
        !self.busy.is_set() && self.is_flushed
    }

    /// Gives what was looked at before.
    fn give_checked(&mut self, buf: &mut ReadBuf<'_>) {
        let now = self.checked.len().min(buf.remaining());
        buf.put_slice(&self.checked[..now]);
        self.checked.drain(..now);
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for Strict<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if !this.checked.is_empty() {
                this.give_checked(buf);
                return Poll::Ready(Ok(()));
            }
            match this.state {
                State::Ended => return Poll::Ready(Ok(())),
                State::Refused { .. } => ready!(this.poll_refuse(cx))?,
                State::Ahead => ready!(this.poll_ahead(cx))?,
                State::Head(_) | State::Body(_) | State::Read => {
                    let before = buf.filled().len();
                    ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
                    let came = &buf.filled()[before..];
                    if came.is_empty() {
                        return Poll::Ready(Ok(()));
                    }
                    let taken = this.take(came);
                    if !this.checked.is_empty() {
                        this.checked.extend_from_slice(&came[..taken]);
                        buf.set_filled(before);
                        continue;
                    }
                    buf.set_filled(before + taken);
                    if taken > 0 {
                        return Poll::Ready(Ok(()));
                    }
                }
            }
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Strict<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.is_flushed = false;
        Pin::new(&mut this.inner).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // The library flushes when it has written all that it holds.
        this.is_flushed = true;
        if matches!(this.state, State::Ahead) && this.is_answered() {
            // Whoever waits to read is to hear the refusal.
            cx.waker().wake_by_ref();
        }
        Pin::new(&mut this.inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.is_flushed = false;
        Pin::new(&mut this.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const HEAD: &str = "POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n";

    fn now<F: Future>(future: F) -> Poll<F::Output> {
        std::pin::pin!(future).poll(&mut Context::from_waker(std::task::Waker::noop()))
    }

    fn read(strict: &mut Strict<tokio::io::DuplexStream>) -> Result<String, Error> {
        let mut part = [0; 7];
        match now(strict.read(&mut part)) {
            Poll::Ready(read) => read.map(|read| String::from_utf8_lossy(&part[..read]).into_owned()),
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }

    #[tokio::test]
    async fn nothing_of_a_head_is_read_before_all_of_it_was_looked_at() {
        let (mut client, server) = duplex(1 << 10);
        let mut strict = Strict::new(server, Busy::default());
        for (sent, byte) in HEAD.bytes().enumerate() {
            assert!(read(&mut strict).is_err(), "after {sent} bytes");
            client.write_all(&[byte]).await.unwrap();
        }
        client.write_all(b"{}").await.unwrap();
        let mut came = String::new();
        while let Ok(part) = read(&mut strict) {
            came.push_str(&part);
        }
        assert_eq!(came, format!("{HEAD}{{}}"));
    }

    #[tokio::test]
    async fn the_refusal_of_what_came_ahead_waits_until_the_answer_was_written() {
        let (mut client, server) = duplex(16);
        let busy = Busy::default();
        let mut strict = Strict::new(server, busy.clone());
        let sending = format!("{HEAD}{{}}GET / HTTP/1.1\r\n\r\n");
        let mut left = sending.as_bytes();
        let mut came = String::new();
        while !left.is_empty() {
            if let Poll::Ready(wrote) = now(client.write(left)) {
                left = &left[wrote.unwrap()..];
            }
            while let Ok(part) = read(&mut strict) {
                came.push_str(&part);
            }
        }
        assert_eq!(came, format!("{HEAD}{{}}"));
        // The answer is over for the service, but the library still holds a part of it.
        assert!(now(strict.write_all(b"the beginning of the answer")).is_pending());
        busy.clear();
        assert!(read(&mut strict).is_err(), "nothing more is given");
        let mut seen = vec![0; 16];
        client.read_exact(&mut seen).await.unwrap();
        assert_eq!(seen, b"the beginning of", "only the answer is written");
        assert!(read(&mut strict).is_err());
        assert!(now(client.read(&mut seen)).is_pending(), "no refusal stands in the answer");
        assert!(now(strict.flush()).is_ready());
        assert!(read(&mut strict).is_err());
        client.read_exact(&mut seen).await.unwrap();
        assert_eq!(seen, b"HTTP/1.1 400 Bad");
    }
}
