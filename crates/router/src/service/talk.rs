//! The bytes of a client's connection, on which a request can be read in one way only.
//!
//! Requests are smuggled where two readers disagree about where one ends. So what readers are known to take differently is
//! refused before anything else looks at it. A body has a `Content-Length`, and nothing follows it before the answer is
//! over: what does is thrown away, the answer goes on, then the connection ends.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, ReadBuf};

use super::head::{self, BadHead, Head};
use super::listener::Stream;
use crate::patience::Patience;

/// So much room there is when something is read.
const ROOM: usize = 4 << 10;
/// The most room that is made at once for a body: who only announces a large one gets no more.
const MOST_ROOM: usize = 256 << 10;
/// A larger buffer is not kept for the next answer.
const KEPT: usize = 16 << 10;

const GO_ON: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The connection of a client.
pub(super) struct Talk {
    stream: Box<dyn Stream>,
    /// What came and was not used.
    came: BytesMut,
    /// How much of a head was looked at.
    looked_at: usize,
    /// How much of a request's body was not used.
    left: u64,
    /// Whether the client waits for leave to send the body.
    waits: bool,
    /// Whether more came before the answer was over.
    is_ahead: bool,
    /// What is to be written.
    pub(super) out: Vec<u8>,
    written: usize,
    /// How long a client may take nothing of what is written to it.
    patience: Patience,
}

impl Talk {
    /// A client that takes nothing for as long as `unread` has left.
    pub(super) fn new(stream: Box<dyn Stream>, unread: Duration) -> Self {
        Self {
            stream,
            came: BytesMut::new(),
            looked_at: 0,
            left: 0,
            waits: false,
            is_ahead: false,
            out: Vec::new(),
            written: 0,
            patience: Patience::new(unread),
        }
    }

    /// The head of the next request; none if the client left.
    pub(super) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Head, BadHead>>> {
        loop {
            match head::take(&mut self.came, &mut self.looked_at).transpose() {
                Some(Ok(head)) => {
                    (self.left, self.waits) = (head.length, head.waits);
                    return Poll::Ready(Some(Ok(head)));
                }
                Some(Err(bad)) => return Poll::Ready(Some(Err(bad))),
                None => {}
            }
            if ready!(self.poll_more(ROOM, cx)).is_err() {
                return Poll::Ready(None);
            }
        }
    }

    /// Whether nothing of a request has come.
    pub(super) fn is_idle(&self) -> bool {
        self.came.is_empty()
    }

    /// The body of the request, if all of it is there.
    fn body_now(&mut self) -> Option<Bytes> {
        let length = usize::try_from(self.left).ok().filter(|length| *length <= self.came.len())?;
        self.left = 0;
        let body = self.came.split_to(length).freeze();
        self.is_ahead |= !self.came.is_empty();
        if length > KEPT {
            // What is left of it would hold all of its memory, as long as the connection lasts.
            self.came = BytesMut::new();
        } else {
            self.came.clear();
        }
        Some(body)
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Left>> {
        if std::mem::take(&mut self.waits) && self.came.is_empty() {
            self.out.extend_from_slice(GO_ON);
        }
        loop {
            if let Some(body) = self.body_now() {
                return Poll::Ready(Ok(body));
            }
            ready!(self.poll_write(cx))?;
            let missing = usize::try_from(self.left).unwrap_or(usize::MAX).saturating_sub(self.came.len());
            ready!(self.poll_more(missing.clamp(1, MOST_ROOM), cx))?;
        }
    }

    /// Ready when the client left. What comes while it is answered is thrown away, so that this is still noticed.
    pub(super) fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<Left> {
        // Whoever answers waits for the body, and notices itself.
        if self.left > 0 {
            return Poll::Pending;
        }
        let mut scratch = [0; 256];
        loop {
            let mut buf = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut *self.stream).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => self.is_ahead = true,
                Ok(()) | Err(_) => return Poll::Ready(Left),
            }
        }
    }

    /// Whether the request was read to its end, as far as it has come; if not, no other can follow it.
    pub(super) fn is_read(&self) -> bool {
        usize::try_from(self.left).is_ok_and(|left| left <= self.came.len())
    }

    /// The answer is over. Says whether another request may follow.
    pub(super) fn go_on(&mut self) -> Result<(), BadHead> {
        // What nobody wanted to read.
        let _ = self.body_now();
        if self.out.capacity() > KEPT {
            self.out = Vec::new();
        }
        if self.is_ahead { Err(BadHead::Ahead) } else { Ok(()) }
    }

    /// Lets go of what was written: a client that never takes all that is there would otherwise keep all that was.
    pub(super) fn forget_written(&mut self) {
        self.out.drain(..self.written);
        self.written = 0;
    }

    /// Writes what is to be written. A client that takes nothing of it for too long has left.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Left>> {
        while self.written < self.out.len() {
            match Pin::new(&mut *self.stream).poll_write(cx, &self.out[self.written..]) {
                Poll::Ready(Ok(more)) if more > 0 => {
                    self.written += more;
                    self.patience.rewarded();
                }
                Poll::Ready(_) => return Poll::Ready(Err(Left)),
                Poll::Pending => return self.patience.poll_over(cx).map(|()| Err(Left)),
            }
        }
        self.out.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    /// How much is to be written.
    pub(super) fn unwritten(&self) -> usize {
        self.out.len() - self.written
    }

    /// Writes the last answer, if there is one, and ends the connection.
    pub(super) async fn end(&mut self, refused: Option<BadHead>) {
        if let Some(bad) = refused {
            self.out.extend(bad.answer());
        }
        // A client that does not hear it any more has left.
        if poll_fn(|cx| self.poll_write(cx)).await.is_ok() {
            let _ = poll_fn(|cx| Pin::new(&mut *self.stream).poll_shutdown(cx)).await;
        }
    }

    /// Reads what is there.
    fn poll_more(&mut self, room: usize, cx: &mut Context<'_>) -> Poll<Result<(), Left>> {
        if self.came.capacity() - self.came.len() < room.min(ROOM / 2) {
            self.came.reserve(room);
        }
        match ready!(pin!(self.stream.read_buf(&mut self.came)).poll(cx)) {
            Ok(1..) => Poll::Ready(Ok(())),
            Ok(0) | Err(_) => Poll::Ready(Err(Left)),
        }
    }
}

/// The client left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left;

/// The body of a request, for whoever answers it.
#[derive(Clone, Copy)]
pub(super) struct Incoming<'a>(pub(super) &'a Mutex<Talk>);

impl Incoming<'_> {
    /// The body, if all of it is there.
    pub(super) fn now(self) -> Option<Bytes> {
        lock(self.0).body_now()
    }

    /// Waits for all of the body.
    pub(super) async fn all(self) -> Result<Bytes, Left> {
        poll_fn(|cx| lock(self.0).poll_body(cx)).await
    }
}

pub(super) fn lock(talk: &Mutex<Talk>) -> MutexGuard<'_, Talk> {
    talk.lock().unwrap_or_else(PoisonError::into_inner)
}
