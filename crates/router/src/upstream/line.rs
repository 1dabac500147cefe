//! One connection over HTTP/1.1 to an upstream: it sends a request, and reads the answer.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWrite as _};
use tokio::task::unconstrained;

use super::answer_head::{AnswerHead, Framing};
use super::chunked::Next;
use super::problem::SendError;
use super::wire::Wire;
use crate::patience::Patience;

/// So much room there is when something is read.
const ROOM: usize = 8 << 10;

/// One connection.
pub(super) struct Line {
    wire: Wire,
    /// What came and was not used.
    came: BytesMut,
    /// How long an answer may take to begin. Kept for all calls on the connection, so that none costs a timer.
    patience: Patience,
}

/// A request as it goes over the wire.
#[derive(Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) head: &'a [u8],
    pub(super) body: &'a [u8],
}

/// There is no answer.
pub(super) struct Unanswered {
    pub(super) why: SendError,
    /// Whether it is certain that none of the request was written.
    pub(super) is_unsent: bool,
}

/// The body, or the connection, broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

impl Line {
    pub(super) fn new(wire: Wire, first_byte: Duration) -> Self {
        Self { wire, came: BytesMut::new(), patience: Patience::new(first_byte) }
    }

    /// Whether the other side still holds it, and said nothing that nobody asked for.
    pub(super) fn is_open(&mut self) -> bool {
        if !self.came.is_empty() {
            return false;
        }
        // A task that has read much already is told to wait, which here would look like silence.
        let more = unconstrained(poll_fn(|cx| self.poll_more(cx)));
        pin!(more).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// Sends a request and reads the head of its answer. Where that comes before all of the request was sent, the
    /// connection is not used again.
    pub(super) async fn ask(&mut self, message: Message<'_>) -> Result<AnswerHead, Unanswered> {
        self.patience.rewarded();
        let mut sending = Sending { message, sent: 0, state: Sent::No, early: None };
        poll_fn(|cx| self.poll_ask(&mut sending, cx)).await
    }

    fn poll_ask(
        &mut self,
        sending: &mut Sending<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<AnswerHead, Unanswered>> {
        sending.poll(&mut self.wire, cx);
        if sending.state != Sent::No
            && let Some(head) = sending.early.take()
        {
            return Poll::Ready(Ok(head));
        }
        // Behind a head comes its body, whatever that looks like.
        if sending.early.is_none()
            && let answered @ Poll::Ready(_) = self.poll_answer(sending, cx)
        {
            return answered;
        }
        ready!(self.patience.poll_over(cx));
        Poll::Ready(Err(Unanswered { why: SendError::FirstByteTimeout, is_unsent: false }))
    }

    fn poll_answer(
        &mut self,
        sending: &mut Sending<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<AnswerHead, Unanswered>> {
        let unanswered =
            |why, is_unsent| Poll::Ready(Err(Unanswered { why: SendError::Ambiguous(why), is_unsent }));
        loop {
            match AnswerHead::take(&mut self.came) {
                Ok(Some(mut head)) => {
                    head.is_kept &= sending.state == Sent::All;
                    // Who agrees before all is there wants the rest; who refuses does not.
                    if sending.state == Sent::No && head.status.is_success() {
                        sending.early = Some(head);
                        return Poll::Pending;
                    }
                    return Poll::Ready(Ok(head));
                }
                Ok(None) => {}
                Err(_) => return unanswered("not_http", false),
            }
            // Also if it could not be sent: who does not want all of it may have said why.
            match self.poll_more(cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Pending if sending.state != Sent::Failed => return Poll::Pending,
                Poll::Ready(_) | Poll::Pending => {
                    let is_unsent = sending.state == Sent::Failed && sending.sent == 0;
                    return unanswered("closed_before_headers", is_unsent);
                }
            }
        }
    }

    /// The next part of a body; none behind its end.
    pub(super) fn poll_body(
        &mut self,
        framing: &mut Framing,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Broken>>> {
        loop {
            match framing {
                Framing::Length(0) => return Poll::Ready(None),
                Framing::Length(left) if !self.came.is_empty() => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(self.came.len());
                    *left -= here as u64;
                    return Poll::Ready(Some(Ok(self.came.split_to(here).freeze())));
                }
                Framing::Close if !self.came.is_empty() => {
                    return Poll::Ready(Some(Ok(self.came.split().freeze())));
                }
                Framing::Chunked(chunked) => match chunked.next(&mut self.came) {
                    Ok(Next::Data(data)) => return Poll::Ready(Some(Ok(data))),
                    Ok(Next::Over) => return Poll::Ready(None),
                    Ok(Next::More) => {}
                    Err(_) => return Poll::Ready(Some(Err(Broken))),
                },
                Framing::Length(_) | Framing::Close => {}
            }
            match ready!(self.poll_more(cx)) {
                Ok(0) if *framing == Framing::Close => {
                    *framing = Framing::Length(0);
                    return Poll::Ready(None);
                }
                Ok(0) | Err(_) => return Poll::Ready(Some(Err(Broken))),
                Ok(_) => {}
            }
        }
    }

    /// Reads what is there. Nothing is its end.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.came.capacity() - self.came.len() < ROOM / 2 {
            self.came.reserve(ROOM);
        }
        pin!(self.wire.read_buf(&mut self.came)).poll(cx)
    }
}

/// A request that is being sent.
struct Sending<'a> {
    message: Message<'a>,
    sent: usize,
    state: Sent,
    /// The head of an answer that came before all was sent.
    early: Option<AnswerHead>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// Not all of it.
    No,
    All,
    /// The other side does not take it.
    Failed,
}

impl Sending<'_> {
    /// Sends as much as goes.
    fn poll(&mut self, wire: &mut Wire, cx: &mut Context<'_>) {
        let Message { head, body } = self.message;
        while self.state == Sent::No {
            let (head, body) = if self.sent < head.len() {
                (&head[self.sent..], body)
            } else {
                (&[][..], &body[self.sent - head.len()..])
            };
            let mut wire = Pin::new(&mut *wire);
            let polled = match (head, body) {
                ([], []) => wire.poll_flush(cx).map_ok(|()| None),
                ([], body) => wire.poll_write(cx, body).map_ok(Some),
                (head, body) => wire
                    .as_mut()
                    .poll_write_vectored(cx, &[IoSlice::new(head), IoSlice::new(body)])
                    .map_ok(Some),
            };
            match polled {
                Poll::Pending => return,
                Poll::Ready(Ok(None)) => self.state = Sent::All,
                Poll::Ready(Ok(Some(more))) if more > 0 => self.sent += more,
                Poll::Ready(_) => self.state = Sent::Failed,
            }
        }
    }
}
