//! Settles and records calls without a stream in the background, in batches. Neither the client nor its next call waits
//! for that. Until it is recorded, a call counts as in flight.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::runs::Run;
use super::shared::Shared;
use super::whole::WholeAnswer;
use crate::audit::{CallNumber, Unchained};

/// The batch interval. Ended calls are settled before any call is refused, so batching never causes a false refusal.
const BATCH_INTERVAL: Duration = Duration::from_millis(20);
/// The batch size: so many calls, or this fraction of the queue where that is more, so that the queue cannot grow without
/// bound. Other tasks run between two batches.
const BATCH: usize = 4;
const QUEUE_FRACTION: usize = 8;

/// The queue of calls that have ended and are not recorded.
#[derive(Debug, Default)]
pub(super) struct AuditWriter {
    waiting: Mutex<VecDeque<WholeAnswer>>,
    more: Notify,
    /// Held while a batch is written: its holder knows that every earlier batch is complete.
    writing: Mutex<()>,
}

/// A settled call without a record.
#[derive(Debug)]
pub(super) struct EndedCall {
    pub(super) run: Arc<Run>,
    pub(super) number: Option<CallNumber>,
    pub(super) record: Unchained,
}

impl AuditWriter {
    pub(super) fn take(&self, answer: WholeAnswer) {
        lock(&self.waiting).push_back(answer);
        self.more.notify_one();
    }
}

/// Records ended calls as long as the router runs.
pub(super) async fn write_on(shared: Arc<Shared>) {
    loop {
        shared.audit_writer.more.notified().await;
        tokio::time::sleep(BATCH_INTERVAL).await;
        while write_some(&shared, BATCH) {
            tokio::task::yield_now().await;
        }
    }
}

/// Records every call that has ended. No call that ended before is open when it returns.
pub(super) fn write(shared: &Shared) {
    write_some(shared, usize::MAX);
}

/// Records a batch, the oldest first. Gives whether there are more.
fn write_some(shared: &Shared, some: usize) -> bool {
    let _alone = lock(&shared.audit_writer.writing);
    let (now, more) = {
        let mut waiting = lock(&shared.audit_writer.waiting);
        let count = share(waiting.len(), some);
        let now: Vec<WholeAnswer> = waiting.drain(..count).collect();
        (now, waiting.len())
    };
    let mut ended = now.into_iter().filter_map(WholeAnswer::close).peekable();
    while let Some(first) = ended.next() {
        let run = first.run;
        let mut calls = vec![(first.number, first.record)];
        while let Some(next) = ended.next_if(|next| Arc::ptr_eq(&next.run, &run)) {
            calls.push((next.number, next.record));
        }
        record(shared, &run, calls);
    }
    more > 0
}

/// The size of the next batch.
fn share(waiting: usize, some: usize) -> usize {
    some.max(waiting / QUEUE_FRACTION).min(waiting)
}

impl EndedCall {
    /// Records it at once, behind every call that ended before.
    pub(super) fn record(self, shared: &Shared) {
        write(shared);
        record(shared, &self.run, vec![(self.number, self.record)]);
    }
}

fn record(shared: &Shared, run: &Run, calls: Vec<(Option<CallNumber>, Unchained)>) {
    let count = calls.len();
    // The audit log refuses further calls after a failed write.
    if run.audit.end_all(calls).is_err() {
        shared.metrics.unwritten(count);
    }
    for _ in 0..count {
        shared.metrics.over();
        run.end();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_fast_calls_end_they_do_not_pile_up() {
        for each_turn in [1, 8, 64, 5000] {
            let mut waiting = 0;
            for _ in 0..1000 {
                waiting += each_turn;
                waiting -= share(waiting, BATCH);
            }
            assert!(waiting <= QUEUE_FRACTION * each_turn, "{waiting} wait where {each_turn} come");
        }
        assert_eq!((share(5, usize::MAX), share(3, BATCH), share(0, BATCH)), (5, 3, 0));
    }
}
