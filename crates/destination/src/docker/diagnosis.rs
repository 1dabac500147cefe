//! Checks that Docker is available and can run a job; each reason why not has its own remedy.

use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bollard::models::{ImageInspect, SystemInfo, SystemInfoCgroupVersionEnum, SystemVersion};

use super::daemon::Daemon;
use super::image::ImagePin;
use crate::destination::Unready;
use crate::limits::{Held, HeldBy, LimitName, Limits};

/// Docker's default socket.
const DEFAULT_SOCKET: &str = "unix:///var/run/docker.sock";

/// A healthy daemon answers these requests in milliseconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The properties of the daemon and the image.
#[derive(Clone, Debug)]
pub(super) struct DaemonFacts {
    /// The image by its id: the inspected image is the one that is started.
    pub(super) image: String,
    /// Docker's version and runtime.
    pub(super) detail: String,
    /// Whether it applies its own seccomp filter to containers.
    pub(super) filter: bool,
    /// Whether swap can be limited.
    pub(super) swap: bool,
    /// Docker's enforcer of limits, and the limits that it enforces.
    by: HeldBy,
    holds: Vec<LimitName>,
}

impl DaemonFacts {
    /// The limits that Docker will enforce.
    pub(super) fn held(&self, limits: &Limits) -> Vec<Held> {
        let value = |name: LimitName| match name {
            LimitName::Memory => limits.total_memory.0,
            LimitName::Processes => limits.processes,
            _ => limits.cpu,
        };
        self.holds.iter().map(|name| Held::new(*name, value(*name), self.by)).collect()
    }
}

/// The path of the daemon's socket.
pub(super) fn socket(named: Option<&str>) -> Result<PathBuf, Unready> {
    let named = named.unwrap_or(DEFAULT_SOCKET);
    match named.strip_prefix("unix://").unwrap_or(named) {
        path if path.starts_with('/') => Ok(path.into()),
        _ => Err(unready(
            format!("`{named}` is not a Unix socket"),
            "name one, as in DOCKER_HOST=unix:///var/run/docker.sock: herma mounts directories and sockets of this \
             machine, so that the daemon must run on it",
        )),
    }
}

/// Finds the daemon that listens at this socket.
pub(super) fn find(socket: &Path) -> Result<Arc<Daemon>, Unready> {
    reach(socket)?;
    Daemon::connect(socket, CONNECT_TIMEOUT).map(Arc::new).map_err(|error| not_docker(socket, &error))
}

/// Connects to the socket itself: the four ways to fail have four different remedies.
fn reach(socket: &Path) -> Result<(), Unready> {
    let at = socket.display();
    let met = socket.metadata().and_then(|meta| {
        let is_one = meta.file_type().is_socket();
        is_one.then_some(()).ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "it is not a socket"))
    });
    let Err(error) = met.and_then(|()| UnixStream::connect(socket)) else { return Ok(()) };
    Err(match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => unready(
            format!("there is no Docker socket at {at}"),
            "if Docker is not installed: `apt install docker.io` (or dnf, pacman, zypper); if it is, name the socket \
             that it listens on: DOCKER_HOST=unix:///path/to/docker.sock",
        ),
        ErrorKind::ConnectionRefused => unready(
            format!(
                "the Docker daemon does not answer at {at}: the socket exists, but nothing listens on it"
            ),
            "start it: `systemctl start docker`; if it does not stay up, `journalctl -u docker` says why",
        ),
        ErrorKind::PermissionDenied => unready(
            format!("user {} may not use the Docker socket at {at}", rustix::process::geteuid().as_raw()),
            "`sudo usermod -aG docker $USER`, then log in again. Mind that who may use Docker is as good as root on \
             this machine; the destination `sandbox` needs no such right",
        ),
        _ => not_docker(socket, &error),
    })
}

fn not_docker(socket: &Path, why: &dyn std::fmt::Display) -> Unready {
    unready(
        format!("what is at {} is not Docker: {why}", socket.display()),
        "name Docker's own socket: DOCKER_HOST=unix:///var/run/docker.sock (`docker context ls` lists what is known)",
    )
}

/// Queries the daemon about itself and the image.
pub(super) fn examine(
    daemon: &Daemon,
    socket: &Path,
    pin: &ImagePin,
    runtime_name: Option<&str>,
) -> Result<DaemonFacts, Unready> {
    let failed = |error: io::Error| not_docker(socket, &error);
    let version = daemon.ask(|client| async move { client.version().await }).map_err(failed)?;
    let info = daemon.ask(|client| async move { client.info().await }).map_err(failed)?;
    let engine =
        engine(&version).ok_or_else(|| not_docker(socket, &"it does not call itself Docker's engine"))?;
    users(&info)?;
    let runtime = runtime(&info, runtime_name)?;
    let name = pin.as_str().to_owned();
    let image = daemon.ask(|client| async move { client.inspect_image(&name).await });
    let image = image.map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(pin),
        _ => failed(error),
    })?;
    Ok(DaemonFacts {
        image: fit(pin, image)?,
        detail: format!("Docker {engine}, runtime {runtime}, image {pin}"),
        filter: filter(&info),
        swap: info.swap_limit == Some(true),
        by: match info.cgroup_version {
            Some(SystemInfoCgroupVersionEnum::_2) => HeldBy::CgroupV2,
            _ => HeldBy::CgroupV1,
        },
        holds: [
            (LimitName::Memory, info.memory_limit),
            (LimitName::Processes, info.pids_limit),
            (LimitName::Cpu, info.cpu_cfs_quota),
        ]
        .into_iter()
        .filter_map(|(name, can)| (can == Some(true)).then_some(name))
        .collect(),
    })
}

/// The version of Docker Engine; compatible servers report their own components.
fn engine(version: &SystemVersion) -> Option<&str> {
    let engine = version.components.as_ref()?.iter().find(|component| component.name == "Engine");
    engine.map(|engine| engine.version.as_str())
}

/// Rejects daemons with remapped users: the directories of the job would have no owner inside.
fn users(info: &SystemInfo) -> Result<(), Unready> {
    let has = |name: &str| {
        let options = info.security_options.iter().flatten();
        options.flat_map(|option| option.split(',')).any(|option| option == name)
    };
    let what = if has("name=rootless") {
        "the Docker daemon is a rootless one"
    } else if has("name=userns") {
        "the Docker daemon maps users (`userns-remap`)"
    } else {
        return Ok(());
    };
    Err(unready(
        format!("{what}, and herma's own user would be another one in its containers"),
        "name a daemon that does not: DOCKER_HOST=unix:///var/run/docker.sock; the destination `sandbox` makes a user \
         namespace of its own",
    ))
}

/// Whether the daemon has a default seccomp profile that is not disabled.
fn filter(info: &SystemInfo) -> bool {
    let mut options = info.security_options.iter().flatten();
    options.any(|option| {
        let mut words = option.split(',');
        words.next() == Some("name=seccomp") && words.all(|word| word != "profile=unconfined")
    })
}

fn runtime(info: &SystemInfo, wanted: Option<&str>) -> Result<String, Unready> {
    let usual = info.default_runtime.clone().unwrap_or_default();
    let Some(wanted) = wanted else { return Ok(usual) };
    let mut known: Vec<&str> = info.runtimes.iter().flatten().map(|(name, _)| name.as_str()).collect();
    if known.contains(&wanted) {
        return Ok(wanted.to_owned());
    }
    known.sort_unstable();
    Err(unready(
        format!("Docker has no runtime `{wanted}`; it has {}", known.join(", ")),
        &format!(
            "install it and tell Docker (for gVisor: `runsc install` and `systemctl restart docker`), or leave the \
             runtime out to use {usual}"
        ),
    ))
}

fn missing(image: &ImagePin) -> Unready {
    let next_step = if image.can_be_pulled() {
        format!("`docker pull {image}`")
    } else {
        "an image that is named by its id alone cannot be pulled: build it or `docker load` it here"
            .to_owned()
    };
    unready(format!("Docker does not have the image {image}"), &next_step)
}

/// The id of the image, if a job can run in it.
fn fit(pin: &ImagePin, image: ImageInspect) -> Result<String, Unready> {
    let places = image.config.and_then(|config| config.volumes).unwrap_or_default();
    if !places.is_empty() {
        return Err(unready(
            format!("the image {pin} makes volumes at {}", places.join(", ")),
            "build it without VOLUME: they would be places to write in that no limit holds",
        ));
    }
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    match (image.architecture, image.id) {
        (Some(other), _) if other != machine => Err(unready(
            format!("the image {pin} is for {other}, and herma is for {machine}"),
            "take an image for this machine: herma's own binary runs inside it",
        )),
        (_, Some(id)) => Ok(id),
        (_, None) => Err(missing(pin)),
    }
}

fn unready(what: String, next_step: &str) -> Unready {
    Unready { what, next_step: next_step.to_owned() }
}
