//! The single thread that starts processes.
//!
//! There are two reasons. `PR_SET_PDEATHSIG` refers to the thread that started the child, and this thread lives as
//! long as herma, while a caller may run in a thread pool. And an inherited descriptor is without close-on-exec for
//! a moment, in which no other child may start.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread;

use rustix::io::FdFlags;

use crate::cgroup::InitialCgroup;
use crate::memory;

/// File descriptors that a child inherits besides its standard streams, under the numbers that they have.
#[derive(Default)]
pub(crate) struct InheritedFds(Vec<OwnedFd>);

impl InheritedFds {
    /// Adds a descriptor, and returns its number as an argument for the child.
    pub(crate) fn add(&mut self, file: OwnedFd) -> OsString {
        let number = file.as_raw_fd();
        self.0.push(file);
        number.to_string().into()
    }

    /// Adds a file in memory with this content.
    pub(crate) fn add_text(&mut self, content: &[u8]) -> io::Result<OsString> {
        Ok(self.add(memory::file(content)?.into()))
    }
}

/// A command to start, its inherited descriptors and cgroup, and the channel for the result.
struct SpawnRequest {
    command: Command,
    fds: InheritedFds,
    cgroup: InitialCgroup,
    answer: SyncSender<io::Result<Child>>,
}

static REQUESTS: OnceLock<Sender<SpawnRequest>> = OnceLock::new();

/// Starts `command`. It inherits its standard streams and `fds`, and no other open file, also none that herma's own
/// parent left open.
pub(crate) fn spawn(command: Command, fds: InheritedFds, cgroup: InitialCgroup) -> io::Result<Child> {
    let (answer, result) = mpsc::sync_channel(1);
    let gone = || io::Error::other("the thread that starts processes is gone");
    requests()?.send(SpawnRequest { command, fds, cgroup, answer }).map_err(|_| gone())?;
    result.recv().map_err(|_| gone())?
}

fn requests() -> io::Result<Sender<SpawnRequest>> {
    if let Some(requests) = REQUESTS.get() {
        return Ok(requests.clone());
    }
    let (sender, receiver) = mpsc::channel();
    // Of two threads that race here one wins; the receiver of the other ends with its sender.
    thread::Builder::new().name("spawner".to_owned()).spawn(move || serve(&receiver))?;
    Ok(REQUESTS.get_or_init(|| sender).clone())
}

fn serve(requests: &Receiver<SpawnRequest>) {
    while let Ok(SpawnRequest { command, fds: InheritedFds(files), cgroup, answer }) = requests.recv() {
        let started = cgroup.enter().and_then(|()| start(command, files));
        if let Err(error) = cgroup.leave() {
            // The next child would start in another job's cgroup: the thread exits, and its children die with it.
            let _ = started.map(end);
            let _ = answer.send(Err(error));
            return;
        }
        // The caller waits for the result, so sending cannot fail; if it did, nothing would end the child.
        if let Err(mpsc::SendError(Ok(orphan))) = answer.send(started) {
            end(orphan);
        }
    }
}

fn end(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn start(mut command: Command, files: Vec<OwnedFd>) -> io::Result<Child> {
    let numbers: Vec<i32> = files.iter().map(AsRawFd::as_raw_fd).collect();
    close_fds::set_fds_cloexec_threadsafe(3, &numbers);
    for file in &files {
        rustix::io::fcntl_setfd(file, FdFlags::empty())?;
    }
    let child = command.spawn();
    drop(files);
    child
}
