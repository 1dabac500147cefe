//! Unix sockets at paths that are longer than the kernel accepts.
//!
//! `sockaddr_un` holds 108 bytes. A longer path is named through its open directory: `/proc/self/fd/N/name`.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The longest path that the kernel takes for a socket.
pub const MAX_SOCKET_PATH_BYTES: usize = 107;

/// An open directory that holds sockets. It has to live as long as the paths from [`SocketDir::bind_path`] are used.
#[derive(Debug)]
pub struct SocketDir {
    path: PathBuf,
    dir: File,
}

impl SocketDir {
    /// Creates the directory, for its owner only.
    pub fn create(path: &Path) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(path)?;
        Self::open(path)
    }

    /// Opens a directory that exists.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), dir: File::open(path)? })
    }

    /// The path of a socket, as other processes see it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The path by which this process can bind a socket or connect to it.
    #[must_use]
    pub fn bind_path(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        if path.as_os_str().len() <= MAX_SOCKET_PATH_BYTES {
            return path;
        }
        Path::new("/proc/self/fd").join(self.dir.as_raw_fd().to_string()).join(name)
    }
}

/// Connects to a socket, however long its path is.
pub fn connect(socket: &Path) -> io::Result<UnixStream> {
    if socket.as_os_str().len() <= MAX_SOCKET_PATH_BYTES {
        return UnixStream::connect(socket);
    }
    let (Some(dir), Some(name)) = (socket.parent(), socket.file_name().and_then(|name| name.to_str())) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    UnixStream::connect(SocketDir::open(dir)?.bind_path(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_is_bound_and_reached_at_any_depth() {
        let root = tempfile::TempDir::new().unwrap();
        for name in ["short".to_owned(), "long".repeat(40)] {
            let dir = SocketDir::create(&root.path().join(name)).unwrap();
            let listener = UnixListener::bind(dir.bind_path("a.sock")).unwrap();
            connect(&dir.path("a.sock")).unwrap();
            drop(listener);
            assert!(connect(&dir.path("a.sock")).is_err());
        }
    }
}
