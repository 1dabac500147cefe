//! A process inside bubblewrap.
//!
//! bubblewrap is two processes: the one that herma started, and the first process of the new pid namespace. When
//! the second dies the kernel kills everything in the namespace and ends it last, so its end is the end of all.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, pidfd_send_signal};
use serde::Deserialize;

use super::watch::{Opened, Watch};
use crate::cgroup::Group;
use crate::destination::{Exit, Process, StartError};
use crate::doors::Doors;
use crate::limits::{LimitName, Limits};
use crate::proc::{self, Seen};
use crate::running::Running;

/// A namespace that is not dead by then holds a process that hangs in the kernel.
const PATIENCE: Duration = Duration::from_secs(10);

/// What bubblewrap says of itself: one object when the namespaces stand, one when the command has ended.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Status {
    child_pid: Option<i32>,
    exit_code: Option<i32>,
}

pub(super) struct SandboxProcess {
    bwrap: Bwrap,
    /// The first process of the namespace, and the handle on it.
    first: (Seen, OwnedFd),
    status: File,
    report: File,
    said: Vec<u8>,
    gone: bool,
    watch: Option<Watch>,
    /// By which the launcher knows that herma is alive.
    life: Option<File>,
    /// The way out, until everything inside is dead.
    pub(super) doors: Option<Doors>,
    /// What its group counted before that was taken away.
    met: Option<LimitName>,
    /// Goes last: a group can be removed only when everything in it is dead.
    group: Option<Group>,
}

/// herma's ends of the pipes into a sandbox.
pub(super) struct Pipes {
    /// What bubblewrap says of itself.
    pub(super) status: OwnedFd,
    /// Why the launcher could not become the command; nothing if it could.
    pub(super) report: OwnedFd,
}

/// What keeps the command from starting: herma's ends of two pipes, at which somebody waits.
pub(super) struct Gates {
    /// bubblewrap waits there, where its first process has to be brought into a group before it starts anything. It goes on as
    /// well where this is closed.
    pub(super) outer: Option<File>,
    /// The launcher waits there, and ends where this is closed.
    pub(super) inner: File,
}

/// Walls that are being made, nobody has looked how far.
pub(super) struct Rising {
    pub(super) bwrap: Bwrap,
    pub(super) pipes: Pipes,
    /// Goes last: a group can be removed only when everything in it is dead.
    pub(super) group: Option<Group>,
}

/// The bubblewrap that herma started. Dropping it ends it with what it has started so far.
pub(super) struct Bwrap(pub(super) Running);

impl SandboxProcess {
    /// Waits for the namespaces and takes hold of their first process: from its first instruction on the command can be
    /// killed with all that it starts.
    /// One that has not made them within `patience` is ended, and there is nothing.
    pub(super) fn take_hold(mut walls: Rising, patience: Duration) -> Result<Option<Self>, StartError> {
        let mut said = Vec::new();
        let first = match first_process(&walls.bwrap, &walls.pipes.status, patience, &mut said) {
            Ok(First::There(first)) => first,
            Ok(First::Late) => return Ok(None),
            Ok(First::Gone) => {
                walls.bwrap.end();
                return Err(gave_up(&mut walls.bwrap));
            }
            Err(error) => return Err(StartError::io("cannot hear from bubblewrap")(error)),
        };
        let Rising { bwrap, pipes, group } = walls;
        Ok(Some(Self {
            bwrap,
            first,
            status: pipes.status.into(),
            report: pipes.report.into(),
            said,
            gone: false,
            watch: None,
            life: None,
            doors: None,
            met: None,
            group,
        }))
    }

    /// Opens the gates to the command.
    pub(super) fn admit(mut self, Gates { outer, mut inner }: Gates) -> Result<Self, StartError> {
        let pid = self.first.0.pid;
        let admitted = self.group.as_ref().map_or(Ok(()), |group| group.admit(pid));
        let opened = admitted
            .and_then(|()| nonblocking(&self.status))
            .and_then(|()| inner.write_all(b"."))
            .and_then(|()| outer.as_ref().map_or(Ok(()), |mut outer| outer.write_all(b".")));
        let Err(error) = opened else {
            self.life = Some(inner);
            return Ok(self);
        };
        // Before the outer gate is closed, which would open it.
        self.kill_all().map_err(StartError::io("cannot end a sandbox that failed"))?;
        if nobody_there(&error) {
            // The walls failed after the namespaces stood.
            return Err(gave_up(&mut self.bwrap));
        }
        Err(StartError::io("cannot let the command into the sandbox")(error))
    }

    /// Looks from now on whether what it writes stays within the limits.
    pub(super) fn watched(mut self, paths: Opened, limits: &Limits) -> Result<Self, StartError> {
        let failed = StartError::io("cannot watch the workspace");
        let number = self.first.0.number();
        let watch = self.first.1.try_clone().and_then(|first| Watch::start(paths, limits, first, number));
        self.watch = Some(watch.map_err(failed)?);
        Ok(self)
    }

    /// The command's exit code as bubblewrap reported it; `None` if the command never ran.
    fn reported(&mut self) -> io::Result<Option<i32>> {
        match self.status.read_to_end(&mut self.said) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(parse(&self.said).into_iter().find_map(|status| status.exit_code)),
        }
    }
}

/// Whether the process behind the gate is dead: it reads no more, and cannot be brought into a group.
fn nobody_there(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe || error.raw_os_error() == Some(libc::ESRCH)
}

/// The first process of a namespace.
enum First {
    /// It is there: who it is, and the handle on it.
    There((Seen, OwnedFd)),
    /// bubblewrap has not made the namespaces in time.
    Late,
    /// bubblewrap ended without it.
    Gone,
}

/// The first process of the namespace, which bubblewrap names.
fn first_process(
    Bwrap(running): &Bwrap,
    status: &OwnedFd,
    patience: Duration,
    said: &mut Vec<u8>,
) -> io::Result<First> {
    let mut buffer = [0; 4096];
    let began = Instant::now();
    let child = loop {
        if let Some(child) = parse(said).into_iter().find_map(|status| status.child_pid) {
            break child;
        }
        if !proc::readable(status, patience.saturating_sub(began.elapsed()))? {
            return Ok(First::Late);
        }
        match rustix::io::retry_on_intr(|| rustix::io::read(status, &mut buffer))? {
            0 => return Ok(First::Gone),
            count => said.extend_from_slice(&buffer[..count]),
        }
    };
    let seen = Pid::from_raw(child).and_then(proc::look);
    // It waits at the gate, so it is alive and bubblewrap's child, unless bubblewrap gave up in between.
    let seen = seen.filter(|seen| seen.parent == running.pid().as_raw_nonzero().get());
    let held = seen.and_then(|seen| seen.handle().map(|handle| (seen, handle)));
    Ok(held.map_or(First::Gone, First::There))
}

impl Bwrap {
    /// Ends it where its first process is not known.
    fn end(&mut self) {
        if self.0.exit().is_some() {
            return;
        }
        let own = self.0.pid();
        let _ = proc::kill_until_none(|| {
            let all = proc::alive()?;
            let outer = all.iter().filter(|process| process.pid == own).copied();
            Ok(outer.chain(proc::descendants(own, &all)).collect())
        });
        let _ = self.0.kill();
    }
}

impl Drop for Bwrap {
    fn drop(&mut self) {
        self.end();
    }
}

/// Every whole object so far.
fn parse(said: &[u8]) -> Vec<Status> {
    serde_json::Deserializer::from_slice(said).into_iter().map_while(Result::ok).collect()
}

fn nonblocking(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags | OFlags::NONBLOCK)?)
}

/// The error of a bubblewrap that is dead, with what it wrote to its standard error.
fn gave_up(Bwrap(running): &mut Bwrap) -> StartError {
    let mut text = Vec::new();
    if let Some(stream) = running.take_stderr() {
        let _ = stream.take(4096).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    let said = if text.is_empty() { "it said nothing".to_owned() } else { text };
    StartError::Walls { program: "bubblewrap".to_owned(), said }
}

impl Process for SandboxProcess {
    fn take_stdin(&mut self) -> Option<Box<dyn Write + Send>> {
        self.bwrap.0.take_stdin()
    }

    fn take_stdout(&mut self) -> Option<Box<dyn Read + Send>> {
        self.bwrap.0.take_stdout()
    }

    fn take_stderr(&mut self) -> Option<Box<dyn Read + Send>> {
        self.bwrap.0.take_stderr()
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<Option<Exit>> {
        let Some(exit) = self.bwrap.0.wait(at_most)? else { return Ok(None) };
        if self.watch.as_ref().and_then(Watch::over).is_some() {
            // herma killed it, whatever bubblewrap makes of that.
            return Ok(Some(Exit { code: None, signal: Some(Signal::KILL.as_raw()) }));
        }
        // bubblewrap exits with 1 also when it could not start the command: that must not look like the command's 1.
        if exit.signal.is_none() && self.reported()?.is_none() {
            return Err(io::Error::other(
                "bubblewrap could not start the command: its standard error says why",
            ));
        }
        let mut why = String::new();
        let mut report = (&self.report).take(4096);
        if matches!(report.read_to_string(&mut why), Ok(1..)) || !why.is_empty() {
            return Err(io::Error::other(format!("herma could not start the command: {why}")));
        }
        Ok(Some(exit))
    }

    fn over_limit(&self) -> Option<LimitName> {
        let counted = || self.group.as_ref().map_or(self.met, Group::met);
        self.watch.as_ref().and_then(Watch::over).or_else(counted)
    }

    fn terminate(&mut self) {
        let inside = proc::alive().map(|all| proc::descendants(self.first.0.pid, &all)).unwrap_or_default();
        if proc::look(self.first.0.pid) != Some(self.first.0) {
            return;
        }
        for process in inside {
            process.signal(Signal::TERM);
        }
    }

    fn kill_all(&mut self) -> io::Result<Exit> {
        if !self.gone {
            // The outer one first: if the inner one died under it, it would report that as the command's own exit.
            self.bwrap.0.kill()?;
            // An error says that it is dead already.
            let _ = pidfd_send_signal(&self.first.1, Signal::KILL);
            if !proc::ended(&self.first.1, PATIENCE)? {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "a process in the sandbox does not die"));
            }
            self.gone = true;
            self.doors = None;
            self.met = self.group.as_ref().and_then(Group::met);
            self.group = None;
        }
        self.bwrap.0.kill()
    }
}

impl Drop for SandboxProcess {
    fn drop(&mut self) {
        let _ = self.kill_all();
    }
}
