//! Asks a program about itself, with a limit on the time and on the output: a shim or a wrapper can wait for ever.

use std::ffi::OsStr;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use herma_destination::tool::{CallLimits, Tool, ToolInvocation};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::io::Errno;

/// The longest wait for an answer. The first start of a large runtime from a slow disk takes seconds.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest answer.
const MAX_OUTPUT_BYTES: usize = 64 << 10;
/// The limits of a program that closes its output and runs on. Memory is not what hurts there, and runtimes reserve much of it.
const LIMITS: CallLimits =
    CallLimits { cpu_seconds: TIMEOUT.as_secs(), memory_bytes: 1 << 40, file_bytes: 64 << 20 };

/// Which streams hold the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Standard output.
    Output,
    /// Standard output and standard error.
    OutputAndErrors,
}

/// A question to a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query<'a> {
    pub(super) program: &'a Path,
    pub(super) args: &'a [&'a str],
    pub(super) path: &'a OsStr,
    pub(super) home: &'a Path,
}

impl Query<'_> {
    /// The answer; none if the program fails, takes too long or says too much.
    pub(super) fn ask(&self, said: Said) -> Option<Vec<u8>> {
        self.ask_within(said, TIMEOUT)
    }

    fn ask_within(&self, said: Said, timeout: Duration) -> Option<Vec<u8>> {
        let (own, shell) = (Tool::at("the tool", self.program.to_owned()), Tool::at("sh", "/bin/sh".into()));
        let call = match said {
            Said::Output => own.call(),
            // The shell becomes the program, so that a kill reaches it.
            Said::OutputAndErrors => shell.call().arg("-c").arg("exec \"$0\" \"$@\" 2>&1").arg(self.program),
        };
        answer(call.args(self.args.iter().copied()).env("PATH", self.path).env("HOME", self.home), timeout)
    }
}

fn answer(call: ToolInvocation<'_>, timeout: Duration) -> Option<Vec<u8>> {
    let deadline = Instant::now() + timeout;
    // Dropping it kills the program.
    let mut running = call.spawn().ok()?;
    running.close_stdin();
    // A machine may have lower limits already. The deadline holds anyway.
    let _ = running.limit(LIMITS);
    let (mut answer, mut buffer) = (Vec::new(), [0; 4 << 10]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let (_, stdout) = running.streams();
        let left = Timespec::try_from(left).ok()?;
        match poll(&mut [PollFd::new(stdout, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => continue,
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
        match stdout.read(&mut buffer).ok()? {
            0 => break,
            read => answer.extend_from_slice(buffer.get(..read)?),
        }
        if answer.len() > MAX_OUTPUT_BYTES {
            return None;
        }
    }
    running.finish().ok()?;
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(script: &str, said: Said, timeout: Duration) -> Option<Vec<u8>> {
        let args = ["-c", script];
        let query = Query {
            program: "/bin/sh".as_ref(),
            args: &args,
            path: "/usr/bin:/bin".as_ref(),
            home: "/".as_ref(),
        };
        query.ask_within(said, timeout)
    }

    #[test]
    fn a_program_that_waits_or_never_stops_talking_has_no_answer() {
        let long = Duration::from_mins(5);
        assert_eq!(ask("echo 1; echo 2 >&2", Said::Output, long).as_deref(), Some(&b"1\n"[..]));
        assert_eq!(ask("echo 1; echo 2 >&2", Said::OutputAndErrors, long).as_deref(), Some(&b"1\n2\n"[..]));
        assert_eq!(ask("echo 1; exit 3", Said::Output, long), None);
        assert_eq!(ask("while :; do echo 1; done", Said::Output, long), None);
        assert_eq!(ask("echo 1; exec sleep 600", Said::OutputAndErrors, Duration::from_millis(200)), None);
    }
}
