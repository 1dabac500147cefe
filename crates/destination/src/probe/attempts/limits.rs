//! Attempts to use more than a limit lets through, and what the kernel says of the limits.

use std::thread;

use rustix::fs::{FallocateFlags, fallocate, inotify};

use super::Attempt::{Denied, NotDenied};
use super::{Attempt, all};
use crate::launcher::rlimits;
use crate::limits::{Held, HeldBy, LimitName};
use crate::memory;
use crate::probe::ProbePlan;
use crate::sandbox::layout;

/// How much more than allowed is tried.
const BEYOND: u64 = 2;
/// Which part of what is tried is a file; twice the limit is tried.
const AS_FILE: u64 = 8;
/// A thread that waits needs next to nothing, and must not be what memory runs out for.
const STACK: usize = 64 << 10;
/// What a person can do who reads that it was not denied: most often it is root in a container, or without systemd.
const UNBOUND: &str = ": only an rlimit holds it, which does not bind root. Start herma as another user, or where it can make \
                       cgroups (docs/confinement.md, limits)";

/// Every limit as the kernel shows it to this process. What a cgroup holds was read back where it was made.
pub(in super::super) fn read_back(plan: &ProbePlan) -> Attempt {
    if plan.limits.is_empty() {
        return NotDenied("no limit is held".to_owned());
    }
    let attempt = |Held { name, value, by }: &Held| {
        let seen = match by {
            HeldBy::Rlimit => rlimits::read_back(*name),
            HeldBy::Tmpfs => layout::sized_place(*name).and_then(size_of),
            HeldBy::UserNamespace if *name == LimitName::InotifyInstances => inotify_instances(*value),
            // Of the namespace, the rest: bubblewrap starts nothing where it cannot write a setting, and nothing inside shows it.
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

/// How many instances of inotify there can be at once; `None` if there can be more than `limit`.
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

/// The size of the file system at this place.
fn size_of(place: &str) -> Option<u64> {
    let seen = rustix::fs::statvfs(place).ok()?;
    // A file system without a size shows 0, which is no limit.
    seen.f_blocks.checked_mul(seen.f_frsize).filter(|size| *size > 0)
}

/// Starts threads, which count as processes do, until no more can be started. They end with this process.
pub(in super::super) fn exceed_processes(plan: &ProbePlan) -> Attempt {
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

/// Why the number of processes is not held, where it is known.
fn why_not(limits: &[Held]) -> &'static str {
    let by = limits.iter().find(|held| held.name == LimitName::Processes).map(|held| held.by);
    if by == Some(HeldBy::Rlimit) { UNBOUND } else { "" }
}

fn wait_for_ever() {
    loop {
        thread::park();
    }
}

/// Fills more memory than there is for all. Where that is refused as it should be, this process is killed, and nothing comes
/// back: the kernel's own count says so outside.
pub(in super::super) fn exceed_memory(plan: &ProbePlan) -> Attempt {
    let Some(bytes) = plan.small.and_then(|small| usize::try_from(small.memory * BEYOND).ok()) else {
        return NotDenied("unclear: there is no limit to try".to_owned());
    };
    let mut memory: Vec<u8> = Vec::new();
    if memory.try_reserve_exact(bytes).is_err() {
        return Denied("no more memory is given".to_owned());
    }
    // A file in memory counts as all memory does and costs a third of the time, for which every run waits. But it is
    // nobody's own, and who has most of its own is killed: so the rest is.
    let file = memory::file(b"").and_then(|file| {
        fallocate(&file, FallocateFlags::empty(), 0, bytes as u64 / AS_FILE)?;
        Ok(file)
    });
    let Ok(_file) = file else { return NotDenied("unclear: a part of the memory was refused".to_owned()) };
    while memory.len() < bytes {
        memory.extend_from_slice(&[1; 4096]);
    }
    // Looked at, so that it is really written.
    NotDenied(format!("filled {} bytes", std::hint::black_box(&memory).len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_bound_by_an_rlimit_is_told_so() {
        let held = |by| [Held::new(LimitName::Processes, 24, by)];
        assert!(why_not(&held(HeldBy::Rlimit)).contains("does not bind root"));
        assert_eq!(why_not(&held(HeldBy::CgroupV2)), "");
        assert_eq!(why_not(&[]), "");
    }
}
