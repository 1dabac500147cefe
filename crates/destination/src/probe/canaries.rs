//! Canaries, planted where the inside must not reach: secrets, another run, sockets, ports, a repository.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::path::{Path, PathBuf};

use herma_core::{Digest, RunId};
use rustix::rand::GetRandomFlags;

use super::outside::io;
use super::{CANARY_BRANCH, Canary, ProbeError};

/// A directory of the host where programs keep sockets.
const HOST_TMP: &str = "/tmp";

/// The commit of the canary branch. It does not exist: a branch can be deleted without it.
const NO_COMMIT: &str = "1111111111111111111111111111111111111111\n";

/// A file or directory that is removed on drop.
struct RemoveOnDrop(PathBuf);

/// All canaries of one run.
pub(super) struct Canaries {
    pub(super) herma: Canary,
    pub(super) home: Canary,
    pub(super) port: u16,
    pub(super) udp_port: u16,
    pub(super) abstract_socket: String,
    places: CanaryPaths<RemoveOnDrop>,
    secrets: [RemoveOnDrop; 2],
    tcp: TcpListener,
    udp: UdpSocket,
    sockets: [(&'static str, UnixListener); 3],
}

/// The canaries with a path.
struct CanaryPaths<T> {
    other_run: T,
    repository: T,
    admin_socket: T,
    host_socket: T,
}

impl CanaryPaths<PathBuf> {
    fn of(run_id: RunId, herma_home: &Path) -> Self {
        let named = |dir: &Path, kind: &str| dir.join(format!(".herma-{kind}-{run_id}"));
        Self {
            other_run: named(herma_home, "other-run"),
            repository: named(herma_home, "repository"),
            admin_socket: named(herma_home, "socket"),
            host_socket: named(Path::new(HOST_TMP), "socket"),
        }
    }
}

impl Canaries {
    pub(super) fn plant(run_id: RunId, herma_home: &Path, user_home: &Path) -> Result<Self, ProbeError> {
        let CanaryPaths { other_run, repository, admin_socket, host_socket } =
            CanaryPaths::of(run_id, herma_home);
        let (herma_secret, herma) = secret(herma_home, run_id, "herma")?;
        let (home_secret, home) = secret(user_home, run_id, "home")?;
        let listening = || io("listening on loopback");
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(listening())?;
        tcp.set_nonblocking(true).map_err(listening())?;
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(listening())?;
        udp.set_nonblocking(true).map_err(listening())?;
        let abstract_socket = format!("herma-{run_id}");
        let address = UnixAddress::from_abstract_name(&abstract_socket).map_err(listening())?;
        let (admin_planted, admin) = socket(admin_socket)?;
        let (host_planted, host) = socket(host_socket)?;
        let unnamed = UnixListener::bind_addr(&address).map_err(io("listening on an abstract socket"))?;
        let sockets =
            [("reach_admin_socket", admin), ("reach_host_socket", host), ("reach_abstract_socket", unnamed)];
        for (_, listener) in &sockets {
            listener.set_nonblocking(true).map_err(io("listening on a socket"))?;
        }
        let places = CanaryPaths {
            other_run: RemoveOnDrop::dir(other_run)?,
            repository: bare(repository)?,
            admin_socket: admin_planted,
            host_socket: host_planted,
        };
        Ok(Self {
            herma,
            home,
            port: tcp.local_addr().map_err(listening())?.port(),
            udp_port: udp.local_addr().map_err(listening())?.port(),
            abstract_socket,
            places,
            secrets: [herma_secret, home_secret],
            tcp,
            udp,
            sockets,
        })
    }

    /// The paths of all canaries that have one.
    pub(super) fn planted(&self) -> impl Iterator<Item = &Path> {
        let CanaryPaths { other_run, repository, admin_socket, host_socket } = &self.places;
        let places = [other_run, repository, admin_socket, host_socket];
        places.into_iter().chain(&self.secrets).map(RemoveOnDrop::path)
    }

    pub(super) fn other_run(&self) -> &Path {
        self.places.other_run.path()
    }

    pub(super) fn repository(&self) -> &Path {
        self.places.repository.path()
    }

    pub(super) fn admin_socket(&self) -> &Path {
        self.places.admin_socket.path()
    }

    pub(super) fn host_socket(&self) -> &Path {
        self.places.host_socket.path()
    }

    /// The canaries that were reached after all, as seen from outside: the probe's name and the observation.
    pub(super) fn reached(&self) -> Vec<(&'static str, &'static str)> {
        let mut reached = Vec::new();
        if self.tcp.accept().is_ok() {
            reached.push(("connect_host_loopback", "herma's listener was reached"));
        }
        if self.udp.recv_from(&mut [0; 16]).is_ok() {
            reached.push(("send_datagram", "herma got the datagram"));
        }
        for (name, listener) in &self.sockets {
            if listener.accept().is_ok() {
                reached.push((name, "herma's socket was reached"));
            }
        }
        if !self.repository().join(CANARY_BRANCH).is_file() {
            reached.push(("git_push", "the branch is gone"));
        }
        reached
    }
}

/// Removes the canaries of a run whose herma was killed.
pub fn clean_up(run_id: RunId, herma_home: &Path, user_home: &Path) {
    let CanaryPaths { other_run, repository, admin_socket, host_socket } =
        CanaryPaths::of(run_id, herma_home);
    let secrets = [canary(herma_home, run_id, "herma"), canary(user_home, run_id, "home")];
    for place in [other_run, repository, admin_socket, host_socket].into_iter().chain(secrets) {
        drop(RemoveOnDrop(place));
    }
}

fn canary(dir: &Path, run_id: RunId, kind: &str) -> PathBuf {
    dir.join(format!(".herma-canary-{kind}-{run_id}"))
}

fn secret(dir: &Path, run_id: RunId, kind: &str) -> Result<(RemoveOnDrop, Canary), ProbeError> {
    let path = canary(dir, run_id, kind);
    let mut secret = [0; 32];
    rustix::rand::getrandom(&mut secret, GetRandomFlags::empty())
        .map_err(|e| io("drawing a secret")(e.into()))?;
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file: File = opened.map_err(io(format!("planting a secret at {}", path.display())))?;
    let planted = RemoveOnDrop(path.clone());
    file.write_all(&secret).map_err(io(format!("planting a secret at {}", path.display())))?;
    Ok((planted, Canary { path, digest: Digest::of(&secret) }))
}

/// Listens on this path, through its directory, because the whole path may be too long for `sun_path`.
fn socket(path: PathBuf) -> Result<(RemoveOnDrop, UnixListener), ProbeError> {
    let listen = || {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(std::io::Error::other("it has no name"));
        };
        let dir = File::open(dir)?;
        UnixListener::bind(Path::new(&format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name))
    };
    let listener = listen().map_err(io(format!("listening on {}", path.display())))?;
    Ok((RemoveOnDrop(path), listener))
}

/// A bare repository with one branch.
fn bare(path: PathBuf) -> Result<RemoveOnDrop, ProbeError> {
    let planted = RemoveOnDrop::dir(path)?;
    let path = planted.path();
    let laid = || {
        fs::create_dir_all(path.join("objects"))?;
        fs::create_dir_all(path.join("refs/heads"))?;
        fs::write(path.join("HEAD"), "ref: refs/heads/main\n")?;
        fs::write(path.join("config"), "[core]\n\trepositoryformatversion = 0\n\tbare = true\n")?;
        fs::write(path.join(CANARY_BRANCH), NO_COMMIT)
    };
    laid().map_err(io(format!("making a repository at {}", path.display())))?;
    Ok(planted)
}

impl RemoveOnDrop {
    fn dir(path: PathBuf) -> Result<Self, ProbeError> {
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(io(format!("making {}", path.display())))?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let _ = if self.0.is_dir() { fs::remove_dir_all(&self.0) } else { fs::remove_file(&self.0) };
    }
}
