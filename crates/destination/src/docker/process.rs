//! A process in a container.
//!
//! The keeper is the init process: when it dies the kernel kills everything inside and reaps it last, so its exit
//! is the end of all processes. herma holds a pidfd of it, because it runs on the same machine, and asks Docker
//! only for the rest.

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
use super::ownership::ChownGuard;
use super::state::{ContainerEnd, ContainerState};
use super::wire::{GO, INPUT, MAX_INPUT_CHUNK_BYTES, TERMINATE};
use crate::destination::{Exit, Process};
use crate::limits::LimitName;
use crate::proc;
use crate::sandbox::usage_monitor::UsageMonitor;

/// A container that outlives this timeout holds a process that hangs in the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// The last messages of a container arrive together with its end.
const LAST_MESSAGES_TIMEOUT: Duration = Duration::from_secs(1);
/// The polling interval for the removal of the container.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

pub(super) struct DockerProcess {
    pub(super) daemon: Arc<Daemon>,
    pub(super) id: String,
    pub(super) state: Arc<ContainerState>,
    /// Messages to the keeper. Dropping it closes the keeper's stdin, and the keeper exits.
    pub(super) control: UnboundedSender<Vec<u8>>,
    /// The command's stdin, until it is taken.
    pub(super) stdin: Option<CommandStdin>,
    pub(super) stdout: Option<File>,
    pub(super) stderr: Option<File>,
    pub(super) keeper: Option<OwnedFd>,
    pub(super) watch: Option<UsageMonitor>,
    pub(super) chowned: Option<ChownGuard>,
    pub(super) gone: bool,
}

/// The write end of a command's stdin, through the keeper. The keeper queues the bytes, so that no write blocks
/// here.
pub(super) struct CommandStdin(pub(super) UnboundedSender<Vec<u8>>);

impl CommandStdin {
    fn chunk(&self, chunk: &[u8]) -> io::Result<()> {
        let length = u32::try_from(chunk.len()).unwrap_or_default();
        let words = [&[INPUT][..], &length.to_be_bytes(), chunk].concat();
        self.0.send(words).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for CommandStdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let chunk = bytes.get(..MAX_INPUT_CHUNK_BYTES).unwrap_or(bytes);
        if !chunk.is_empty() {
            self.chunk(chunk)?;
        }
        Ok(chunk.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for CommandStdin {
    fn drop(&mut self) {
        let _ = self.chunk(&[]);
    }
}

impl DockerProcess {
    /// Opens a pidfd of the keeper, which waits for the start signal.
    pub(super) fn attach(&mut self) -> io::Result<(OwnedFd, i32)> {
        let id = self.id.clone();
        let options = None::<InspectContainerOptions>;
        let seen = self.daemon.ask(|client| async move { client.inspect_container(&id, options).await })?;
        let number = seen.state.and_then(|state| state.pid).and_then(|pid| i32::try_from(pid).ok());
        let found = number.and_then(Pid::from_raw).and_then(proc::look);
        let handle = found.as_ref().and_then(proc::ProcessInfo::handle);
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

    /// Whether the process is this container's init: by its cgroup, or, where the runtime wraps it, by its command
    /// line. A pid alone could be reused.
    fn is_keeper(&self, seen: &proc::ProcessInfo) -> bool {
        let has = |file: &str| {
            let text = std::fs::read(Path::new("/proc").join(seen.number().to_string()).join(file));
            text.is_ok_and(|text| String::from_utf8_lossy(&text).contains(&self.id))
        };
        has("cgroup") || has("cmdline")
    }

    /// The limit for which herma itself killed it.
    fn watched(&self) -> Option<LimitName> {
        self.watch.as_ref().and_then(UsageMonitor::over)
    }

    /// Whether the container has ended; Docker may report that a moment later.
    pub(super) fn is_over(&self) -> bool {
        self.state.end(LAST_MESSAGES_TIMEOUT, Duration::ZERO).is_some()
    }

    pub(super) fn go(&self) -> io::Result<()> {
        self.control.send(vec![GO]).map_err(|_| io::Error::other("the container does not listen any more"))
    }

    /// The first bytes of its stderr, once it is dead.
    pub(super) fn stderr_head(&mut self) -> String {
        let mut text = Vec::new();
        if let Some(stream) = self.stderr.take() {
            let _ = stream.take(4096).read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).trim().to_owned()
    }

    /// Kills init and waits for its death, as seen by the kernel or, without a pidfd, by Docker.
    fn kill(&self) -> io::Result<()> {
        let id = self.id.clone();
        let options = KillContainerOptions { signal: "KILL".to_owned() };
        if let Some(keeper) = &self.keeper {
            // An error means that it is already dead, or belongs to another user.
            let _ = pidfd_send_signal(keeper, Signal::KILL);
            if proc::ended(keeper, LAST_MESSAGES_TIMEOUT)? {
                return Ok(());
            }
        }
        // An error means that it is already dead, or never started.
        let asked = self.daemon.ask(|client| async move { client.kill_container(&id, Some(options)).await });
        match &self.keeper {
            Some(keeper) if proc::ended(keeper, KILL_TIMEOUT)? => Ok(()),
            None if !matches!(&asked, Err(error) if error.kind() == io::ErrorKind::TimedOut) => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::TimedOut, "a process in the container does not die")),
        }
    }
}

/// Removes the container, and returns when Docker does not list it any more.
pub(super) fn remove(daemon: &Daemon, id: &str) -> io::Result<()> {
    let give_up = Instant::now() + KILL_TIMEOUT;
    loop {
        let name = id.to_owned();
        let options = RemoveContainerOptions { force: true, v: true, ..RemoveContainerOptions::default() };
        let asked = daemon.ask(|client| async move { client.remove_container(&name, Some(options)).await });
        match asked {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // Docker may already be removing it.
            Err(error) if error.kind() != io::ErrorKind::ResourceBusy || Instant::now() > give_up => {
                return Err(error);
            }
            _ => std::thread::sleep(POLL_INTERVAL),
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
        let Some(end) = self.state.end(at_most, LAST_MESSAGES_TIMEOUT) else { return Ok(None) };
        if self.watched().is_some() {
            // herma killed it, whatever status Docker derives from that.
            return Ok(Some(Exit { code: None, signal: Some(Signal::KILL.as_raw()) }));
        }
        match end {
            ContainerEnd::Exit(exit) => Ok(Some(exit)),
            ContainerEnd::Odd(why) => Err(io::Error::other(why)),
        }
    }

    fn exceeded_limit(&self) -> Option<LimitName> {
        self.watched().or_else(|| self.state.met())
    }

    fn terminate(&mut self) {
        // An error means that the keeper is gone.
        let _ = self.control.send(vec![TERMINATE]);
    }

    fn kill_all(&mut self) -> io::Result<Exit> {
        if !self.gone {
            self.state.killed();
            self.kill()?;
            // A restarted daemon removes it, because of `auto_remove`.
            let _ = remove(&self.daemon, &self.id);
            self.state.over(Err("it was removed".to_owned()));
            self.gone = true;
            self.chowned = None;
        }
        match self.state.end(KILL_TIMEOUT, LAST_MESSAGES_TIMEOUT) {
            Some(ContainerEnd::Exit(exit)) if self.watched().is_none() => Ok(exit),
            _ => Ok(Exit { code: None, signal: Some(Signal::KILL.as_raw()) }),
        }
    }
}

impl Drop for DockerProcess {
    fn drop(&mut self) {
        let _ = self.kill_all();
    }
}
