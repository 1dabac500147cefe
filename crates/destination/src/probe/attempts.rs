//! What the probes try. Only an error that can mean nothing but a refusal counts as one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use herma_model::{Digest, RunId};
use rustix::mount::FsOpenFlags;
use rustix::process::Pid;

use super::{Canary, HostProcess, ProbePlan};
use crate::proc;

/// What came of an attempt.
pub(super) enum Attempt {
    /// It was refused, in these words.
    Denied(String),
    /// It was not refused, or not clearly.
    NotDenied(String),
}

use Attempt::{Denied, NotDenied};

/// Long enough for loopback, and for the kernel to say that there is no route; nothing here waits for a network.
const CONNECT: Duration = Duration::from_millis(100);

const ABSENT: &[ErrorKind] = &[ErrorKind::NotFound, ErrorKind::PermissionDenied, ErrorKind::NotADirectory];
const UNWRITABLE: &[ErrorKind] = &[
    ErrorKind::NotFound,
    ErrorKind::PermissionDenied,
    ErrorKind::NotADirectory,
    ErrorKind::ReadOnlyFilesystem,
];
const NO_ROUTE: &[ErrorKind] = &[ErrorKind::NetworkUnreachable, ErrorKind::PermissionDenied];
const NOBODY_THERE: &[ErrorKind] =
    &[ErrorKind::ConnectionRefused, ErrorKind::NetworkUnreachable, ErrorKind::PermissionDenied];

/// Each of them lets who writes it run a program on the host, or stop the host.
const KERNEL_SETTINGS: [&str; 4] = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/sysrq",
    "/proc/sysrq-trigger",
];

const CONTAINER_SOCKETS: [&str; 4] = [
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
];

/// A refusal if the error is one of `refusals`.
fn judge<T>(result: io::Result<T>, refusals: &[ErrorKind], success: impl FnOnce(T) -> String) -> Attempt {
    match result {
        Err(error) if refusals.contains(&error.kind()) => Denied(error.to_string()),
        Err(error) => NotDenied(format!("unclear: {error}")),
        Ok(value) => NotDenied(success(value)),
    }
}

/// The first attempt that was not refused, or the last refusal.
fn all(attempts: impl Iterator<Item = Attempt>, none: &str) -> Attempt {
    let mut last = Denied(none.to_owned());
    for attempt in attempts {
        if matches!(attempt, NotDenied(_)) {
            return attempt;
        }
        last = attempt;
    }
    last
}

pub(super) fn write_in(run_id: &RunId, dir: impl AsRef<Path>) -> Attempt {
    let file = dir.as_ref().join(format!(".herma-probe-{run_id}"));
    let created = OpenOptions::new().write(true).create_new(true).open(&file);
    if created.is_ok() {
        let _ = fs::remove_file(&file);
    }
    judge(created, UNWRITABLE, |_| format!("wrote {}", file.display()))
}

fn open_for_writing(file: &Path) -> Attempt {
    judge(OpenOptions::new().write(true).open(file), UNWRITABLE, |_| format!("opened {}", file.display()))
}

pub(super) fn kernel_settings() -> Attempt {
    all(KERNEL_SETTINGS.into_iter().map(|file| open_for_writing(Path::new(file))), "there is none")
}

pub(super) fn write_mounts(plan: &ProbePlan) -> Attempt {
    let attempt = |place: &PathBuf| {
        if place.is_dir() { write_in(&plan.run_id, place) } else { open_for_writing(place) }
    };
    all(plan.mounts.iter().map(attempt), "there is none")
}

pub(super) fn read_canary(canary: &Canary) -> Attempt {
    judge(fs::read(&canary.path), ABSENT, |content| {
        let what =
            if Digest::of(&content) == canary.digest { "the secret" } else { "another file in its place" };
        format!("read {what}")
    })
}

pub(super) fn list(dir: &Path) -> Attempt {
    judge(fs::read_dir(dir), ABSENT, |entries| format!("listed {} entries", entries.count()))
}

pub(super) fn connect_loopback(port: u16) -> Attempt {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    judge(TcpStream::connect_timeout(&address, CONNECT), NOBODY_THERE, |_| format!("connected to {address}"))
}

pub(super) fn connect_out(ip: [u8; 4], port: u16) -> Attempt {
    let address = SocketAddr::from((ip, port));
    judge(TcpStream::connect_timeout(&address, CONNECT), NO_ROUTE, |_| format!("connected to {address}"))
}

pub(super) fn resolve() -> Attempt {
    let datagram = || UdpSocket::bind("0.0.0.0:0")?.send_to(b"herma", "192.0.2.53:53");
    let servers =
        judge(File::open("/etc/resolv.conf"), ABSENT, |_| "there is an /etc/resolv.conf".to_owned());
    let sent = judge(datagram(), NO_ROUTE, |_| "sent a datagram to 192.0.2.53:53".to_owned());
    all([servers, sent].into_iter(), "nothing was tried")
}

pub(super) fn see(herma: &HostProcess) -> Attempt {
    let namespace = match fs::read_link("/proc/self/ns/pid") {
        Ok(namespace) => namespace,
        Err(error) => return NotDenied(format!("unclear: cannot read the own pid namespace: {error}")),
    };
    if namespace.as_os_str() == herma.pid_namespace.as_str() {
        return NotDenied("in the pid namespace of the host".to_owned());
    }
    match Pid::from_raw(herma.pid).and_then(proc::look) {
        Some(seen) if seen.started == herma.started => {
            NotDenied(format!("/proc shows process {}", herma.pid))
        }
        _ => Denied(format!("/proc does not show process {}", herma.pid)),
    }
}

pub(super) fn container_sockets() -> Attempt {
    let refused = [ABSENT, &[ErrorKind::ConnectionRefused]].concat();
    let attempt = |path| judge(UnixStream::connect(path), &refused, |_| format!("connected to {path}"));
    all(CONTAINER_SOCKETS.into_iter().map(attempt), "there is none")
}

pub(super) fn open_files() -> Attempt {
    let entries = match fs::read_dir("/proc/self/fd") {
        Ok(entries) => entries,
        Err(error) => return NotDenied(format!("unclear: {error}")),
    };
    let own = format!("/proc/{}/fd", std::process::id());
    for entry in entries.flatten() {
        let number = entry.file_name();
        let standard = ["0", "1", "2"].into_iter().any(|standard| number == standard);
        match fs::read_link(entry.path()) {
            _ if standard => {}
            // The directory that is being listed here.
            Ok(target) if target.as_os_str() == own.as_str() => {}
            Ok(target) => {
                return NotDenied(format!("file {} is open: {}", number.display(), target.display()));
            }
            Err(error) => return NotDenied(format!("unclear: file {}: {error}", number.display())),
        }
    }
    Denied("only the standard streams are open".to_owned())
}

pub(super) fn mount() -> Attempt {
    let opened = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(io::Error::from);
    judge(opened, &[ErrorKind::PermissionDenied], |_| "opened a tmpfs".to_owned())
}

pub(super) fn capabilities() -> Attempt {
    let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map(|name| (name, status_field(name)));
    match sets.iter().find(|(_, value)| !is_zero(value.as_deref())) {
        Some((name, value)) => NotDenied(format!("{name} is {}", value.as_deref().unwrap_or("not shown"))),
        None => Denied("every set is empty".to_owned()),
    }
}

pub(super) fn new_privileges() -> Attempt {
    match status_field("NoNewPrivs").as_deref() {
        Some("1") => Denied("NoNewPrivs is 1".to_owned()),
        other => NotDenied(format!("NoNewPrivs is {}", other.unwrap_or("not shown"))),
    }
}

fn is_zero(value: Option<&str>) -> bool {
    value.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit == b'0'))
}

fn status_field(name: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(attempt: &Attempt) -> bool {
        matches!(attempt, Denied(_))
    }

    #[test]
    fn only_a_clear_refusal_is_one() {
        let failed = |kind: ErrorKind| judge(Err::<(), _>(kind.into()), NO_ROUTE, |()| String::new());
        assert!(denied(&failed(ErrorKind::NetworkUnreachable)));
        for kind in [ErrorKind::TimedOut, ErrorKind::HostUnreachable, ErrorKind::Interrupted] {
            assert!(!denied(&failed(kind)), "{kind}");
        }
        assert!(!denied(&judge(Ok(()), NO_ROUTE, |()| String::new())));
    }

    #[test]
    fn one_success_among_refusals_is_a_success() {
        let attempts = [Denied("a".into()), NotDenied("b".into()), Denied("c".into())];
        assert!(!denied(&all(attempts.into_iter(), "")));
    }

    #[test]
    fn a_set_that_is_not_shown_is_not_empty() {
        assert!(is_zero(Some("0000000000000000")));
        for value in [None, Some(""), Some("0000000000000001")] {
            assert!(!is_zero(value), "{value:?}");
        }
    }
}
