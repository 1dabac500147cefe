//! The loopback relay: the launcher binds ports on the sandbox's loopback and passes the listening sockets to
//! herma. A thread of herma relays each connection to the Unix socket of the run's router or egress proxy.
//!
//! Nothing of it runs inside, so no process there can kill, trace or starve it, and no start pays for one more
//! process.

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

/// The loopback port that is relayed to the router. It is above the ephemeral range, so that no test server gets it
/// by chance.
pub(crate) const ROUTER_PORT: u16 = 61801;
/// The loopback port that is relayed to the egress proxy.
pub(crate) const EGRESS_PORT: u16 = 61802;

/// The router's and the egress proxy's.
const MAX_PORTS: usize = 2;
/// Concurrent connections per port, if descriptors suffice. Further ones wait in the listen backlog.
const MAX_CONNECTIONS_PER_PORT: usize = 256;
/// Descriptors kept for the rest of herma: the usage monitor of a job opens up to 200.
const RESERVED_FDS: u64 = 250;
/// Descriptors per connection: both ends here, the router's or proxy's end, and its upstream connection.
const FDS_PER_CONNECTION: u64 = 4;
/// Connections that are accepted whatever the descriptor limit is.
const MIN_CONNECTIONS: u64 = 8;
/// One port takes at most this fraction of all connections, so that the others keep some.
const PORT_SHARE: usize = 4;
/// The buffer per direction and connection.
const BUFFER_BYTES: usize = 16 << 10;
/// The delay before accepting again when the process is out of descriptors and no connection of ours is about to
/// end.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// Enough descriptors for several jobs with every port in use. The usual soft limit is too low.
const WANTED_FDS: u64 = 16 << 10;
/// The relay thread only copies bytes.
const STACK_BYTES: usize = 256 << 10;

/// The relayed ports of a job, each with its host socket.
pub(crate) fn relayed_ports(paths: &JobPaths) -> Vec<(u16, PathBuf)> {
    let all = [(ROUTER_PORT, &paths.router), (EGRESS_PORT, &paths.egress)];
    all.into_iter().filter_map(|(port, socket)| socket.clone().map(|socket| (port, socket))).collect()
}

/// The launcher's part: the ports to bind, and the descriptor over which the sockets are passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortHandover {
    pub(crate) ports: Vec<u16>,
    pub(crate) channel: RawFd,
}

impl PortHandover {
    /// Binds the ports and passes the sockets. From here on a client connects, and waits at worst.
    pub(crate) fn send(&self) -> io::Result<()> {
        let open = |port: &u16| StdListener::bind((Ipv4Addr::LOCALHOST, *port));
        let ports: Vec<StdListener> = self.ports.iter().map(open).collect::<io::Result<_>>()?;
        let files: Vec<RawFd> = ports.iter().map(AsRawFd::as_raw_fd).collect();
        let word = [IoSlice::new(b".")];
        sendmsg::<()>(self.channel, &word, &[ControlMessage::ScmRights(&files)], MsgFlags::empty(), None)?;
        Ok(())
    }
}

/// herma's part: relays until it is dropped.
pub(crate) struct LoopbackRelay {
    channel: StdStream,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LoopbackRelay {
    /// Receives the sockets from the channel and relays each to its path, in the order of the handover.
    pub(crate) fn start(channel: StdStream, sockets: &[PathBuf]) -> io::Result<Self> {
        let paths =
            sockets.iter().map(|socket| ShortSocketPath::of(socket)).collect::<io::Result<Vec<_>>>()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (stop, stopped) = oneshot::channel();
        let own = channel.try_clone()?;
        let work = move || {
            // Nothing arrives if the launcher failed; it reports the reason itself.
            let Ok(ports) = take(&own, paths.len()) else { return };
            drop(own);
            let sockets = paths.iter().map(|path| path.address.clone());
            let served = pin!(serve(ports.into_iter().zip(sockets)));
            // Polled inside the runtime that owns the sockets; both are dropped together.
            runtime.block_on(async { select(served, stopped).await });
        };
        let thread =
            thread::Builder::new().name("loopback_relay".to_owned()).stack_size(STACK_BYTES).spawn(work)?;
        Ok(Self { channel, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for LoopbackRelay {
    fn drop(&mut self) {
        // An error means that the other end is already closed.
        let _ = self.channel.shutdown(Shutdown::Both);
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A socket path through `/proc/self/fd`, which is never longer than `sun_path` allows.
struct ShortSocketPath {
    address: PathBuf,
    _dir: OwnedFd,
}

impl ShortSocketPath {
    fn of(socket: &Path) -> io::Result<Self> {
        let (Some(dir), Some(name)) = (socket.parent(), socket.file_name()) else {
            return Err(io::Error::other(format!("`{}` is no socket", socket.display())));
        };
        let dir = rustix::fs::open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let address = Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name);
        Ok(Self { address, _dir: dir })
    }
}

/// On failure the old limit stays, and clients wait longer.
fn raise_fd_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = WANTED_FDS.min(maximum.unwrap_or(WANTED_FDS));
    if current.is_some_and(|current| current < wanted) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

/// The number of concurrent connections of this process at this descriptor limit.
fn max_connections(files: u64) -> usize {
    let fits = (files.saturating_sub(RESERVED_FDS) / FDS_PER_CONNECTION).max(MIN_CONNECTIONS);
    usize::try_from(fits).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

/// The semaphore over all connections of this process, and the maximum per port.
fn connection_permits() -> (&'static Arc<Semaphore>, usize) {
    static PERMITS: OnceLock<(Arc<Semaphore>, usize)> = OnceLock::new();
    let (permits, per_port) = PERMITS.get_or_init(|| {
        raise_fd_limit();
        let all = max_connections(getrlimit(Resource::Nofile).current.unwrap_or(WANTED_FDS));
        (Arc::new(Semaphore::new(all)), (all / PORT_SHARE).min(MAX_CONNECTIONS_PER_PORT))
    });
    (permits, *per_port)
}

/// Receives the sockets; an error if they do not arrive or their number is wrong.
fn take(channel: &StdStream, count: usize) -> io::Result<Vec<StdListener>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_PORTS))];
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

/// Relays each listening socket; returns only if none can be served.
pub(crate) async fn serve(ports: impl Iterator<Item = (StdListener, PathBuf)>) -> io::Result<()> {
    let mut open = JoinSet::new();
    for (port, socket) in ports {
        port.set_nonblocking(true)?;
        open.spawn(accept_loop(TcpListener::from_std(port)?, socket));
    }
    while open.join_next().await.is_some() {}
    Err(io::Error::other("no port is open"))
}

/// Accepts connections up to the limits.
async fn accept_loop(port: TcpListener, socket: PathBuf) {
    let mut open = JoinSet::new();
    let (permits, max) = connection_permits();
    loop {
        while open.try_join_next().is_some() {}
        if open.len() >= max {
            open.join_next().await;
        }
        if let Ok((caller, _)) = port.accept().await {
            // The semaphore is never closed: this waits until a connection of any port ends.
            let Ok(permit) = Arc::clone(permits).acquire_owned().await else { return };
            let socket = socket.clone();
            open.spawn(async move {
                let _permit = permit;
                relay(caller, socket).await
            });
            continue;
        }
        // Out of descriptors: wait until a connection ends.
        let _ = tokio::time::timeout(RETRY_DELAY, open.join_next()).await;
        if open.is_empty() {
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
}

/// Copies both directions; a half-close is passed on while the other direction continues.
async fn relay(mut caller: TcpStream, socket: impl AsRef<Path>) -> io::Result<()> {
    let mut other = UnixStream::connect(socket).await?;
    caller.set_nodelay(true)?;
    copy_bidirectional_with_sizes(&mut caller, &mut other, BUFFER_BYTES, BUFFER_BYTES).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_rest_of_herma() {
        for files in [300, 512, 1024, 4096, WANTED_FDS] {
            assert!(max_connections(files) as u64 * FDS_PER_CONNECTION + RESERVED_FDS <= files, "{files}");
        }
        assert!(max_connections(WANTED_FDS) / PORT_SHARE >= MAX_CONNECTIONS_PER_PORT);
        assert_eq!(max_connections(64) as u64, MIN_CONNECTIONS);
    }
}
