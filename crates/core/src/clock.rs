//! Time as a value that is handed in.

use jiff::Timestamp;

/// Where the time comes from. The one real implementation is `herma_harness::SystemClock`.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
}
