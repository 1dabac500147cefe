//! The limits of a run's processes, and how one of them ended.

use std::io;
use std::time::Duration;

use herma_core::Contract;
use herma_destination::{Exit, Limits, Process};

/// The pause before the next search for processes that hold a stream open.
pub(crate) const HOLDER_INTERVAL: Duration = Duration::from_millis(100);
/// The longest wait for the end of a dead process's streams.
pub(crate) const STREAM_TIMEOUT: Duration = Duration::from_secs(30);

/// The exit of a process that was lost from sight.
pub(crate) const UNKNOWN_EXIT: Exit = Exit { code: None, signal: None };

/// The limits of every process of a run, and the time within which it has to start.
pub(crate) fn limits(contract: &Contract) -> Limits {
    let limits = &contract.terms.limits;
    Limits::with_memory(limits.memory).within(limits.total.duration())
}

/// How a process ended, and what herma knows beyond its exit.
pub(crate) struct ProcessEnd {
    pub(crate) exit: Option<Exit>,
    pub(crate) reason: Option<String>,
}

impl ProcessEnd {
    /// The result of a wait. A lost process, as when its container is killed, is its own failure and not herma's.
    pub(crate) fn of(waited: io::Result<Option<Exit>>, process: &dyn Process) -> Self {
        let over = process.exceeded_limit().map(|limit| format!("it met the limit `{limit}`"));
        match waited {
            Ok(exit) => Self { exit, reason: over },
            Err(why) => Self { exit: Some(UNKNOWN_EXIT), reason: over.or_else(|| Some(why.to_string())) },
        }
    }
}
