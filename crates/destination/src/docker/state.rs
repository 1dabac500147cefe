//! The state of a container, shared between the client thread and waiting callers.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::wire::KeeperMessage;
use crate::destination::Exit;
use crate::launcher;
use crate::limits::LimitName;

/// Docker's code for a killed init process, and the keeper's for a killed command.
const KILLED: i32 = 137;
/// The keeper's exit code if the command was not started.
const NOT_STARTED: i32 = launcher::NOT_STARTED as i32;

#[derive(Default)]
pub(super) struct ContainerState {
    known: Mutex<Observed>,
    changed: Condvar,
}

#[derive(Clone, Debug, Default)]
struct Observed {
    /// The keeper has received its order.
    ready: bool,
    /// Why the keeper could not start the command.
    failed: Option<String>,
    /// The limit that was exceeded inside.
    met: Option<LimitName>,
    /// The command's exit code as the keeper reported it.
    ended: Option<i32>,
    /// The output streams are closed.
    silent: bool,
    /// herma itself killed it.
    killed: bool,
    /// The container's exit code, or why it is unknown.
    end: Option<Result<i32, String>>,
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ContainerEnd {
    /// The exit of its command, or the kill by herma.
    Exit(Exit),
    /// Another end, which has no exit code.
    Odd(String),
}

impl ContainerState {
    pub(super) fn hear(&self, message: KeeperMessage) {
        self.tell(|known| match message {
            KeeperMessage::Ready => known.ready = true,
            KeeperMessage::Failed(why) => known.failed = Some(why),
            KeeperMessage::Met(limit) => known.met = Some(limit),
            KeeperMessage::Ended(code) => known.ended = Some(code),
        });
    }

    /// The limit that was exceeded inside, as the keeper reported it.
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

    /// Blocks until the keeper has its order; `false` if the container ended before, or after the timeout.
    pub(super) fn ready(&self, at_most: Duration) -> bool {
        self.wait(at_most, |known| (known.ready || known.end.is_some()).then_some(known.ready))
            .unwrap_or(false)
    }

    /// Blocks until the container has ended, at most for `at_most`. Two ambiguous codes wait a little longer for
    /// the last messages, which tell whose code it is.
    pub(super) fn end(&self, at_most: Duration, stderr_head: Duration) -> Option<ContainerEnd> {
        self.wait(at_most, |known| known.end.as_ref().map(|_| ()))?;
        let unclear = |known: &Observed| {
            !known.killed
                && !known.silent
                && known.ended.is_none()
                && known.failed.is_none()
                && matches!(known.end, Some(Ok(KILLED | NOT_STARTED)))
        };
        self.wait(stderr_head, |known| (!unclear(known)).then_some(()));
        Some(self.lock().judge())
    }

    fn tell(&self, change: impl FnOnce(&mut Observed)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Observed> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<T>(&self, at_most: Duration, mut look: impl FnMut(&Observed) -> Option<T>) -> Option<T> {
        // A deadline beyond the range of the clock is no deadline.
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

impl Observed {
    fn judge(&self) -> ContainerEnd {
        if let Some(why) = &self.failed {
            return ContainerEnd::Odd(format!("herma could not start the command: {why}"));
        }
        match (&self.end, self.ended) {
            (_, Some(code)) => ContainerEnd::Exit(Exit { code: Some(code), signal: None }),
            _ if self.killed => ContainerEnd::Exit(Exit { code: None, signal: Some(libc::SIGKILL) }),
            (Some(Ok(code)), None) if *code != KILLED && *code != NOT_STARTED => {
                ContainerEnd::Exit(Exit { code: Some(*code), signal: None })
            }
            (Some(Ok(KILLED)), None) => ContainerEnd::Odd(
                "the container was killed from outside: by a user of Docker, or by the kernel's OOM killer"
                    .to_owned(),
            ),
            (Some(Ok(code)), None) => {
                ContainerEnd::Odd(format!("the container ended with {code} before its command"))
            }
            (Some(Err(why)), None) => {
                ContainerEnd::Odd(format!("the state of the container is unknown: {why}"))
            }
            (None, None) => ContainerEnd::Odd("the container has not ended".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(1);

    fn end(state: &ContainerState) -> Option<ContainerEnd> {
        state.end(SOON, SOON)
    }

    #[test]
    fn a_code_is_the_commands_own_unless_it_can_mean_something_else() {
        let state = ContainerState::default();
        assert_eq!(end(&state), None);
        state.over(Ok(3));
        assert_eq!(end(&state), Some(ContainerEnd::Exit(Exit { code: Some(3), signal: None })));
    }

    #[test]
    fn a_killed_command_and_a_killed_container_are_told_apart() {
        let command = ContainerState::default();
        command.hear(KeeperMessage::Ended(137));
        command.over(Ok(137));
        assert_eq!(end(&command), Some(ContainerEnd::Exit(Exit { code: Some(137), signal: None })));
        let container = ContainerState::default();
        container.over(Ok(137));
        assert!(
            matches!(end(&container), Some(ContainerEnd::Odd(why)) if why.contains("killed from outside"))
        );
        let own = ContainerState::default();
        own.killed();
        own.over(Ok(137));
        assert_eq!(end(&own), Some(ContainerEnd::Exit(Exit { code: None, signal: Some(9) })));
    }

    #[test]
    fn a_command_that_did_not_start_is_no_exit_code() {
        for state in [ContainerState::default(), ContainerState::default()] {
            state.hear(KeeperMessage::Failed("no such file".to_owned()));
            state.over(Ok(127));
            assert!(matches!(end(&state), Some(ContainerEnd::Odd(why)) if why.contains("no such file")));
        }
        let silent = ContainerState::default();
        silent.over(Ok(127));
        assert!(matches!(end(&silent), Some(ContainerEnd::Odd(_))));
    }
}
