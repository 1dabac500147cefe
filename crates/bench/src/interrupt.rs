//! Ctrl-C. Children have sessions of their own and do not get the signal, so they are ended here.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use crate::error::BenchError;

/// A runtime that stops what it does when this process is asked to end.
pub(crate) struct Interruptible {
    runtime: Runtime,
    signals: RefCell<[Signal; 2]>,
    interrupted: Cell<bool>,
}

impl Interruptible {
    pub(crate) fn new() -> Result<Self, BenchError> {
        let failed = || BenchError::io("cannot start a runtime");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed())?;
        let signals = {
            let _inside = runtime.enter();
            let listen = |kind| signal(kind).map_err(failed());
            RefCell::new([listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?])
        };
        Ok(Self { runtime, signals, interrupted: Cell::new(false) })
    }

    /// Does the work to its end, unless that takes too long, or this process is asked to end, now or since the last work.
    pub(crate) fn run<T>(
        &self,
        within: Duration,
        work: impl Future<Output = Result<T, BenchError>>,
    ) -> Result<T, BenchError> {
        self.check()?;
        let mut signals = self.signals.borrow_mut();
        let [interrupt, terminate] = &mut *signals;
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = interrupt.recv() => self.interrupted.set(true),
                _ = terminate.recv() => self.interrupted.set(true),
                done = timeout(within, work) => return done.unwrap_or(Err(BenchError::TooLong(within))),
            }
            Err(BenchError::Interrupted)
        })
    }

    /// An error if this process was asked to end, where nothing of the work waits in the runtime.
    pub(crate) fn breathe(&self) -> Result<(), BenchError> {
        // The runtime hears of a signal only while it waits.
        self.run(Duration::from_secs(10), async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(())
        })
    }

    /// An error if this process was asked to end.
    pub(crate) fn check(&self) -> Result<(), BenchError> {
        if self.interrupted.get() { Err(BenchError::Interrupted) } else { Ok(()) }
    }
}
