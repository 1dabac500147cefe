//! Attempts to exceed limits, and the kernel's view of the limits.

use std::thread;

use rustix::fs::{FallocateFlags, fallocate, inotify};

use super::ProbeOutcome::{Denied, NotDenied};
use super::{ProbeOutcome, all};
use crate::launcher::rlimits;
use crate::limits::{Held, HeldBy, LimitName};
use crate::memory;
use crate::probe::ProbePlan;
use crate::sandbox::layout;

/// The factor above the limit that is attempted.
const BEYOND: u64 = 2;
/// The fraction that is filled by a memfd; twice the limit is attempted.
const AS_FILE: u64 = 8;
/// A waiting thread needs little memory, and must not exhaust it.
const STACK: usize = 64 << 10;
/// The hint for a limit that was not enforced: usually herma runs as root in a container, or without systemd.
const UNBOUND: &str = ": only an rlimit holds it, which does not bind root. Start herma as another user, or where it can make \
                       cgroups (docs/confinement.md, limits)";

/// Every limit as the kernel reports it to this process. Cgroup limits were read back at creation.
pub(in super::super) fn read_back(plan: &ProbePlan) -> ProbeOutcome {
    if plan.limits.is_empty() {
        return NotDenied("no limit is held".to_owned());
    }
    let attempt = |Held { name, value, by }: &Held| {
        let seen = match by {
            HeldBy::Rlimit => rlimits::read_back(*name),
            HeldBy::Tmpfs => layout::sized_place(*name).and_then(size_of),
            HeldBy::UserNamespace if *name == LimitName::InotifyInstances => inotify_instances(*value),
            // bubblewrap fails if it cannot write a sysctl of the namespace, and nothing inside shows it.
            HeldBy::CgroupV1 | HeldBy::CgroupV2 | HeldBy::Watch | HeldBy::UserNamespace => Some(*value),
        };
        match seen {
            Some(seen) if seen <= *value => Denied(format!("all {} are set", plan.limits.len())),
            Some(seen) => NotDenied(format!("{name} is {seen} and not {value}")),
            None => NotDenied(format!("{name} is not limited")),
        }
    };
    all(plan.limits.iter().map(attempt), "there is none")
}

/// The number of inotify instances that can be created; `None` if more than `limit`.
fn inotify_instances(limit: u64) -> Option<u64> {
    let mut made = Vec::new();
    while made.len() as u64 <= limit {
        match inotify::init(inotify::CreateFlags::CLOEXEC) {
            Ok(instance) => made.push(instance),
            Err(rustix::io::Errno::MFILE) => return Some(made.len() as u64),
            Err(_) => return None,
        }
    }
    None
}

/// The size of the file system at this path.
fn size_of(place: &str) -> Option<u64> {
    let seen = rustix::fs::statvfs(place).ok()?;
    // A file system without a size reports 0, which is no limit.
    seen.f_blocks.checked_mul(seen.f_frsize).filter(|size| *size > 0)
}

/// Starts threads, which count as processes, until no more can be started. They end with this process.
pub(in super::super) fn exceed_processes(plan: &ProbePlan) -> ProbeOutcome {
    let Some(limit) = plan.small.map(|small| small.processes) else {
        return NotDenied("unclear: there is no limit to try".to_owned());
    };
    for running in 0..=limit * BEYOND {
        match thread::Builder::new().stack_size(STACK).spawn(wait_for_ever) {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) && running < limit => {
                return Denied(format!("{error}, with a limit of {limit}"));
            }
            Err(error) => return NotDenied(format!("unclear: {error}")),
        }
    }
    let tried = limit * BEYOND + 1;
    NotDenied(format!("{tried} at once, and the limit is {limit}{}", why_not(&plan.limits)))
}

/// Why the number of processes is not enforced, if known.
fn why_not(limits: &[Held]) -> &'static str {
    let by = limits.iter().find(|held| held.name == LimitName::Processes).map(|held| held.by);
    if by == Some(HeldBy::Rlimit) { UNBOUND } else { "" }
}

fn wait_for_ever() {
    loop {
        thread::park();
    }
}

/// Fills more memory than all processes may have. If the limit works, this process is killed without a result, and
/// the kernel's counter tells the outside.
pub(in super::super) fn exceed_memory(plan: &ProbePlan) -> ProbeOutcome {
    let Some(bytes) = plan.small.and_then(|small| usize::try_from(small.memory * BEYOND).ok()) else {
        return NotDenied("unclear: there is no limit to try".to_owned());
    };
    let mut memory: Vec<u8> = Vec::new();
    if memory.try_reserve_exact(bytes).is_err() {
        return Denied("no more memory is given".to_owned());
    }
    // A memfd counts as memory and takes a third of the time, for which every run waits. But no process owns it,
    // and the OOM killer selects the largest owner: so the rest is private memory.
    let file = memory::file(b"").and_then(|file| {
        fallocate(&file, FallocateFlags::empty(), 0, bytes as u64 / AS_FILE)?;
        Ok(file)
    });
    let Ok(_file) = file else { return NotDenied("unclear: a part of the memory was refused".to_owned()) };
    while memory.len() < bytes {
        memory.extend_from_slice(&[1; 4096]);
    }
    // Used, so that the writes are not optimised away.
    NotDenied(format!("filled {} bytes", std::hint::black_box(&memory).len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_told_that_an_rlimit_does_not_bind_it() {
        let held = |by| [Held::new(LimitName::Processes, 24, by)];
        assert!(why_not(&held(HeldBy::Rlimit)).contains("does not bind root"));
        assert_eq!(why_not(&held(HeldBy::CgroupV2)), "");
        assert_eq!(why_not(&[]), "");
    }
}
