//! Cancellation token: set once, by the signal handler or by a request, and polled by every wait.

use std::fmt;
use std::sync::{Arc, OnceLock};

/// A signal that ends a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    /// The terminal is gone.
    HangUp,
    /// Ctrl-C at the terminal.
    Interrupt,
    /// A request to end from another process or the system.
    Terminate,
}

impl EndSignal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::HangUp, Self::Interrupt, Self::Terminate];

    /// The name in signal(7).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HangUp => "SIGHUP",
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }
}

impl fmt::Display for EndSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why something was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// A signal to the whole process.
    Signal(EndSignal),
    /// A request to cancel one run.
    Request,
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(signal) => signal.fmt(f),
            Self::Request => f.write_str("a request to cancel this run"),
        }
    }
}

/// Cancellation token. Clones share one state; cancelling a parent cancels its children, and not the other way round.
#[derive(Clone, Debug, Default)]
pub struct CancellationToken(Arc<State>);

#[derive(Debug, Default)]
struct State {
    reason: OnceLock<CancelReason>,
    parent: Option<CancellationToken>,
}

impl CancellationToken {
    /// A token that is cancelled on its own or with this one.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(Arc::new(State { reason: OnceLock::new(), parent: Some(self.clone()) }))
    }

    /// Cancels; false if it was cancelled before, and then the first reason stays.
    #[must_use = "false means that another reason came first"]
    pub fn cancel(&self, reason: CancelReason) -> bool {
        !self.is_cancelled() && self.0.reason.set(reason).is_ok()
    }

    /// The reason, once it is cancelled.
    #[must_use]
    pub fn reason(&self) -> Option<CancelReason> {
        let own = self.0.reason.get().copied();
        own.or_else(|| self.0.parent.as_ref()?.reason())
    }

    /// The signal that cancelled it, if one did.
    #[must_use]
    pub fn signal(&self) -> Option<EndSignal> {
        match self.reason()? {
            CancelReason::Signal(signal) => Some(signal),
            CancelReason::Request => None,
        }
    }

    /// Whether it is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.reason().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMINATE: CancelReason = CancelReason::Signal(EndSignal::Terminate);

    #[test]
    fn the_first_reason_stays_and_every_clone_sees_it() {
        let (one, other) = (CancellationToken::default(), CancellationToken::default());
        let clone = one.clone();
        assert_eq!((one.reason(), clone.is_cancelled()), (None, false));
        assert!(one.cancel(TERMINATE));
        assert!(!clone.cancel(CancelReason::Request));
        assert_eq!((one.reason(), clone.signal()), (Some(TERMINATE), Some(EndSignal::Terminate)));
        assert!(!other.is_cancelled());
    }

    #[test]
    fn a_child_is_cancelled_alone_or_with_its_parent() {
        let process = CancellationToken::default();
        let (one, other) = (process.child(), process.child());
        assert!(one.cancel(CancelReason::Request));
        assert!(one.is_cancelled() && !other.is_cancelled() && !process.is_cancelled());
        assert!(process.cancel(TERMINATE));
        assert_eq!((one.reason(), other.reason()), (Some(CancelReason::Request), Some(TERMINATE)));
        assert!(!other.cancel(CancelReason::Request), "it was cancelled with its parent");
        assert_eq!(other.signal(), Some(EndSignal::Terminate));
    }
}
