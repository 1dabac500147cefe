//! Closes calls whose answer is no stream a moment behind that answer: reads what was used, settles it, and records it.
//! The client does not wait for that, nor does the call that it makes next; and the records of calls that end close
//! together are written in one go. Until it is recorded a call counts as under way.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::runs::Run;
use super::shared::Shared;
use super::whole::WholeAnswer;
use crate::audit::{CallNumber, Unchained};

/// So long calls are gathered. Whoever calls again and again is in the way of what is done in between, so that it is not
/// done often; and who is not settled yet takes from nobody, because before a call is refused all that ended are settled.
const MOMENT: Duration = Duration::from_millis(20);
/// So many are closed before whoever became ready meanwhile has its turn; or this part of all that wait, where that is
/// more: else they would come faster than they are closed.
const AT_ONCE: usize = 4;
const PART: usize = 8;

/// What is still to be closed.
#[derive(Debug, Default)]
pub(super) struct Scribe {
    waiting: Mutex<VecDeque<WholeAnswer>>,
    more: Notify,
    /// Held while calls are closed: who has it knows that everything before is closed.
    writing: Mutex<()>,
}

/// A call that is settled and has no record yet.
#[derive(Debug)]
pub(super) struct EndedCall {
    pub(super) run: Arc<Run>,
    pub(super) number: Option<CallNumber>,
    pub(super) record: Unchained,
}

impl Scribe {
    pub(super) fn take(&self, answer: WholeAnswer) {
        lock(&self.waiting).push_back(answer);
        self.more.notify_one();
    }
}

/// Closes what ends, as long as the router runs.
pub(super) async fn write_on(shared: Arc<Shared>) {
    loop {
        shared.scribe.more.notified().await;
        tokio::time::sleep(MOMENT).await;
        while write_some(&shared, AT_ONCE) {
            tokio::task::yield_now().await;
        }
    }
}

/// Closes what has ended so far. When it returns, no call that ended before is open.
pub(super) fn write(shared: &Shared) {
    write_some(shared, usize::MAX);
}

/// Closes so many or a part of all, the oldest first; says whether there are more.
fn write_some(shared: &Shared, some: usize) -> bool {
    let _alone = lock(&shared.scribe.writing);
    let (now, more) = {
        let mut waiting = lock(&shared.scribe.waiting);
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

/// How many of those that wait are closed now.
fn share(waiting: usize, some: usize) -> usize {
    some.max(waiting / PART).min(waiting)
}

impl EndedCall {
    /// Records it at once, and before it what ended before it.
    pub(super) fn record(self, shared: &Shared) {
        write(shared);
        record(shared, &self.run, vec![(self.number, self.record)]);
    }
}

fn record(shared: &Shared, run: &Run, calls: Vec<(Option<CallNumber>, Unchained)>) {
    let count = calls.len();
    // Where they cannot be written no further call is begun: the audit itself refuses it.
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
                waiting -= share(waiting, AT_ONCE);
            }
            assert!(waiting <= PART * each_turn, "{waiting} wait where {each_turn} come");
        }
        assert_eq!((share(5, usize::MAX), share(3, AT_ONCE), share(0, AT_ONCE)), (5, 3, 0));
    }
}
