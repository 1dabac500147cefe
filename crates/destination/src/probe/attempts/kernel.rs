//! Attempts on the kernel itself, and its view of this process.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use linux_keyutils::{KeyError, KeyRing, KeyRingIdentifier};
use nix::sched::{CloneFlags, unshare};
use rustix::mount::FsOpenFlags;
use rustix::process::{Signal, Uid, parent_process_death_signal};

use super::ProbeOutcome::{Denied, NotDenied};
use super::{FORBIDDEN, ProbeOutcome, all, judge, judge_numbers};
use crate::probe::ProbePlan;
use crate::sandbox::seccomp;

pub(in super::super) fn open_files() -> ProbeOutcome {
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

/// Whether every variable is one that herma set; values are not compared.
pub(in super::super) fn environment(expected: &[String]) -> ProbeOutcome {
    let all = match fs::read("/proc/self/environ") {
        Ok(all) => all,
        Err(error) => return NotDenied(format!("unclear: {error}")),
    };
    let names = all.split(|byte| *byte == 0).filter(|variable| !variable.is_empty());
    let names = names.map(|variable| variable.split(|byte| *byte == b'=').next().unwrap_or_default());
    match names.into_iter().find(|name| !expected.iter().any(|known| known.as_bytes() == *name)) {
        Some(name) => NotDenied(format!("`{}` is set", String::from_utf8_lossy(name))),
        None => Denied("only what herma set".to_owned()),
    }
}

/// Whether this process is in another namespace than herma.
pub(in super::super) fn namespace(kind: &str, of_host: &BTreeMap<String, String>) -> ProbeOutcome {
    match (fs::read_link(format!("/proc/self/ns/{kind}")), of_host.get(kind)) {
        (Ok(own), Some(host)) if own.as_os_str() != host.as_str() => Denied("in one of its own".to_owned()),
        (Ok(own), Some(_)) => NotDenied(format!("in that of the host: {}", own.display())),
        (Err(error), _) => NotDenied(format!("unclear: {error}")),
        (Ok(_), None) => NotDenied("unclear: the host's is not known".to_owned()),
    }
}

/// Whether the user inside is a user of the host. Docker creates no user namespace, so there its purpose must hold
/// without one: no root privileges, and no way to gain them.
pub(in super::super) fn host_user(plan: &ProbePlan) -> ProbeOutcome {
    let shared = match namespace("user", &plan.namespaces) {
        NotDenied(shared) if !plan.user_namespace => shared,
        other => return other,
    };
    let user = rustix::process::getuid();
    if user.is_root() || rustix::process::geteuid().is_root() {
        return NotDenied(format!("{shared}, as root"));
    }
    if let Err(why) = only_its_own_group() {
        return NotDenied(format!("{shared}, {why}"));
    }
    let unprivileged = Denied(format!("{shared}, as user {} without privileges", user.as_raw()));
    all([capabilities(), new_privileges(), unprivileged].into_iter(), "nothing was tried")
}

/// Groups grant access to this machine too, and an image or daemon could add some.
fn only_its_own_group() -> Result<(), String> {
    let own = rustix::process::getgid();
    let others = rustix::process::getgroups().map_err(|error| format!("unclear: {error}"))?;
    match others.into_iter().chain([own]).find(|group| *group != own || group.is_root()) {
        Some(group) => Err(format!("in group {}", group.as_raw())),
        None => Ok(()),
    }
}

pub(in super::super) fn mount() -> ProbeOutcome {
    let opened = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(io::Error::from);
    judge(opened, FORBIDDEN, |_| "opened a tmpfs".to_owned())
}

pub(in super::super) fn io_uring() -> ProbeOutcome {
    judge_numbers(io_uring::IoUring::new(2), FORBIDDEN, &[libc::ENOSYS], |_| "made one".to_owned())
}

pub(in super::super) fn keyring() -> ProbeOutcome {
    match KeyRing::from_special_id(KeyRingIdentifier::Process, true) {
        Err(error @ (KeyError::PermissionDenied | KeyError::AccessDenied)) => Denied(error.to_string()),
        Err(error) => NotDenied(format!("unclear: {error}")),
        Ok(_) => NotDenied("has one".to_owned()),
    }
}

pub(in super::super) fn user_namespace() -> ProbeOutcome {
    let made = unshare(CloneFlags::CLONE_NEWUSER).map_err(io::Error::from);
    // A quota of zero namespaces also denies.
    judge_numbers(made, FORBIDDEN, &[libc::ENOSPC, libc::EUSERS], |()| "made one".to_owned())
}

pub(in super::super) fn other_user() -> ProbeOutcome {
    let became = rustix::thread::set_thread_uid(Uid::ROOT).map_err(io::Error::from);
    // If root is not mapped, no process can become root.
    judge_numbers(became, FORBIDDEN, &[libc::EINVAL], |()| "became root".to_owned())
}

pub(in super::super) fn capabilities() -> ProbeOutcome {
    let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map(|name| (name, status_field(name)));
    match sets.iter().find(|(_, value)| !is_zero(value.as_deref())) {
        Some((name, value)) => NotDenied(format!("{name} is {}", value.as_deref().unwrap_or("not shown"))),
        None => Denied("every set is empty".to_owned()),
    }
}

pub(in super::super) fn new_privileges() -> ProbeOutcome {
    status_is("NoNewPrivs", "1")
}

/// Whether herma's own filters are applied, and not just some filter. Kernels before 5.9 do not report the number.
pub(in super::super) fn filter() -> ProbeOutcome {
    let mode = status_is("Seccomp", "2");
    let count = status_field("Seccomp_filters").map(|count| match count.parse::<usize>() {
        Ok(seen) if seen >= seccomp::COUNT => Denied(format!("{seen} filters stand")),
        _ => NotDenied(format!("{count} filters stand, and {} must", seccomp::COUNT)),
    });
    all([mode].into_iter().chain(count), "nothing was tried")
}

/// Whether the session belongs to this pid namespace: one from outside shows as 0.
pub(in super::super) fn session() -> ProbeOutcome {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    match fields.skip(3).map(str::parse::<i32>).next() {
        Some(Ok(1..)) => Denied("in one of its own".to_owned()),
        Some(Ok(_)) => NotDenied("in that of the caller".to_owned()),
        _ => NotDenied("unclear: it is not shown".to_owned()),
    }
}

/// Whether the kernel kills this process when its parent dies.
pub(in super::super) fn outlive() -> ProbeOutcome {
    match parent_process_death_signal() {
        Ok(Some(signal)) if signal == Signal::KILL => Denied("dies with who started it".to_owned()),
        Ok(_) => NotDenied("goes on when who started it dies".to_owned()),
        Err(error) => NotDenied(format!("unclear: {error}")),
    }
}

fn status_is(name: &str, wanted: &str) -> ProbeOutcome {
    match status_field(name) {
        Some(value) if value == wanted => Denied(format!("{name} is {wanted}")),
        other => NotDenied(format!("{name} is {}", other.as_deref().unwrap_or("not shown"))),
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

    #[test]
    fn a_set_that_is_not_shown_is_not_empty() {
        assert!(is_zero(Some("0000000000000000")));
        for value in [None, Some(""), Some("0000000000000001")] {
            assert!(!is_zero(value), "{value:?}");
        }
    }
}
