//! Listeners on TCP and on Unix sockets, and their accept loop.

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};

use crate::stream::Stream;

/// The pause after an accept error that passes by itself, such as too many open files.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP port; 0 lets the kernel choose.
    Tcp(SocketAddr),
    /// A socket in the file system, for its owner only.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A bound listener. Dropping it removes its socket file.
#[derive(Debug)]
pub struct Listener(Bound);

#[derive(Debug)]
enum Bound {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// A socket file, removed on drop.
#[derive(Debug)]
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may be gone with its directory.
        let _ = fs::remove_file(&self.0);
    }
}

impl Listener {
    /// Binds the address. A socket file on which no process listens any more is replaced.
    pub async fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => TcpListener::bind(address).await.map(Bound::Tcp).map(Self),
            Address::Unix(path) => {
                remove_stale_socket(path)?;
                let listener = UnixListener::bind(path)?;
                let file = SocketFile(path.clone());
                fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
                Ok(Self(Bound::Unix(listener, file)))
            }
        }
    }

    /// The bound address, with the port that the kernel chose.
    pub fn address(&self) -> io::Result<Address> {
        match &self.0 {
            Bound::Tcp(listener) => listener.local_addr().map(Address::Tcp),
            Bound::Unix(_, file) => Ok(Address::Unix(file.0.clone())),
        }
    }

    /// Accepts one connection.
    pub async fn accept(&self) -> io::Result<Stream> {
        match &self.0 {
            Bound::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Without it the first byte of a response waits for the client's acknowledgement.
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Bound::Unix(listener, _) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }

    /// Accepts connections until `stop` is true. Each is handled in a task of its own, at most as many at once as
    /// `permits` allows.
    pub async fn serve<F>(
        self,
        permits: Arc<Semaphore>,
        mut stop: watch::Receiver<bool>,
        handle: impl Fn(Stream) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        loop {
            // The permit comes second: a listener without clients takes none from the others.
            let accepted = async {
                let stream = self.accept().await?;
                let permit = permits.clone().acquire_owned().await.map_err(io::Error::other)?;
                Ok::<_, io::Error>((stream, permit))
            };
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return,
                accepted = accepted => match accepted {
                    Ok((stream, permit)) => {
                        let handled = handle(stream);
                        tokio::spawn(async move {
                            handled.await;
                            drop(permit);
                        });
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_BACKOFF).await,
                }
            }
        }
    }
}

/// Waits until the flag is true, or its sender is gone.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Removes a socket on which no process listens. One that is in use stays, and binding fails.
fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let is_socket = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type().is_socket(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    let is_stale = std::os::unix::net::UnixStream::connect(path)
        .is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused);
    if is_socket && is_stale {
        fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("a.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "closing a listener leaves its file");
        let address = Address::Unix(path.clone());
        let listener = Listener::bind(&address).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Listener::bind(&address).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(listener.address().unwrap(), address);
        drop(listener);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn another_file_is_never_removed() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "kept").unwrap();
        assert!(Listener::bind(&Address::Unix(path.clone())).await.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept");
    }
}
