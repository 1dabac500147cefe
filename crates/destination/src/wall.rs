//! The walls, by name: what a probe leans on.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One wall of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wall {
    /// The file system that is laid out for the job: what is not in it cannot be named.
    Mounts,
    /// The user namespace, and that there is no further one inside.
    UserNamespace,
    /// The pid namespace: who is outside cannot be seen, signalled or traced.
    PidNamespace,
    /// The network namespace: nothing but its own loopback.
    NetworkNamespace,
    /// The namespace of System V and POSIX message queues, semaphores and shared memory.
    IpcNamespace,
    /// The namespace of the host's name.
    UtsNamespace,
    /// The namespace of cgroups.
    CgroupNamespace,
    /// No capability in any set.
    Capabilities,
    /// No program gives privileges by being started.
    NoNewPrivileges,
    /// The filter of system calls.
    Seccomp,
    /// Landlock: a second wall around files, signals and abstract sockets.
    Landlock,
    /// The limits of what may be used.
    Limits,
    /// No open file of the caller.
    Files,
    /// No variable of the caller.
    Environment,
    /// A session of its own: no terminal of the caller.
    Session,
    /// What is inside dies with herma.
    Parent,
}

impl Wall {
    /// Every wall.
    pub const ALL: [Self; 16] = [
        Self::Mounts,
        Self::UserNamespace,
        Self::PidNamespace,
        Self::NetworkNamespace,
        Self::IpcNamespace,
        Self::UtsNamespace,
        Self::CgroupNamespace,
        Self::Capabilities,
        Self::NoNewPrivileges,
        Self::Seccomp,
        Self::Landlock,
        Self::Limits,
        Self::Files,
        Self::Environment,
        Self::Session,
        Self::Parent,
    ];

    /// Its name in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mounts => "mounts",
            Self::UserNamespace => "user_namespace",
            Self::PidNamespace => "pid_namespace",
            Self::NetworkNamespace => "network_namespace",
            Self::IpcNamespace => "ipc_namespace",
            Self::UtsNamespace => "uts_namespace",
            Self::CgroupNamespace => "cgroup_namespace",
            Self::Capabilities => "capabilities",
            Self::NoNewPrivileges => "no_new_privileges",
            Self::Seccomp => "seccomp",
            Self::Landlock => "landlock",
            Self::Limits => "limits",
            Self::Files => "files",
            Self::Environment => "environment",
            Self::Session => "session",
            Self::Parent => "parent",
        }
    }
}

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
