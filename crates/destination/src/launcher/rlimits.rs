//! Resource limits (`setrlimit`), which a process sets for itself and its children inherit.

use std::io;

use herma_core::units::Bytes;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::limits::{Held, HeldBy, LimitName, Limits};

/// Every resource that herma limits: the limit, its argument of the launcher, and the kernel's resource.
const RESOURCES: [(LimitName, &str, Resource); 11] = [
    (LimitName::MemoryOfEach, "as", Resource::As),
    (LimitName::DataOfEach, "data", Resource::Data),
    // In a user namespace the kernel counts only its own processes (since 5.14). It does not bind root, for whom
    // cgroups apply.
    (LimitName::Processes, "nproc", Resource::Nproc),
    (LimitName::OpenFiles, "nofile", Resource::Nofile),
    (LimitName::FileSize, "fsize", Resource::Fsize),
    (LimitName::CpuSecondsOfEach, "cpu", Resource::Cpu),
    // The kernel counts these two per user; in a user namespace only its own count (since 5.14).
    (LimitName::MessageQueues, "msgqueue", Resource::Msgqueue),
    (LimitName::PendingSignals, "sigpending", Resource::Sigpending),
    (LimitName::LockedMemoryOfEach, "memlock", Resource::Memlock),
    // The user may have been granted a priority, for audio or a desktop.
    (LimitName::RealtimePriority, "rtprio", Resource::Rtprio),
    (LimitName::RaisedPriority, "nice", Resource::Nice),
];

/// The per-process limit of the contract: the only one on the host.
pub(crate) fn of_each(limits: &Limits) -> Vec<Held> {
    limits.memory.map(|Bytes(bytes)| rlimit(LimitName::MemoryOfEach, bytes)).into_iter().collect()
}

/// Every limit of a job, without those that `elsewhere` enforces more strongly.
pub(crate) fn all(limits: &Limits, elsewhere: &[Held]) -> Vec<Held> {
    let held = |name: LimitName| elsewhere.iter().any(|held| held.name == name);
    let mut all = of_each(limits);
    if !held(LimitName::Memory) {
        // Not the address space: many programs reserve far more of it than they use.
        all.push(rlimit(LimitName::DataOfEach, limits.total_memory.0));
    }
    if !held(LimitName::Processes) {
        all.push(rlimit(LimitName::Processes, limits.processes));
    }
    all.push(rlimit(LimitName::OpenFiles, limits.open_files));
    all.push(rlimit(LimitName::FileSize, limits.file_size.0));
    if !held(LimitName::Cpu) {
        all.push(rlimit(LimitName::CpuSecondsOfEach, limits.cpu_seconds));
    }
    all.push(rlimit(LimitName::MessageQueues, limits.message_queues.0));
    all.push(rlimit(LimitName::PendingSignals, limits.pending_signals));
    all.push(rlimit(LimitName::LockedMemoryOfEach, limits.locked_memory.0));
    all.extend([LimitName::RealtimePriority, LimitName::RaisedPriority].map(|name| rlimit(name, 0)));
    // herma's parent may have set less, which cannot be raised.
    for held in &mut all {
        held.value = most(held.name, held.value);
    }
    all
}

/// The launcher's argument for a limit.
pub(super) fn word(name: LimitName) -> Option<&'static str> {
    RESOURCES.iter().find(|(known, ..)| *known == name).map(|(_, word, _)| *word)
}

/// The limit of an argument.
pub(super) fn named(word: &str) -> Option<LimitName> {
    RESOURCES.iter().find(|(_, known, _)| *known == word).map(|(name, ..)| *name)
}

/// Sets the soft and the hard limit of this process.
pub(super) fn set(name: LimitName, value: u64) -> io::Result<()> {
    let Some(resource) = resource(name) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is no limit of a process")));
    };
    let most = most(name, value);
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// Disables core dumps. A limit of 0 disables those to a file only: the kernel starts a handler that `core_pattern` names
/// by a pipe, on the host, for every limit but 1. A hard limit of 0 cannot be raised.
pub(super) fn no_core_dumps() -> io::Result<()> {
    let limit = getrlimit(Resource::Core).maximum.map_or(1, |hard| hard.min(1));
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(limit), maximum: Some(limit) })?)
}

/// The limit that applies to this process; `None` if unlimited.
pub(crate) fn read_back(name: LimitName) -> Option<u64> {
    getrlimit(resource(name)?).maximum
}

fn resource(name: LimitName) -> Option<Resource> {
    RESOURCES.iter().find(|(known, ..)| *known == name).map(|(.., resource)| *resource)
}

fn most(name: LimitName, value: u64) -> u64 {
    read_back(name).map_or(value, |hard| hard.min(value))
}

fn rlimit(name: LimitName, value: u64) -> Held {
    Held::new(name, value, HeldBy::Rlimit)
}
