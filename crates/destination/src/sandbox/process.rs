//! A process inside bubblewrap.
//!
//! bubblewrap is two processes: the one that herma started, and the init process of the new pid namespace. When
//! init dies the kernel kills everything in the namespace and reaps init last, so its exit is the end of all
//! processes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, pidfd_send_signal};
use serde::Deserialize;

use super::usage_monitor::{UsageMonitor, WatchedDirs};
use crate::cgroup::Cgroup;
use crate::child_process::ChildProcess;
use crate::destination::{Exit, Process, StartError};
use crate::limits::{LimitName, Limits};
use crate::loopback_relay::LoopbackRelay;
use crate::proc::{self, ProcessInfo};

/// A namespace that outlives this timeout holds a process that hangs in the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// bubblewrap's status output: one object when the namespaces exist, one when the command has exited.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct BwrapStatus {
    child_pid: Option<i32>,
    exit_code: Option<i32>,
}

pub(super) struct SandboxProcess {
    bwrap: Bwrap,
    /// The init process of the namespace, and its pidfd.
    first: (ProcessInfo, OwnedFd),
    status: File,
    report: File,
    said: Vec<u8>,
    gone: bool,
    watch: Option<UsageMonitor>,
    /// The write end of the start pipe, by which the launcher knows that herma is alive.
    life: Option<File>,
    /// The loopback relay, until every process inside is dead.
    pub(super) relay: Option<LoopbackRelay>,
    /// The exceeded limit, read before the cgroup is removed.
    met: Option<LimitName>,
    /// Dropped last: a cgroup can be removed only when every process in it is dead.
    group: Option<Cgroup>,
}

/// herma's ends of the pipes from a sandbox.
pub(super) struct StatusPipes {
    /// bubblewrap's status output.
    pub(super) status: OwnedFd,
    /// The reason why the launcher could not execute the command; empty if it could.
    pub(super) report: OwnedFd,
}

/// The pipes that hold the command back until herma writes to them.
pub(super) struct StartPipes {
    /// bubblewrap waits on it if its init process must join a cgroup before it starts anything. Closing it also
    /// continues.
    pub(super) bwrap: Option<File>,
    /// The launcher waits on it, and exits when it is closed.
    pub(super) launcher: File,
}

/// A sandbox that bubblewrap is setting up.
pub(super) struct BootingSandbox {
    pub(super) bwrap: Bwrap,
    pub(super) pipes: StatusPipes,
    /// Dropped last: a cgroup can be removed only when every process in it is dead.
    pub(super) group: Option<Cgroup>,
}

/// The bubblewrap process. Dropping it kills it and its descendants.
pub(super) struct Bwrap(pub(super) ChildProcess);

impl SandboxProcess {
    /// Waits for the namespaces and opens a pidfd of their init process, so that the command can be killed with its
    /// descendants from its first instruction on. After `patience` bubblewrap is killed, and the result is `None`.
    pub(super) fn attach(
        mut booting: BootingSandbox,
        patience: Duration,
    ) -> Result<Option<Self>, StartError> {
        let mut said = Vec::new();
        let first = match first_process(&booting.bwrap, &booting.pipes.status, patience, &mut said) {
            Ok(InitProcess::Found(first)) => first,
            Ok(InitProcess::TimedOut) => return Ok(None),
            Ok(InitProcess::Exited) => {
                booting.bwrap.end();
                return Err(gave_up(&mut booting.bwrap));
            }
            Err(error) => return Err(StartError::io("bubblewrap did not report its start")(error)),
        };
        let BootingSandbox { bwrap, pipes, group } = booting;
        Ok(Some(Self {
            bwrap,
            first,
            status: pipes.status.into(),
            report: pipes.report.into(),
            said,
            gone: false,
            watch: None,
            life: None,
            relay: None,
            met: None,
            group,
        }))
    }

    /// Signals the command to start.
    pub(super) fn admit(
        mut self,
        StartPipes { bwrap, mut launcher }: StartPipes,
    ) -> Result<Self, StartError> {
        let pid = self.first.0.pid;
        let admitted = self.group.as_ref().map_or(Ok(()), |group| group.admit(pid));
        let opened = admitted
            .and_then(|()| nonblocking(&self.status))
            .and_then(|()| launcher.write_all(b"."))
            .and_then(|()| bwrap.as_ref().map_or(Ok(()), |mut bwrap| bwrap.write_all(b".")));
        let Err(error) = opened else {
            self.life = Some(launcher);
            return Ok(self);
        };
        // Before the pipe to bubblewrap is closed, which would continue it.
        self.kill_all().map_err(StartError::io("cannot end a sandbox that failed"))?;
        if is_dead(&error) {
            // The setup failed after the namespaces existed.
            return Err(gave_up(&mut self.bwrap));
        }
        Err(StartError::io("cannot let the command into the sandbox")(error))
    }

    /// Starts the usage monitor.
    pub(super) fn watched(mut self, paths: WatchedDirs, limits: &Limits) -> Result<Self, StartError> {
        let failed = StartError::io("cannot watch the workspace");
        let number = self.first.0.number();
        let watch =
            self.first.1.try_clone().and_then(|first| UsageMonitor::start(paths, limits, first, number));
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

/// Whether the waiting process is dead: its pipe is broken, or it cannot be moved into a cgroup.
fn is_dead(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe || error.raw_os_error() == Some(libc::ESRCH)
}

/// The init process of the namespace.
enum InitProcess {
    /// Its process information and pidfd.
    Found((ProcessInfo, OwnedFd)),
    /// bubblewrap did not create the namespaces in time.
    TimedOut,
    /// bubblewrap exited before.
    Exited,
}

/// Waits for the pid of the init process in bubblewrap's status output.
fn first_process(
    Bwrap(running): &Bwrap,
    status: &OwnedFd,
    patience: Duration,
    said: &mut Vec<u8>,
) -> io::Result<InitProcess> {
    let mut buffer = [0; 4096];
    let began = Instant::now();
    let child = loop {
        if let Some(child) = parse(said).into_iter().find_map(|status| status.child_pid) {
            break child;
        }
        if !proc::readable(status, patience.saturating_sub(began.elapsed()))? {
            return Ok(InitProcess::TimedOut);
        }
        match rustix::io::retry_on_intr(|| rustix::io::read(status, &mut buffer))? {
            0 => return Ok(InitProcess::Exited),
            count => said.extend_from_slice(&buffer[..count]),
        }
    };
    let seen = Pid::from_raw(child).and_then(proc::look);
    // It waits for the start signal, so it is alive and bubblewrap's child, unless bubblewrap failed meanwhile.
    let seen = seen.filter(|seen| seen.parent == running.pid().as_raw_nonzero().get());
    let held = seen.and_then(|seen| seen.handle().map(|handle| (seen, handle)));
    Ok(held.map_or(InitProcess::Exited, InitProcess::Found))
}

impl Bwrap {
    /// Kills it with its descendants while its init process is unknown.
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

/// Every complete object so far.
fn parse(said: &[u8]) -> Vec<BwrapStatus> {
    serde_json::Deserializer::from_slice(said).into_iter().map_while(Result::ok).collect()
}

fn nonblocking(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags | OFlags::NONBLOCK)?)
}

/// The error of an exited bubblewrap, with its stderr.
fn gave_up(Bwrap(running): &mut Bwrap) -> StartError {
    let mut text = Vec::new();
    if let Some(stream) = running.take_stderr() {
        let _ = stream.take(4096).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    let said = if text.is_empty() { "it said nothing".to_owned() } else { text };
    StartError::Isolation { program: "bubblewrap".to_owned(), said }
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
        if self.watch.as_ref().and_then(UsageMonitor::over).is_some() {
            // herma killed it, whatever status bubblewrap derives from that.
            return Ok(Some(Exit { code: None, signal: Some(Signal::KILL.as_raw()) }));
        }
        // bubblewrap also exits with 1 if it could not start the command: that must not look like the command's own
        // 1.
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

    fn exceeded_limit(&self) -> Option<LimitName> {
        let counted = || self.group.as_ref().map_or(self.met, Cgroup::met);
        self.watch.as_ref().and_then(UsageMonitor::over).or_else(counted)
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
            // The outer process first: if init died under it, it would report that as the command's exit.
            self.bwrap.0.kill()?;
            // An error means that it is already dead.
            let _ = pidfd_send_signal(&self.first.1, Signal::KILL);
            if !proc::ended(&self.first.1, KILL_TIMEOUT)? {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "a process in the sandbox does not die"));
            }
            self.gone = true;
            self.relay = None;
            self.met = self.group.as_ref().and_then(Cgroup::met);
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
