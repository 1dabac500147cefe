//! Runs as a service: any number of runs in one process, each on its own thread, watched and cancelled on its own.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use herma_core::RunId;
use herma_core::cancellation::{CancelReason, CancellationToken};
use herma_evidence::{RunFeed, RunUpdates};

use crate::error::OrderError;
use crate::installation::Installation;
use crate::order::{Occasion, Order};
use crate::pipeline::run_submitted;
use crate::progress::Unwatched;
use crate::submission::{Finished, Submission};

/// The stack of a run's thread, as large as that of a main thread.
const STACK_BYTES: usize = 8 << 20;

/// Starts runs of one installation. Clones share it.
#[derive(Clone)]
pub struct RunService {
    installation: Arc<Installation>,
    slots: Option<Arc<Slots>>,
}

impl RunService {
    /// A service without a limit on concurrent runs.
    #[must_use]
    pub fn new(installation: Arc<Installation>) -> Self {
        Self { installation, slots: None }
    }

    /// At most this many runs at once, one at least: `submit` waits for a free slot.
    #[must_use]
    pub fn with_max_concurrent(self, runs: usize) -> Self {
        Self { slots: Some(Arc::new(Slots { free: Mutex::new(runs.max(1)), freed: Condvar::new() })), ..self }
    }

    /// Starts a run. It runs to its report, whether or not the handle is kept.
    pub fn submit(&self, order: Order) -> Result<RunHandle, OrderError> {
        let slot = self.slots.as_ref().map(Slots::take);
        let submission = Submission::new(&self.installation, &self.installation.cancellation)?;
        let Submission { id, ref cancellation, ref feed, .. } = submission;
        let (cancellation, feed) = (cancellation.clone(), Arc::clone(feed));
        let installation = Arc::clone(&self.installation);
        let pipeline = move || {
            let _held = (slot, CloseFeed(Arc::clone(&submission.feed)));
            run_submitted(&installation, &order, Occasion::default(), &submission, &Unwatched)
        };
        let thread = thread::Builder::new().name(format!("run {}", id.short())).stack_size(STACK_BYTES);
        let cannot = |error: std::io::Error| OrderError::internal(format!("cannot start a thread: {error}"));
        Ok(RunHandle { id, cancellation, feed, thread: thread.spawn(pipeline).map_err(cannot)? })
    }
}

/// A submitted run.
#[derive(Debug)]
pub struct RunHandle {
    id: RunId,
    cancellation: CancellationToken,
    feed: Arc<RunFeed>,
    thread: JoinHandle<Result<Finished, OrderError>>,
}

impl RunHandle {
    /// The name of the run.
    #[must_use]
    pub fn id(&self) -> RunId {
        self.id
    }

    /// Every step and event from the first on, as they happen, until the run is closed.
    #[must_use]
    pub fn updates(&self) -> RunUpdates {
        self.feed.subscribe()
    }

    /// Cancels this run alone: it closes as `blocked: interrupted`.
    pub fn cancel(&self) {
        let _ = self.cancellation.cancel(CancelReason::Request);
    }

    /// Whether the run is closed, or could not be.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end of the run. An error means that there is no run, or one that recovery has to close.
    pub fn wait(self) -> Result<Finished, OrderError> {
        self.thread.join().unwrap_or_else(|_| Err(OrderError::internal("the run's thread panicked")))
    }
}

/// Ends the subscriptions when the run's thread ends, also by a panic.
struct CloseFeed(Arc<RunFeed>);

impl Drop for CloseFeed {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A counting semaphore.
struct Slots {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Slots {
    fn take(self: &Arc<Self>) -> Slot {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Slot(Arc::clone(self))
    }
}

/// One taken slot; dropping it frees it.
struct Slot(Arc<Slots>);

impl Drop for Slot {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}
