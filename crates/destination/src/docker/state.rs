//! What is known of a container so far, told by the daemon's thread to whoever waits.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::wire::Message;
use crate::destination::Exit;
use crate::launcher;
use crate::limits::LimitName;

/// What Docker shows for a first process that was killed, and the keeper for a command that was.
const KILLED: i32 = 137;
/// What the keeper ends with where there is no command.
const NOT_STARTED: i32 = launcher::NOT_STARTED as i32;

#[derive(Default)]
pub(super) struct State {
    known: Mutex<Known>,
    changed: Condvar,
}

#[derive(Clone, Debug, Default)]
struct Known {
    /// The keeper has its order.
    ready: bool,
    /// Why the keeper could not start the command.
    failed: Option<String>,
    /// The limit that something inside met.
    met: Option<LimitName>,
    /// The code that the keeper said the command ended with.
    ended: Option<i32>,
    /// Nothing more comes from the container.
    silent: bool,
    /// herma itself killed it.
    killed: bool,
    /// The container's end: its exit code, or why that is not known.
    end: Option<Result<i32, String>>,
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// As its command did, or as herma had it.
    Exit(Exit),
    /// In another way, which no exit code says.
    Odd(String),
}

impl State {
    pub(super) fn hear(&self, message: Message) {
        self.tell(|known| match message {
            Message::Ready => known.ready = true,
            Message::Failed(why) => known.failed = Some(why),
            Message::Met(limit) => known.met = Some(limit),
            Message::Ended(code) => known.ended = Some(code),
        });
    }

    /// The limit that something inside met, by the keeper's word.
    pub(super) fn met(&self) -> Option<LimitName> {
        self.lock().met
    }

    pub(super) fn silent(&self) {
        self.tell(|known| known.silent = true);
    }

    pub(super) fn killed(&self) {
        self.tell(|known| known.killed |= known.end.is_none());
    }

    pub(super) fn over(&self, end: Result<i32, String>) {
        self.tell(|known| {
            known.end.get_or_insert(end);
        });
    }

    /// Sleeps until the keeper has its order; `false` if the container ended before, or the time is up.
    pub(super) fn ready(&self, at_most: Duration) -> bool {
        self.wait(at_most, |known| (known.ready || known.end.is_some()).then_some(known.ready))
            .unwrap_or(false)
    }

    /// Sleeps until the container is over, but no longer than `at_most`. Of two codes the container's last messages are
    /// waited for a moment longer, because only they say whose code it is.
    pub(super) fn end(&self, at_most: Duration, last_words: Duration) -> Option<End> {
        self.wait(at_most, |known| known.end.as_ref().map(|_| ()))?;
        let unclear = |known: &Known| {
            !known.killed
                && !known.silent
                && known.ended.is_none()
                && known.failed.is_none()
                && matches!(known.end, Some(Ok(KILLED | NOT_STARTED)))
        };
        self.wait(last_words, |known| (!unclear(known)).then_some(()));
        Some(self.lock().judge())
    }

    fn tell(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<T>(&self, at_most: Duration, mut look: impl FnMut(&Known) -> Option<T>) -> Option<T> {
        // A deadline that lies beyond what the clock can say is no deadline.
        let deadline = Instant::now().checked_add(at_most);
        let mut known = self.lock();
        loop {
            if let Some(found) = look(&known) {
                return Some(found);
            }
            let left =
                deadline.map_or(at_most, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return None;
            }
            known = self.changed.wait_timeout(known, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Known {
    fn judge(&self) -> End {
        if let Some(why) = &self.failed {
            return End::Odd(format!("herma could not start the command: {why}"));
        }
        match (&self.end, self.ended) {
            (_, Some(code)) => End::Exit(Exit { code: Some(code), signal: None }),
            _ if self.killed => End::Exit(Exit { code: None, signal: Some(libc::SIGKILL) }),
            (Some(Ok(code)), None) if *code != KILLED && *code != NOT_STARTED => {
                End::Exit(Exit { code: Some(*code), signal: None })
            }
            (Some(Ok(KILLED)), None) => End::Odd(
                "the container was killed from outside: by somebody who may use Docker, or by the kernel for want of \
                 memory"
                    .to_owned(),
            ),
            (Some(Ok(code)), None) => End::Odd(format!("the container ended with {code} before its command")),
            (Some(Err(why)), None) => End::Odd(format!("the container is out of sight: {why}")),
            (None, None) => End::Odd("the container has not ended".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(1);

    fn end(state: &State) -> Option<End> {
        state.end(SOON, SOON)
    }

    #[test]
    fn a_code_is_the_commands_own_unless_it_can_mean_something_else() {
        let state = State::default();
        assert_eq!(end(&state), None);
        state.over(Ok(3));
        assert_eq!(end(&state), Some(End::Exit(Exit { code: Some(3), signal: None })));
    }

    #[test]
    fn a_killed_command_and_a_killed_container_are_told_apart() {
        let command = State::default();
        command.hear(Message::Ended(137));
        command.over(Ok(137));
        assert_eq!(end(&command), Some(End::Exit(Exit { code: Some(137), signal: None })));
        let container = State::default();
        container.over(Ok(137));
        assert!(matches!(end(&container), Some(End::Odd(why)) if why.contains("killed from outside")));
        let own = State::default();
        own.killed();
        own.over(Ok(137));
        assert_eq!(end(&own), Some(End::Exit(Exit { code: None, signal: Some(9) })));
    }

    #[test]
    fn a_command_that_did_not_start_is_no_exit_code() {
        for state in [State::default(), State::default()] {
            state.hear(Message::Failed("no such file".to_owned()));
            state.over(Ok(127));
            assert!(matches!(end(&state), Some(End::Odd(why)) if why.contains("no such file")));
        }
        let silent = State::default();
        silent.over(Ok(127));
        assert!(matches!(end(&silent), Some(End::Odd(_))));
    }
}
