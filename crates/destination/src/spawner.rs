//! The one thread that starts processes.
//!
//! Two reasons for one thread. The kernel's "die with the parent" is bound to the thread that started the child,
//! and this thread lives as long as herma: a caller may come from a thread pool. And a file that is handed to a
//! child must be inheritable for a moment: with one thread no other child can start in that moment.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread;

use rustix::io::FdFlags;

use crate::cgroup::Birthplace;

/// What a child has from herma besides its standard streams.
#[derive(Default)]
pub(crate) struct Heritage {
    /// Open files, under the numbers that they have.
    pub(crate) files: Vec<OwnedFd>,
    /// The groups that it is born in.
    pub(crate) birthplace: Birthplace,
}

/// A command to start, what it inherits, and where the answer goes.
struct Order {
    command: Command,
    heritage: Heritage,
    answer: SyncSender<io::Result<Child>>,
}

static ORDERS: OnceLock<Sender<Order>> = OnceLock::new();

/// Starts `command`. It inherits its standard streams and its heritage, and not one other open file, also none that
/// herma's own parent left open.
pub(crate) fn spawn(command: Command, heritage: Heritage) -> io::Result<Child> {
    let (answer, result) = mpsc::sync_channel(1);
    let gone = || io::Error::other("the thread that starts processes is gone");
    orders()?.send(Order { command, heritage, answer }).map_err(|_| gone())?;
    result.recv().map_err(|_| gone())?
}

fn orders() -> io::Result<Sender<Order>> {
    if let Some(orders) = ORDERS.get() {
        return Ok(orders.clone());
    }
    let (sender, receiver) = mpsc::channel();
    // Of two threads that come here at once one wins; the other's receiver ends with its sender.
    thread::Builder::new().name("spawner".to_owned()).spawn(move || serve(&receiver))?;
    Ok(ORDERS.get_or_init(|| sender).clone())
}

fn serve(orders: &Receiver<Order>) {
    while let Ok(Order { command, heritage: Heritage { files, birthplace }, answer }) = orders.recv() {
        let started = birthplace.enter().and_then(|()| start(command, files));
        if let Err(error) = birthplace.leave() {
            // What this thread started next would be in a group that is not its own: it starts nothing any more, and
            // whatever it has started dies with it.
            let _ = started.map(end);
            let _ = answer.send(Err(error));
            return;
        }
        // The caller waits for the answer, so a failed send cannot happen; and then the child would be killed by no one.
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
