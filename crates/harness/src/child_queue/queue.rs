//! Where child runs are asked for while the engine of a run works: one at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use super::ask::{ChildAnswer, ChildAsk};

/// A requested child run, and the channel for its answer.
pub(crate) struct WantedChild {
    pub(crate) ask: ChildAsk,
    /// The rules that permit it.
    pub(crate) rules: Vec<String>,
    pub(crate) answer: Sender<ChildAnswer>,
}

/// Where child runs of a run are asked for.
#[derive(Default)]
pub(crate) struct ChildRunQueue {
    /// The sender to the thread that runs them; none while no engine works.
    to_family: Mutex<Option<Sender<WantedChild>>>,
    busy: AtomicBool,
}

impl ChildRunQueue {
    /// Opens it; what comes is received here.
    pub(crate) fn open(&self) -> Receiver<WantedChild> {
        let (to_us, wanted) = channel();
        *self.to_family.lock().unwrap_or_else(PoisonError::into_inner) = Some(to_us);
        wanted
    }

    /// Closes it for good.
    pub(crate) fn close(&self) {
        self.to_family.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Whether a child is at work.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire)
    }

    /// Asks for a child that these rules permit, and waits until it has ended.
    pub(crate) fn ask(&self, ask: ChildAsk, rules: Vec<String>) -> ChildAnswer {
        let refused = |why: &str| ChildAnswer::Refused(why.to_owned());
        let family = self.to_family.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(family) = family else { return refused("no engine of this run is at work") };
        if self.busy.swap(true, Ordering::AcqRel) {
            return refused("another child of this run is at work, and there is one at a time");
        }
        let (to_us, answer) = channel();
        let answered = match family.send(WantedChild { ask, rules, answer: to_us }) {
            Ok(()) => answer.recv().ok(),
            Err(_) => None,
        };
        self.busy.store(false, Ordering::Release);
        answered.unwrap_or_else(|| refused("the run has ended"))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use herma_core::engine::EngineName;

    use super::*;

    fn ask() -> ChildAsk {
        ChildAsk { contract: String::new(), engine: EngineName::fake(), script: None }
    }

    fn refused(answer: ChildAnswer) -> String {
        match answer {
            ChildAnswer::Refused(why) => why,
            ChildAnswer::Ended { .. } => panic!("there is no such run"),
        }
    }

    #[test]
    fn there_is_one_child_at_a_time_and_none_where_no_engine_works() {
        let door = ChildRunQueue::default();
        assert!(refused(door.ask(ask(), Vec::new())).contains("no engine"));
        let wanted = door.open();
        thread::scope(|scope| {
            let first = scope.spawn(|| refused(door.ask(ask(), Vec::new())));
            let WantedChild { answer, .. } = wanted.recv().unwrap();
            assert!(door.is_busy());
            assert!(refused(door.ask(ask(), Vec::new())).contains("one at a time"));
            answer.send(ChildAnswer::Refused("that was it".to_owned())).unwrap();
            assert_eq!(first.join().unwrap(), "that was it");
        });
        assert!(!door.is_busy());
        drop(wanted);
        assert!(refused(door.ask(ask(), Vec::new())).contains("has ended"));
        door.close();
        assert!(refused(door.ask(ask(), Vec::new())).contains("no engine"));
    }
}
