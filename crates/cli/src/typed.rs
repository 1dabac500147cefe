//! Reads what a person types. Ctrl-C ends the waiting also where herma catches it.

use std::io::{self, stdin};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::failure::Failure;
use crate::interrupt::is_cancelled;

/// How often cancellation is polled.
const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Reads a line from the terminal.
pub(crate) fn line() -> Result<String, Failure> {
    loop {
        let ready = poll(&mut [PollFd::new(&stdin(), PollFlags::IN)], Some(&POLL));
        if is_cancelled() {
            return Err(Failure::blocked("stopped while waiting for an answer"));
        }
        match ready {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => break,
            Err(error) => return Err(Failure::internal(error)),
        }
    }
    let mut line = String::new();
    stdin().read_line(&mut line).map_err(Failure::internal)?;
    Ok(line)
}

/// Reads a line that the terminal does not show.
pub(crate) fn hidden_line() -> Result<String, Failure> {
    let hidden = Hidden::start().map_err(Failure::internal)?;
    let typed = line();
    drop(hidden);
    typed
}

/// The terminal does not show what is typed, until this is dropped.
struct Hidden {
    before: Termios,
}

impl Hidden {
    fn start() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        // Text typed before this was echoed: discard it.
        tcsetattr(stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Self { before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
