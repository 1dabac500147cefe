//! A process in a container.
//!
//! The keeper is the first process there: when it dies the kernel kills everything inside and ends it last, so its end
//! is the end of all. herma keeps a handle on it, as it runs on the same machine, and asks Docker only for the rest.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::query_parameters::{InspectContainerOptions, KillContainerOptions, RemoveContainerOptions};
use rustix::process::{Pid, Signal, pidfd_send_signal};
use tokio::sync::mpsc::UnboundedSender;

use super::daemon::Daemon;
use super::owner::Lent;
use super::state::{End, State};
use super::wire::{GO, INPUT, LONGEST_INPUT, TERMINATE};
use crate::destination::{Exit, Process};
use crate::limits::LimitName;
use crate::proc;
use crate::sandbox::watch::Watch;

/// A container that is not dead by then holds a process that hangs in the kernel.
const PATIENCE: Duration = Duration::from_secs(10);
/// The last messages of a container come at once with its end.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Between two looks at whether Docker has removed the container.
const LOOK: Duration = Duration::from_millis(10);

pub(super) struct DockerProcess {
    pub(super) daemon: Arc<Daemon>,
    pub(super) id: String,
    pub(super) state: Arc<State>,
    /// What the keeper hears. When this is dropped it hears nothing more, and ends.
    pub(super) lease: UnboundedSender<Vec<u8>>,
    /// Where the command's input goes, until somebody takes it.
    pub(super) stdin: Option<ToCommand>,
    pub(super) stdout: Option<File>,
    pub(super) stderr: Option<File>,
    pub(super) keeper: Option<OwnedFd>,
    pub(super) watch: Option<Watch>,
    pub(super) lent: Option<Lent>,
    pub(super) gone: bool,
}

/// The writing end of a command's standard input, by way of the keeper. What is written waits in the keeper, so that no
/// write waits here.
pub(super) struct ToCommand(pub(super) UnboundedSender<Vec<u8>>);

impl ToCommand {
    fn piece(&self, piece: &[u8]) -> io::Result<()> {
        let length = u32::try_from(piece.len()).unwrap_or_default();
        let words = [&[INPUT][..], &length.to_be_bytes(), piece].concat();
        self.0.send(words).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for ToCommand {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = bytes.get(..LONGEST_INPUT).unwrap_or(bytes);
        if !piece.is_empty() {
            self.piece(piece)?;
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for ToCommand {
    fn drop(&mut self) {
        let _ = self.piece(&[]);
    }
}

impl DockerProcess {
    /// Takes hold of the keeper, which waits for the word to go.
    pub(super) fn take_hold(&mut self) -> io::Result<(OwnedFd, i32)> {
        let id = self.id.clone();
        let options = None::<InspectContainerOptions>;
        let seen = self.daemon.ask(|client| async move { client.inspect_container(&id, options).await })?;
        let number = seen.state.and_then(|state| state.pid).and_then(|pid| i32::try_from(pid).ok());
        let found = number.and_then(Pid::from_raw).and_then(proc::look);
        let handle = found.as_ref().and_then(proc::Seen::handle);
        match (found, handle) {
            (Some(seen), Some(handle)) if self.is_keeper(&seen) => {
                self.keeper = Some(handle.try_clone()?);
                Ok((handle, seen.number()))
            }
            _ => Err(io::Error::other(
                "its first process cannot be seen from here: the Docker daemon must run on this machine, and herma \
                 outside of containers",
            )),
        }
    }

    /// Whether the process is this container's first: by its group, or, where the runtime has one of its own around it,
    /// by its command line. A number alone could be anybody's.
    fn is_keeper(&self, seen: &proc::Seen) -> bool {
        let has = |file: &str| {
            let text = std::fs::read(Path::new("/proc").join(seen.number().to_string()).join(file));
            text.is_ok_and(|text| String::from_utf8_lossy(&text).contains(&self.id))
        };
        has("cgroup") || has("cmdline")
    }

    /// The limit for which herma itself killed it.
    fn watched(&self) -> Option<LimitName> {
        self.watch.as_ref().and_then(Watch::over)
    }

    /// Whether the container has ended; Docker may tell of it a moment later.
    pub(super) fn is_over(&self) -> bool {
        self.state.end(LAST_WORDS, Duration::ZERO).is_some()
    }

    pub(super) fn go(&self) -> io::Result<()> {
        self.lease.send(vec![GO]).map_err(|_| io::Error::other("the container does not listen any more"))
    }

    /// The first lines of its standard error, once it is dead.
    pub(super) fn last_words(&mut self) -> String {
        let mut text = Vec::new();
        if let Some(stream) = self.stderr.take() {
            let _ = stream.take(4096).read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).trim().to_owned()
    }

    /// Whether the kernel, or where there is no handle Docker, says that the first process is dead.
    fn kill(&self) -> io::Result<()> {
        let id = self.id.clone();
        let options = KillContainerOptions { signal: "KILL".to_owned() };
        if let Some(keeper) = &self.keeper {
            // An error says that it is dead already, or another user's.
            let _ = pidfd_send_signal(keeper, Signal::KILL);
            if proc::ended(keeper, LAST_WORDS)? {
                return Ok(());
            }
        }
        // An error says that it is dead already, or never started.
        let asked = self.daemon.ask(|client| async move { client.kill_container(&id, Some(options)).await });
        match &self.keeper {
            Some(keeper) if proc::ended(keeper, PATIENCE)? => Ok(()),
            None if !matches!(&asked, Err(error) if error.kind() == io::ErrorKind::TimedOut) => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::TimedOut, "a process in the container does not die")),
        }
    }
}

/// Removes the container, and returns when Docker does not know it any more.
pub(super) fn remove(daemon: &Daemon, id: &str) -> io::Result<()> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let name = id.to_owned();
        let options = RemoveContainerOptions { force: true, v: true, ..RemoveContainerOptions::default() };
        let asked = daemon.ask(|client| async move { client.remove_container(&name, Some(options)).await });
        match asked {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // Docker may be removing it already, by itself.
            Err(error) if error.kind() != io::ErrorKind::ResourceBusy || Instant::now() > give_up => {
                return Err(error);
            }
            _ => std::thread::sleep(LOOK),
        }
    }
}

impl Process for DockerProcess {
    fn take_stdin(&mut self) -> Option<Box<dyn Write + Send>> {
        self.stdin.take().map(|stdin| Box::new(stdin) as Box<dyn Write + Send>)
    }

    fn take_stdout(&mut self) -> Option<Box<dyn Read + Send>> {
        self.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>)
    }

    fn take_stderr(&mut self) -> Option<Box<dyn Read + Send>> {
        self.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>)
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<Option<Exit>> {
        let Some(end) = self.state.end(at_most, LAST_WORDS) else { return Ok(None) };
        if self.watched().is_some() {
            // herma killed it, whatever Docker makes of that.
            return Ok(Some(Exit { code: None, signal: Some(Signal::KILL.as_raw()) }));
        }
        match end {
            End::Exit(exit) => Ok(Some(exit)),
            End::Odd(why) => Err(io::Error::other(why)),
        }
    }

    fn over_limit(&self) -> Option<LimitName> {
        self.watched().or_else(|| self.state.met())
    }

    fn terminate(&mut self) {
        // Where nobody listens any more, nobody is left to be told.
        let _ = self.lease.send(vec![TERMINATE]);
    }

    fn kill_all(&mut self) -> io::Result<Exit> {
        if !self.gone {
            self.state.killed();
            self.kill()?;
            // A daemon that is gone removes it when it comes back, as it does with all that are not to be kept.
            let _ = remove(&self.daemon, &self.id);
            self.state.over(Err("it was removed".to_owned()));
            self.gone = true;
            self.lent = None;
        }
        match self.state.end(PATIENCE, LAST_WORDS) {
            Some(End::Exit(exit)) if self.watched().is_none() => Ok(exit),
            _ => Ok(Exit { code: None, signal: Some(Signal::KILL.as_raw()) }),
        }
    }
}

impl Drop for DockerProcess {
    fn drop(&mut self) {
        let _ = self.kill_all();
    }
}
