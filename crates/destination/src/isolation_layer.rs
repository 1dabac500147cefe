//! The isolation layers by name, as probes refer to them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One isolation layer of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Wall")]
pub enum IsolationLayer {
    /// The file system of the job: paths outside of it cannot be named.
    Mounts,
    /// The user namespace, without a nested one inside.
    UserNamespace,
    /// The pid namespace: processes outside cannot be seen, signalled or traced.
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
    /// No program gains privileges by exec.
    NoNewPrivileges,
    /// The seccomp filter.
    Seccomp,
    /// Landlock: further restrictions of files, signals and abstract sockets.
    Landlock,
    /// The resource limits.
    Limits,
    /// No open file of the caller.
    Files,
    /// No variable of the caller.
    Environment,
    /// A session of its own: no terminal of the caller.
    Session,
    /// Processes inside die with herma.
    Parent,
}

impl IsolationLayer {
    /// Every isolation layer.
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

impl fmt::Display for IsolationLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
