//! The body of an answer, as it comes.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use herma_net::IdleTimeout;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::steps::Steps;

/// The body of an upstream's answer. Dropping it ends the call: an upstream that is still answering sees its connection
/// or stream closed.
pub struct UpstreamBody {
    source: Source,
    idle: IdleTimeout,
}

/// Where a body comes from.
pub(super) enum Source {
    /// An upstream over HTTP.
    Http(Incoming),
    /// A script.
    Scripted(Steps),
}

/// Why a body ended before it was whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyBroken {
    /// The connection broke.
    #[error("the upstream broke off in the middle of its answer")]
    Cut,
    /// Nothing came for too long.
    #[error("the upstream said nothing for too long in the middle of its answer")]
    Idle,
}

impl UpstreamBody {
    pub(super) fn new(source: Source, idle: Duration) -> Self {
        Self { source, idle: IdleTimeout::new(idle) }
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = BodyBroken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyBroken>>> {
        let this = self.get_mut();
        let polled = match &mut this.source {
            // hyper's error texts can hold the endpoint, so none of them is passed on.
            Source::Http(incoming) => Pin::new(incoming).poll_frame(cx).map_err(|_| BodyBroken::Cut),
            Source::Scripted(steps) => steps.poll_frame(cx),
        };
        if polled.is_ready() {
            this.idle.reset();
            return polled;
        }
        ready!(this.idle.poll_elapsed(cx));
        Poll::Ready(Some(Err(BodyBroken::Idle)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Http(incoming) => incoming.is_end_stream(),
            Source::Scripted(steps) => steps.is_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Http(incoming) => incoming.size_hint(),
            Source::Scripted(steps) => steps.size_hint(),
        }
    }
}

impl fmt::Debug for UpstreamBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpstreamBody")
    }
}
