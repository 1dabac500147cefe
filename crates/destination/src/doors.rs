//! The way out of the sandbox: ports of its own loopback, which the launcher opens inside and hands to herma, and a
//! thread of herma that joins them to the sockets of the run's router and egress proxy, byte for byte.
//!
//! Nothing of it runs inside, so nothing there can be ended, traced or starved; and no start pays for one more program.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Shutdown, TcpListener as StdListener};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::future::select;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use rustix::fs::{Mode, OFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

use crate::job::JobPaths;

/// The port of the sandbox's own loopback that leads to the router. Above the range from which the kernel draws, so
/// that no server of a test gets it by chance.
pub(crate) const ROUTER_PORT: u16 = 61801;
/// The port that leads to the egress proxy.
pub(crate) const EGRESS_PORT: u16 = 61802;

/// There are two ways out, and no more.
const MOST_DOORS: usize = 2;
/// Connections at once through each port, where files are plenty. More wait in the kernel's queue.
const MOST: usize = 256;
/// Files of this process that callers never take: the watch over a job opens up to 200, and the rest of herma some.
const RESERVE: u64 = 250;
/// What one caller costs this process: both ends here, the router's or proxy's, and its connection to the world.
const FILES_OF_EACH: u64 = 4;
/// Connections that are let in whatever the limit is.
const FEWEST: u64 = 8;
/// No port takes more than this part of all connections, so that the others have some.
const PART: usize = 4;
/// What is read at once, in each direction of each connection.
const BUFFER: usize = 16 << 10;
/// Until the next try where the system has no file left for a caller and none of ours will end.
const PAUSE: Duration = Duration::from_millis(100);
/// Enough files for every caller at every door of several jobs. What systems usually give a process is for those that
/// talk to few.
const FILES: u64 = 16 << 10;
/// A thread that passes bytes on.
const STACK: usize = 256 << 10;

/// What a job has of ways out: each port, and the socket of the host that it leads to.
pub(crate) fn of(paths: &JobPaths) -> Vec<(u16, PathBuf)> {
    let all = [(ROUTER_PORT, &paths.router), (EGRESS_PORT, &paths.egress)];
    all.into_iter().filter_map(|(port, socket)| socket.clone().map(|socket| (port, socket))).collect()
}

/// The launcher's part: which ports it opens, and the open socket by which they go to herma.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HandOver {
    pub(crate) ports: Vec<u16>,
    pub(crate) channel: RawFd,
}

impl HandOver {
    /// Opens the ports and gives them away. From here on a caller is at worst kept waiting.
    pub(crate) fn perform(&self) -> io::Result<()> {
        let open = |port: &u16| StdListener::bind((Ipv4Addr::LOCALHOST, *port));
        let ports: Vec<StdListener> = self.ports.iter().map(open).collect::<io::Result<_>>()?;
        let files: Vec<RawFd> = ports.iter().map(AsRawFd::as_raw_fd).collect();
        let word = [IoSlice::new(b".")];
        sendmsg::<()>(self.channel, &word, &[ControlMessage::ScmRights(&files)], MsgFlags::empty(), None)?;
        Ok(())
    }
}

/// herma's part: open until it is dropped.
pub(crate) struct Doors {
    channel: StdStream,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Doors {
    /// Takes the ports from the channel, once they come, and joins each to its socket, in the order of the hand-over.
    pub(crate) fn open(channel: StdStream, sockets: &[PathBuf]) -> io::Result<Self> {
        let places = sockets.iter().map(|socket| Place::of(socket)).collect::<io::Result<Vec<_>>>()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (stop, stopped) = oneshot::channel();
        let own = channel.try_clone()?;
        let work = move || {
            // Nothing comes where the launcher failed: it says why by itself.
            let Ok(ports) = take(&own, places.len()) else { return };
            drop(own);
            let sockets = places.iter().map(|place| place.address.clone());
            let served = pin!(serve(ports.into_iter().zip(sockets)));
            // Inside the runtime, which the ports belong to; it is dropped, and they with it, when this ends.
            runtime.block_on(async { select(served, stopped).await });
        };
        let thread = thread::Builder::new().name("doors".to_owned()).stack_size(STACK).spawn(work)?;
        Ok(Self { channel, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Doors {
    fn drop(&mut self) {
        // An error says that the other end is gone already.
        let _ = self.channel.shutdown(Shutdown::Both);
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A socket's address that is never too long for the system, however deep the socket lies.
struct Place {
    address: PathBuf,
    _dir: OwnedFd,
}

impl Place {
    fn of(socket: &Path) -> io::Result<Self> {
        let (Some(dir), Some(name)) = (socket.parent(), socket.file_name()) else {
            return Err(io::Error::other(format!("`{}` is no socket", socket.display())));
        };
        let dir = rustix::fs::open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let address = Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name);
        Ok(Self { address, _dir: dir })
    }
}

/// Where the system refuses, the old limit stays: then callers wait.
fn make_room_for_callers() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = FILES.min(maximum.unwrap_or(FILES));
    if current.is_some_and(|current| current < wanted) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

/// How many callers all doors of this process let in together, with this many files.
fn room_for(files: u64) -> usize {
    let fits = (files.saturating_sub(RESERVE) / FILES_OF_EACH).max(FEWEST);
    usize::try_from(fits).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

/// The places for all callers of this process, and how many of them one port may take.
fn places() -> (&'static Arc<Semaphore>, usize) {
    static PLACES: OnceLock<(Arc<Semaphore>, usize)> = OnceLock::new();
    let (places, of_each) = PLACES.get_or_init(|| {
        make_room_for_callers();
        let all = room_for(getrlimit(Resource::Nofile).current.unwrap_or(FILES));
        (Arc::new(Semaphore::new(all)), (all / PART).min(MOST))
    });
    (places, *of_each)
}

/// Waits for the ports; an error where they do not come, or are not as many as they should be.
fn take(channel: &StdStream, count: usize) -> io::Result<Vec<StdListener>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DOORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut word = [0];
    rustix::io::retry_on_intr(|| {
        recvmsg(channel, &mut [IoSliceMut::new(&mut word)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut ports = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            ports.extend(files.map(StdListener::from));
        }
    }
    if ports.len() == count { Ok(ports) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Joins each port to its socket; ends only where no port can be served.
pub(crate) async fn serve(doors: impl Iterator<Item = (StdListener, PathBuf)>) -> io::Result<()> {
    let mut open = JoinSet::new();
    for (port, socket) in doors {
        port.set_nonblocking(true)?;
        open.spawn(door(TcpListener::from_std(port)?, socket));
    }
    while open.join_next().await.is_some() {}
    Err(io::Error::other("no port is open"))
}

/// Lets callers in, as many as fit.
async fn door(port: TcpListener, socket: PathBuf) {
    let mut open = JoinSet::new();
    let (places, most) = places();
    loop {
        while open.try_join_next().is_some() {}
        if open.len() >= most {
            open.join_next().await;
        }
        if let Ok((caller, _)) = port.accept().await {
            // Never closed: this waits until another caller of any door goes.
            let Ok(place) = Arc::clone(places).acquire_owned().await else { return };
            let socket = socket.clone();
            open.spawn(async move {
                let _place = place;
                join(caller, socket).await
            });
            continue;
        }
        // No file is left for another caller: the next one that goes makes room.
        let _ = tokio::time::timeout(PAUSE, open.join_next()).await;
        if open.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Both directions, each until its end; the end of one is passed on while the other goes on.
async fn join(mut caller: TcpStream, socket: impl AsRef<Path>) -> io::Result<()> {
    let mut other = UnixStream::connect(socket).await?;
    caller.set_nodelay(true)?;
    copy_bidirectional_with_sizes(&mut caller, &mut other, BUFFER, BUFFER).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_leave_files_for_the_rest_of_herma() {
        for files in [300, 512, 1024, 4096, FILES] {
            assert!(room_for(files) as u64 * FILES_OF_EACH + RESERVE <= files, "{files}");
        }
        assert!(room_for(FILES) / PART >= MOST);
        assert_eq!(room_for(64) as u64, FEWEST);
    }
}
