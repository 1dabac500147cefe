//! Attempts on files, directories and named sockets.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use herma_core::{Digest, RunId};
use rustix::fs::StatVfsMountFlags;
use rustix::io::Errno;

use super::ProbeOutcome::{Denied, NotDenied, Pending};
use super::{ABSENT, ProbeOutcome, all, judge};
use crate::landlock_canary::LandlockCanary;
use crate::probe::{CANARY_BRANCH, Canary, ProbePlan};
use crate::sandbox::layout;

const UNWRITABLE: &[ErrorKind] = &[
    ErrorKind::NotFound,
    ErrorKind::PermissionDenied,
    ErrorKind::NotADirectory,
    ErrorKind::ReadOnlyFilesystem,
];

/// Each of them lets a writer run a program on the host, or stop the host.
const KERNEL_SETTINGS: [&str; 4] = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/sysrq",
    "/proc/sysrq-trigger",
];

/// Paths that must be mounted read-only, also where Landlock would deny a write.
const READ_ONLY: [&str; 8] =
    ["/", "/usr", "/etc", "/etc/passwd", "/etc/group", "/proc/sys", layout::HERMA, layout::INSIDE_MARKER];

const CONTAINER_SOCKETS: [&str; 4] = [
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
];

pub(in super::super) fn write_in(run_id: &RunId, dir: impl AsRef<Path>) -> ProbeOutcome {
    let file = dir.as_ref().join(format!(".herma-probe-{run_id}"));
    let created = OpenOptions::new().write(true).create_new(true).open(&file);
    if created.is_ok() {
        let _ = fs::remove_file(&file);
    }
    judge(created, UNWRITABLE, |_| format!("wrote {}", file.display()))
}

fn open_for_writing(file: &Path) -> ProbeOutcome {
    judge(OpenOptions::new().write(true).open(file), UNWRITABLE, |_| format!("opened {}", file.display()))
}

pub(in super::super) fn kernel_settings() -> ProbeOutcome {
    all(KERNEL_SETTINGS.into_iter().map(|file| open_for_writing(Path::new(file))), "there is none")
}

/// A container runtime masks them with an empty file.
pub(in super::super) fn kernel_lists() -> ProbeOutcome {
    let attempt = |path: &str| match File::open(path).and_then(|mut list| list.read(&mut [0; 64])) {
        Ok(0) => Denied("it is empty".to_owned()),
        other => judge(other, ABSENT, |_| format!("read {path}")),
    };
    all(layout::KERNEL_INFO_FILES.into_iter().map(attempt), "there is none")
}

pub(in super::super) fn write_mounts(plan: &ProbePlan) -> ProbeOutcome {
    let attempt = |place: &PathBuf| {
        if place.is_dir() { write_in(&plan.run_id, place) } else { open_for_writing(place) }
    };
    all(plan.mounts.iter().map(attempt), "there is none")
}

/// Reads back how the kernel has mounted the system and the read-only mounts.
pub(in super::super) fn read_only_system(plan: &ProbePlan) -> ProbeOutcome {
    let read_only = |place: &Path| match rustix::fs::statvfs(place) {
        Ok(seen) if seen.f_flag.contains(StatVfsMountFlags::RDONLY) => {
            Denied("all are mounted for reading only".to_owned())
        }
        Ok(_) => NotDenied(format!("{} is mounted for writing", place.display())),
        // Below an image directory that the user inside cannot enter, nothing can be written either.
        Err(Errno::ACCESS) if plan.mounts.iter().any(|mount| mount == place) => {
            Denied("it cannot be reached".to_owned())
        }
        Err(error) => NotDenied(format!("unclear: {}: {error}", place.display())),
    };
    // A container runtime creates its own /dev, which belongs to root.
    let devices = plan.read_only_devices.then_some("/dev");
    let system = READ_ONLY.into_iter().chain(devices).map(Path::new);
    let places = system.chain(plan.mounts.iter().map(PathBuf::as_path));
    all(places.map(read_only), "there is none")
}

/// A file that the mounts leave writable; in a container, a file in a directory that they leave writable. Without
/// Landlock neither exists.
pub(in super::super) fn second_wall(plan: &ProbePlan) -> ProbeOutcome {
    match plan.landlock_canary {
        LandlockCanary::Directory => write_in(&plan.run_id, layout::LANDLOCK_CANARY_PATH),
        LandlockCanary::File => open_for_writing(Path::new(layout::LANDLOCK_CANARY_PATH)),
    }
}

pub(in super::super) fn read_canary(canary: &Canary) -> ProbeOutcome {
    judge(fs::read(&canary.path), ABSENT, |content| {
        let what =
            if Digest::of(&content) == canary.digest { "the secret" } else { "another file in its place" };
        format!("read {what}")
    })
}

pub(in super::super) fn list(dir: &Path) -> ProbeOutcome {
    judge(fs::read_dir(dir), ABSENT, |entries| format!("listed {} entries", entries.count()))
}

pub(in super::super) fn container_sockets() -> ProbeOutcome {
    let refused = [ABSENT, &[ErrorKind::ConnectionRefused]].concat();
    let attempt = |path| judge(UnixStream::connect(path), &refused, |_| format!("connected to {path}"));
    all(CONTAINER_SOCKETS.into_iter().map(attempt), "there is none")
}

/// Connects to a socket of the host, through its directory, because the whole path may be too long for `sun_path`.
pub(in super::super) fn reach_socket(path: &Path) -> ProbeOutcome {
    let connect = || {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::other("it has no name"));
        };
        let dir = File::open(dir)?;
        UnixStream::connect(Path::new(&format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name))
    };
    judge(connect(), ABSENT, |_| "connected".to_owned())
}

/// Pushes a branch deletion to a repository of the host, which needs nothing to send. That takes four programs, one
/// after the other.
pub(in super::super) fn push(plan: &ProbePlan) -> ProbeOutcome {
    let seen = list(&plan.repository);
    if matches!(seen, NotDenied(_)) {
        return seen;
    }
    let git_dir = plan.workspace.join(".git");
    let prepared = ["objects", "refs"]
        .into_iter()
        .try_for_each(|dir| fs::create_dir_all(git_dir.join(dir)))
        .and_then(|()| fs::write(git_dir.join("HEAD"), "ref: refs/heads/main\n"));
    if let Err(error) = prepared {
        return NotDenied(format!("unclear: cannot make a repository to push from: {error}"));
    }
    // git's stderr would name herma's home.
    let pushing = Command::new("git")
        .arg("-C")
        .arg(&plan.workspace)
        .arg("push")
        .arg(&plan.repository)
        .arg(format!(":{CANARY_BRANCH}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match pushing {
        Ok(mut git) => Pending(Box::new(move || match git.wait() {
            Ok(status) if status.success() => NotDenied("pushed".to_owned()),
            Ok(status) => Denied(format!("git ended with {status}")),
            Err(error) => NotDenied(format!("unclear: {error}")),
        })),
        Err(error) if ABSENT.contains(&error.kind()) => Denied("there is no git to push with".to_owned()),
        Err(error) => NotDenied(format!("unclear: {error}")),
    }
}
