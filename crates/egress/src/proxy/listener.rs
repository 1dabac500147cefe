//! Takes connections.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::connection::{self, Stream};
use super::metrics;
use super::shared::Shared;

/// Waits after an error of the system that passes by itself, such as too many open files.
const AFTER_ERROR: Duration = Duration::from_millis(50);

/// Where a proxy listens. Other machines never reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A socket in the file system, for its owner only.
    Unix(PathBuf),
    /// A port on the loopback of IPv4; 0 lets the system choose.
    Loopback(u16),
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Loopback(port) => write!(f, "127.0.0.1:{port}"),
        }
    }
}

/// Who calls at a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// A client, who wants to reach something.
    Client,
    /// The operator, who wants to know what was counted.
    Operator,
}

/// A listener that is bound.
pub(super) enum Listener {
    Unix(UnixListener, RemovedAtEnd),
    Tcp(TcpListener),
}

/// A socket's file, removed at the end.
pub(super) struct RemovedAtEnd(PathBuf);

impl Drop for RemovedAtEnd {
    fn drop(&mut self) {
        // It may be gone with its directory.
        let _ = fs::remove_file(&self.0);
    }
}

impl Listener {
    pub(super) async fn bind(listen: &Listen) -> io::Result<Self> {
        match listen {
            Listen::Loopback(port) => TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).await.map(Self::Tcp),
            Listen::Unix(path) => {
                remove_dead_socket(path)?;
                let listener = UnixListener::bind(path)?;
                let file = RemovedAtEnd(path.clone());
                fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
                Ok(Self::Unix(listener, file))
            }
        }
    }

    /// Where it listens, with the port that the system chose.
    pub(super) fn bound(&self) -> io::Result<Listen> {
        match self {
            Self::Tcp(listener) => Ok(Listen::Loopback(listener.local_addr()?.port())),
            Self::Unix(_, file) => Ok(Listen::Unix(file.0.clone())),
        }
    }

    /// Takes connections until the proxy ends; each runs in a task of its own, and ends with it.
    pub(super) async fn serve(
        self,
        shared: Arc<Shared>,
        room: Arc<Semaphore>,
        mut ending: watch::Receiver<bool>,
        caller: Caller,
    ) {
        loop {
            let stop = ending.clone();
            tokio::select! {
                biased;
                () = ended(&mut ending) => return,
                taken = self.take(&shared, &room, stop, caller) => {
                    if taken.is_err() {
                        tokio::time::sleep(AFTER_ERROR).await;
                    }
                }
            }
        }
    }

    async fn take(
        &self,
        shared: &Arc<Shared>,
        room: &Arc<Semaphore>,
        stop: watch::Receiver<bool>,
        caller: Caller,
    ) -> io::Result<()> {
        let place = room.clone().acquire_owned().await.map_err(io::Error::other)?;
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                spawn(shared.clone(), stream, place, stop, caller);
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                spawn(shared.clone(), stream, place, stop, caller);
            }
        }
        Ok(())
    }
}

fn spawn<S: Stream>(
    shared: Arc<Shared>,
    stream: S,
    place: OwnedSemaphorePermit,
    mut stop: watch::Receiver<bool>,
    caller: Caller,
) {
    let serve = async move {
        match caller {
            Caller::Client => connection::serve(shared, stream).await,
            Caller::Operator => metrics::serve(shared, stream).await,
        }
    };
    tokio::spawn(async move {
        tokio::select! {
            () = serve => {}
            () = ended(&mut stop) => {}
        }
        drop(place);
    });
}

/// Waits until the proxy ends.
async fn ended(ending: &mut watch::Receiver<bool>) {
    // An error says that the proxy is gone.
    let _ = ending.wait_for(|ending| *ending).await;
}

/// Removes a socket that nobody listens on any more. One that is listened on stays, and binding fails.
fn remove_dead_socket(path: &Path) -> io::Result<()> {
    let is_socket = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type().is_socket(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    let is_dead = std::os::unix::net::UnixStream::connect(path)
        .is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused);
    if is_socket && is_dead {
        fs::remove_file(path)?;
    }
    Ok(())
}
