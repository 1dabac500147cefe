//! The resource limits of a job and how each is enforced. The defaults are defined only here.

use std::fmt;
use std::time::Duration;

use herma_core::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A loaded machine may need this long to set up isolation, also for a run with a short time limit.
const MIN_START_TIMEOUT: Duration = Duration::from_secs(20);
/// Isolation that takes longer is broken, not slow.
const MAX_START_TIMEOUT: Duration = Duration::from_mins(1);

/// The resources that one job may use. The defaults stop fork and disk bombs, not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The address space of each process, where the contract sets one.
    pub memory: Option<Bytes>,
    /// The memory of all its processes together.
    pub total_memory: Bytes,
    /// Processes and threads at once.
    pub processes: u64,
    /// Open files of each process.
    pub open_files: u64,
    /// The size of one file.
    pub file_size: Bytes,
    /// Processor time at once, in hundredths of one processor.
    pub cpu: u64,
    /// Processor time of each process from start to end, in seconds.
    pub cpu_seconds: u64,
    /// The size of its own /tmp.
    pub tmp: Bytes,
    /// The size of its own home.
    pub home: Bytes,
    /// The size of its own /dev/shm.
    pub shared_memory: Bytes,
    /// Bytes in the workspace and the engine's directory together.
    pub disk: Bytes,
    /// Files and directories there.
    pub files: u64,
    /// Pseudo-terminals open at once.
    pub terminals: u64,
    /// Inotify instances; fewer where the user's own quota is small.
    pub inotify_instances: u64,
    /// Inotify watches; fewer where the user's own quota is small.
    pub inotify_watches: u64,
    /// Bytes in POSIX message queues.
    pub message_queues: Bytes,
    /// Memory that each process may lock.
    pub locked_memory: Bytes,
    /// Queued signals and timers, of all processes together.
    pub pending_signals: u64,
    /// The time that the destination may take to start the command, over all attempts. It does not limit the
    /// command.
    pub start: Duration,
}

/// One enforced limit and its enforcer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// Which limit.
    pub name: LimitName,
    /// Its value: bytes, a count, hundredths of a processor, or seconds.
    pub value: u64,
    /// Its enforcer.
    pub by: HeldBy,
}

/// Which limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitName {
    /// Memory of all processes together, in bytes.
    Memory,
    /// Address space of each process, in bytes.
    MemoryOfEach,
    /// Private memory that each process may write, in bytes: where nothing holds all of them together.
    DataOfEach,
    /// Processes and threads at once.
    Processes,
    /// Open files of each process.
    OpenFiles,
    /// The size of one file in bytes.
    FileSize,
    /// Hundredths of one processor at once.
    Cpu,
    /// Seconds of processor time of each process.
    CpuSecondsOfEach,
    /// The size of /tmp in bytes.
    Tmp,
    /// The size of the home in bytes.
    Home,
    /// The size of /dev/shm in bytes.
    SharedMemory,
    /// Bytes in the workspace and the engine's directory.
    Disk,
    /// Files and directories there.
    Files,
    /// Pseudo-terminals open at once.
    Terminals,
    /// Instances of inotify, of all processes together.
    InotifyInstances,
    /// Watches of inotify, of all processes together.
    InotifyWatches,
    /// Bytes in POSIX message queues, of all processes together.
    MessageQueues,
    /// Bytes that each process may lock in memory.
    LockedMemoryOfEach,
    /// Signals queued and timers, of all processes together.
    PendingSignals,
    /// The highest real-time priority that a process may take; 0 is none.
    RealtimePriority,
    /// How far a process may raise its own priority; 0 is not at all.
    RaisedPriority,
}

/// The enforcer of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeldBy {
    /// A cgroup of version 2.
    CgroupV2,
    /// A cgroup of version 1.
    CgroupV1,
    /// A resource limit of the process, which its children inherit.
    Rlimit,
    /// The size of a file system in memory.
    Tmpfs,
    /// A maximum of the sandbox's own user namespace.
    UserNamespace,
    /// herma's usage monitor, which kills the job.
    Watch,
}

impl Default for Limits {
    fn default() -> Self {
        let machine = rustix::system::sysinfo();
        let memory = (machine.totalram as u64).saturating_mul(u64::from(machine.mem_unit));
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        Self {
            memory: None,
            // A quarter of the memory stays for the rest of the machine.
            total_memory: Bytes((memory / 4 * 3).max(512 * MIB)),
            processes: 4096,
            open_files: 65_536,
            file_size: Bytes(16 * GIB),
            // A tenth of a CPU stays for herma, so that it can always end a busy job.
            cpu: processors * 100 - 10,
            cpu_seconds: 8 * 60 * 60,
            tmp: Bytes(4 * GIB),
            home: Bytes(4 * GIB),
            shared_memory: Bytes(GIB),
            disk: Bytes(64 * GIB),
            files: 4_000_000,
            terminals: 256,
            inotify_instances: 64,
            inotify_watches: 1 << 20,
            // Three queues of the kernel's default size.
            message_queues: Bytes(256 << 10),
            // The kernel's default.
            locked_memory: Bytes(8 * MIB),
            pending_signals: 1024,
            start: MAX_START_TIMEOUT,
        }
    }
}

impl Limits {
    /// The defaults, with the address space of each process that a contract sets.
    #[must_use]
    pub fn with_memory(memory: Option<Bytes>) -> Self {
        Self { memory, ..Self::default() }
    }

    /// The same for a run with this time limit: the destination starts its command within it, or gives up.
    #[must_use]
    pub fn within(self, total: Duration) -> Self {
        Self { start: total.clamp(MIN_START_TIMEOUT, MAX_START_TIMEOUT), ..self }
    }
}

impl LimitName {
    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::MemoryOfEach => "memory_of_each",
            Self::DataOfEach => "data_of_each",
            Self::Processes => "processes",
            Self::OpenFiles => "open_files",
            Self::FileSize => "file_size",
            Self::Cpu => "cpu",
            Self::CpuSecondsOfEach => "cpu_seconds_of_each",
            Self::Tmp => "tmp",
            Self::Home => "home",
            Self::SharedMemory => "shared_memory",
            Self::Disk => "disk",
            Self::Files => "files",
            Self::Terminals => "terminals",
            Self::InotifyInstances => "inotify_instances",
            Self::InotifyWatches => "inotify_watches",
            Self::MessageQueues => "message_queues",
            Self::LockedMemoryOfEach => "locked_memory_of_each",
            Self::PendingSignals => "pending_signals",
            Self::RealtimePriority => "realtime_priority",
            Self::RaisedPriority => "raised_priority",
        }
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Held {
    pub(crate) fn new(name: LimitName, value: u64, by: HeldBy) -> Self {
        Self { name, value, by }
    }
}
