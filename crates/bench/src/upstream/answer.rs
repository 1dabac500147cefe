//! The bodies that the upstream answers with.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::wire::{self, Shape};

/// The bytes of every answer, made once.
#[derive(Clone)]
pub(super) struct Canned {
    whole: Bytes,
    chunks: Arc<[Bytes]>,
    tail: Bytes,
}

/// One answer.
pub(super) enum Answer {
    /// All of it at once, until it was taken.
    Whole(Option<Bytes>),
    /// Chunk by chunk.
    Stream(Stream),
}

/// A stream under way.
pub(super) struct Stream {
    canned: Canned,
    /// Chunks that are left, and then the tail.
    left: u32,
    ended: bool,
    /// Whether the head was given the chance to leave first.
    head_left: bool,
    pace: Duration,
    /// Until the next chunk, where chunks are paced.
    wait: Option<Pin<Box<Sleep>>>,
}

impl Canned {
    pub(super) fn new() -> Self {
        Self { whole: wire::answer(), chunks: wire::chunks().into(), tail: wire::tail() }
    }

    pub(super) fn whole(&self) -> Answer {
        Answer::Whole(Some(self.whole.clone()))
    }

    pub(super) fn stream(&self, shape: Shape) -> Answer {
        Answer::Stream(Stream {
            canned: self.clone(),
            left: shape.chunks,
            ended: false,
            head_left: false,
            pace: shape.pace,
            wait: None,
        })
    }
}

impl Answer {
    pub(super) fn nothing() -> Self {
        Self::Whole(None)
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(stream) => {
                stream.poll_next(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

impl Stream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.head_left {
            // Head and first chunk leave in two writes, as they do where a model has to think in between. No timer: it
            // would add its own jitter to what is measured.
            self.head_left = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(wait) = &mut self.wait {
            ready!(wait.as_mut().poll(cx));
        }
        if self.left == 0 {
            let tail = (!self.ended).then(|| self.canned.tail.clone());
            self.ended = true;
            return Poll::Ready(tail);
        }
        self.left -= 1;
        self.rest();
        let chunks = &self.canned.chunks;
        Poll::Ready(Some(chunks[self.left as usize % chunks.len()].clone()))
    }

    /// Sets when the next chunk is due: by the clock of the stream, so that a late one does not put off the others.
    fn rest(&mut self) {
        if self.pace.is_zero() {
            return;
        }
        match &mut self.wait {
            Some(wait) => {
                let next = wait.deadline() + self.pace;
                wait.as_mut().reset(next);
            }
            None => self.wait = Some(Box::pin(tokio::time::sleep_until(Instant::now() + self.pace))),
        }
    }
}
