//! The body of a scripted response, step by step.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::vec::IntoIter;

use bytes::Bytes;
use herma_core::units::Span;
use http_body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::body::BodyBroken;
use herma_scripted::StreamStep;

/// The remaining steps.
pub(super) struct Steps {
    left: IntoIter<StreamStep>,
    wait: Option<Pin<Box<Sleep>>>,
    /// The chunk that repeats without end.
    forever: Option<(Span, Bytes)>,
}

impl Steps {
    pub(super) fn new(steps: Vec<StreamStep>) -> Self {
        Self { left: steps.into_iter(), wait: None, forever: None }
    }

    /// A complete body.
    pub(super) fn whole(body: Vec<u8>) -> Self {
        Self::new(vec![StreamStep::Bytes(body)])
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyBroken>>> {
        loop {
            if let Some(wait) = &mut self.wait {
                ready!(wait.as_mut().poll(cx));
                self.wait = None;
                if let Some((_, bytes)) = &self.forever {
                    return data(bytes.clone());
                }
            }
            if let Some((every, bytes)) = &self.forever {
                if bytes.is_empty() {
                    // The idle timeout or the client ends the wait.
                    return Poll::Pending;
                }
                self.wait = Some(Box::pin(sleep(every.duration())));
                continue;
            }
            match self.left.next() {
                Some(StreamStep::Bytes(bytes)) => return data(Bytes::from(bytes)),
                Some(StreamStep::Wait(span)) => self.wait = Some(Box::pin(sleep(span.duration()))),
                Some(StreamStep::Cut) => return Poll::Ready(Some(Err(BodyBroken::Cut))),
                Some(StreamStep::Forever { every, bytes }) => {
                    self.forever = Some((every, Bytes::from(bytes)));
                }
                None => return Poll::Ready(None),
            }
        }
    }

    pub(super) fn is_end(&self) -> bool {
        self.left.as_slice().is_empty() && self.wait.is_none() && self.forever.is_none()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match self.left.as_slice() {
            [StreamStep::Bytes(bytes)] if self.wait.is_none() => SizeHint::with_exact(bytes.len() as u64),
            _ if self.is_end() => SizeHint::with_exact(0),
            _ => SizeHint::default(),
        }
    }
}

#[allow(clippy::unnecessary_wraps, reason = "the shape that a body's poll has")]
fn data(bytes: Bytes) -> Poll<Option<Result<Frame<Bytes>, BodyBroken>>> {
    Poll::Ready(Some(Ok(Frame::data(bytes))))
}
