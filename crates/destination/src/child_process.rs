//! A child process with its pidfd and its streams, shared by the host and the sandbox.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::cgroup::InitialCgroup;
use crate::destination::{Exit, StartError};
use crate::job::Stdin;
use crate::proc;
use crate::spawner::{self, InheritedFds};

/// A child of herma. Only this type waits for it, so that its pid is not reused before.
pub(crate) struct ChildProcess {
    child: Child,
    stdin: Option<UnixStream>,
    handle: OwnedFd,
    exit: Option<Exit>,
}

impl ChildProcess {
    /// Starts the command with piped output.
    pub(crate) fn start(
        mut command: Command,
        stdin: &Stdin,
        fds: InheritedFds,
        cgroup: InitialCgroup,
    ) -> Result<Self, StartError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let mut written = None;
        match stdin {
            Stdin::Null => command.stdin(Stdio::null()),
            Stdin::Pipe => {
                // A socket pair, not a pipe: a process inside could open a pipe by its path in /proc and write to
                // it.
                let pair = UnixStream::pair().and_then(|(ours, theirs)| {
                    ours.shutdown(Shutdown::Read)?;
                    Ok((ours, theirs))
                });
                let (ours, theirs) = pair.map_err(StartError::io("cannot make an input"))?;
                written = Some(ours);
                command.stdin(OwnedFd::from(theirs))
            }
            Stdin::File(path) => {
                let opened = File::open(path);
                command.stdin(opened.map_err(StartError::io(format!("cannot read {}", path.display())))?)
            }
        };
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawner::spawn(command, fds, cgroup)
            .map_err(StartError::io(format!("cannot start {program}")))?;
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(handle) => Ok(Self { child, stdin: written, handle, exit: None }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(StartError::io(format!("cannot watch {program}"))(error.into()))
            }
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn take_stdin(&mut self) -> Option<Box<dyn Write + Send>> {
        self.stdin.take().map(|stream| Box::new(stream) as Box<dyn Write + Send>)
    }

    pub(crate) fn take_stdout(&mut self) -> Option<Box<dyn Read + Send>> {
        self.child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>)
    }

    pub(crate) fn take_stderr(&mut self) -> Option<Box<dyn Read + Send>> {
        self.child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>)
    }

    /// How it ended, if it has.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Sleeps until the child ends, but no longer than `at_most`.
    pub(crate) fn wait(&mut self, at_most: Duration) -> io::Result<Option<Exit>> {
        if self.exit.is_none() && proc::ended(&self.handle, at_most)? {
            self.exit = Some(Exit::from(self.child.wait()?));
        }
        Ok(self.exit)
    }

    /// Kills the child alone and reaps it.
    pub(crate) fn kill(&mut self) -> io::Result<Exit> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        self.child.kill()?;
        let exit = Exit::from(self.child.wait()?);
        self.exit = Some(exit);
        Ok(exit)
    }
}
