//! Takes connections.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use super::connection;
use super::shared::Shared;
use crate::config::Address;

/// Waits after an error of the system that passes by itself, such as too many open files.
pub(super) const AFTER_ERROR: Duration = Duration::from_millis(50);

/// A listener that is bound.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, RemovedAtEnd),
}

/// A socket's file, removed at the end.
#[derive(Debug)]
pub(super) struct RemovedAtEnd(PathBuf);

impl Drop for RemovedAtEnd {
    fn drop(&mut self) {
        // It may be gone with its directory.
        let _ = fs::remove_file(&self.0);
    }
}

impl Listener {
    pub(super) async fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => TcpListener::bind(address).await.map(Self::Tcp),
            Address::Unix(path) => {
                remove_dead_socket(path)?;
                let listener = UnixListener::bind(path)?;
                fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
                Ok(Self::Unix(listener, RemovedAtEnd(path.clone())))
            }
        }
    }

    /// Where it listens, with the port that the system chose.
    pub(super) fn address(&self) -> io::Result<Address> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Address::Tcp),
            Self::Unix(_, file) => Ok(Address::Unix(file.0.clone())),
        }
    }

    /// Takes connections until the router drains; each runs in a task of its own.
    pub(super) fn serve(
        self,
        shared: Arc<Shared>,
        room: Arc<Semaphore>,
        mut draining: watch::Receiver<bool>,
    ) -> JoinHandle<()> {
        tokio::spawn(async move {
            loop {
                let (shared, drains) = (shared.clone(), draining.clone());
                // A listener that nobody calls takes no place from the others.
                let taken = async {
                    let serving = self.accept(shared, drains).await?;
                    let place = room.clone().acquire_owned().await.map_err(io::Error::other)?;
                    Ok::<_, io::Error>((serving, place))
                };
                tokio::select! {
                    biased;
                    () = drained(&mut draining) => return,
                    taken = taken => match taken {
                        Ok((serving, place)) => {
                            tokio::spawn(async move {
                                serving.await;
                                drop(place);
                            });
                        }
                        Err(_) => tokio::time::sleep(AFTER_ERROR).await,
                    }
                }
            }
        })
    }

    async fn accept(&self, shared: Arc<Shared>, draining: watch::Receiver<bool>) -> io::Result<Serving> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Without it the first byte of an answer waits for the client's acknowledgement.
                stream.set_nodelay(true)?;
                Ok(Box::pin(connection::serve(shared, Box::new(stream), draining)))
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok(Box::pin(connection::serve(shared, Box::new(stream), draining)))
            }
        }
    }

    /// The next connection, whichever kind it is.
    pub(super) async fn stream(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Tcp(listener) => Ok(Box::new(listener.accept().await?.0)),
            Self::Unix(listener, _) => Ok(Box::new(listener.accept().await?.0)),
        }
    }
}

/// Waits until the router drains.
pub(super) async fn drained(draining: &mut watch::Receiver<bool>) {
    // An error says that the router is gone.
    let _ = draining.wait_for(|draining| *draining).await;
}

/// A connection of either kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection that is being served.
type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Removes a socket that nobody listens on any more. One that is listened on stays, and binding fails.
pub(super) fn remove_dead_socket(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
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
