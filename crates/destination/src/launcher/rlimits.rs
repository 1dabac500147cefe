//! Resource limits: what a process sets for itself, and what it starts inherits.

use std::io;

use herma_core::units::Bytes;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::limits::{Held, HeldBy, LimitName, Limits};

/// Every resource that herma limits: the limit it stands for, its word on the launcher's command line, and the
/// kernel's.
const RESOURCES: [(LimitName, &str, Resource); 11] = [
    (LimitName::MemoryOfEach, "as", Resource::As),
    (LimitName::DataOfEach, "data", Resource::Data),
    // Inside a user namespace the kernel counts only what runs in it (since 5.14): others of the same user do not
    // count. It does not hold for root, who has cgroups.
    (LimitName::Processes, "nproc", Resource::Nproc),
    (LimitName::OpenFiles, "nofile", Resource::Nofile),
    (LimitName::FileSize, "fsize", Resource::Fsize),
    (LimitName::CpuSecondsOfEach, "cpu", Resource::Cpu),
    // These two the kernel counts per user; in a user namespace only what is inside counts (since 5.14).
    (LimitName::MessageQueues, "msgqueue", Resource::Msgqueue),
    (LimitName::PendingSignals, "sigpending", Resource::Sigpending),
    (LimitName::LockedMemoryOfEach, "memlock", Resource::Memlock),
    // A user of the machine may have been given more than none, for sound or for a desktop.
    (LimitName::RealtimePriority, "rtprio", Resource::Rtprio),
    (LimitName::RaisedPriority, "nice", Resource::Nice),
];

/// The limit of each process that the contract sets: all that is held on the host.
pub(crate) fn of_each(limits: &Limits) -> Vec<Held> {
    limits.memory.map(|Bytes(bytes)| rlimit(LimitName::MemoryOfEach, bytes)).into_iter().collect()
}

/// Every limit for a job of which `elsewhere` are held by something stronger.
pub(crate) fn all(limits: &Limits, elsewhere: &[Held]) -> Vec<Held> {
    let held = |name: LimitName| elsewhere.iter().any(|held| held.name == name);
    let mut all = of_each(limits);
    if !held(LimitName::Memory) {
        // Not the address space: many programs reserve far more of it than they will ever use.
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
    // Who started herma may have set less, and that cannot be raised.
    for held in &mut all {
        held.value = most(held.name, held.value);
    }
    all
}

/// The word of a limit on the launcher's command line.
pub(super) fn word(name: LimitName) -> Option<&'static str> {
    RESOURCES.iter().find(|(known, ..)| *known == name).map(|(_, word, _)| *word)
}

/// The limit behind a word.
pub(super) fn named(word: &str) -> Option<LimitName> {
    RESOURCES.iter().find(|(_, known, _)| *known == word).map(|(name, ..)| *name)
}

/// Sets it for this process, for good.
pub(super) fn set(name: LimitName, value: u64) -> io::Result<()> {
    let Some(resource) = resource(name) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is no limit of a process")));
    };
    let most = most(name, value);
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// What holds for this process now; `None` says that nothing does.
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
