//! The restrictions of a container: each with its effect when left out in a test build, and what detects that. Read
//! it as data.

use crate::isolation_layer::IsolationLayer;

/// One restriction of a container. A test build can leave out any one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restriction {
    /// The image is read-only.
    ReadOnlyImage,
    /// The mounts besides the job's directories are read-only.
    ReadOnlyMounts,
    /// The kernel settings are read-only.
    KernelSettings,
    /// The kernel's lists of keys and memory are masked.
    KernelLists,
    /// The host's files are not mounted.
    HostFiles,
    /// There is no name server.
    NameServers,
    /// The user inside is not root.
    User,
    /// The user inside is in no other group.
    NoOtherGroup,
    /// A pid namespace.
    PidNamespace,
    /// A network namespace without a network.
    NetworkNamespace,
    /// An ipc namespace.
    IpcNamespace,
    /// A uts namespace.
    UtsNamespace,
    /// A cgroup namespace.
    CgroupNamespace,
    /// No capability.
    Capabilities,
    /// Not a privileged container.
    Unprivileged,
    /// Docker's option `no-new-privileges`.
    NoNewPrivilegesOption,
    /// no-new-privileges in all three ways that set it.
    NoNewPrivileges,
    /// herma's seccomp filter.
    Filter,
    /// Docker's default seccomp filter.
    DockersFilter,
    /// Landlock.
    Landlock,
    /// The memory limit, by Docker.
    Memory,
    /// The limit of processes, by Docker.
    Processes,
    /// The CPU limit, by Docker.
    Cpu,
    /// All three, and their read-back.
    Groups,
    /// The limits of each process.
    Rlimits,
    /// The sizes of the private tmpfs mounts.
    Sizes,
    /// No open file of the caller.
    Files,
    /// No variable of the image.
    Environment,
    /// The command dies with the init process.
    Parent,
}

/// The check that detects a missing restriction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetectedBy {
    /// This probe fails.
    ByProbe(&'static str),
    /// The keeper refuses to start anything, with this message.
    Inside(&'static str),
    /// herma, which reads the kernel's state from outside, refuses with this message.
    Outside(&'static str),
}

/// One row of the table, for readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestrictionRow {
    /// The restriction.
    pub restriction: Restriction,
    /// Its name.
    pub name: &'static str,
    /// The isolation layer that it belongs to.
    pub layer: IsolationLayer,
    /// The container without it.
    pub without: &'static str,
    /// The check that detects that.
    pub detected_by: DetectedBy,
}

macro_rules! restrictions {
    ($($restriction:ident, $name:literal, $layer:ident, $without:literal, $detected_by:expr;)*) => {
        /// Every restriction.
        pub const RESTRICTIONS: &[RestrictionRow] = &[$(RestrictionRow {
            restriction: Restriction::$restriction, name: $name, layer: IsolationLayer::$layer, without: $without, detected_by: $detected_by,
        },)*];
    };
}

use DetectedBy::{ByProbe, Inside, Outside};

restrictions! {
    ReadOnlyImage, "read_only_image", Mounts, "the image can be written", ByProbe("read_only_system");
    ReadOnlyMounts, "read_only_mounts", Mounts, "all that is mounted can be written", ByProbe("read_only_system");
    KernelSettings, "kernel_settings", Mounts, "Docker leaves /proc/sys and similar files open for writing", ByProbe("read_only_system");
    KernelLists, "kernel_lists", Mounts, "Docker covers nothing in /proc", ByProbe("read_kernel_lists");
    HostFiles, "host_files", Mounts, "the host's /tmp is shown", ByProbe("reach_host_socket");
    NameServers, "name_servers", NetworkNamespace, "the host's name servers are shown", ByProbe("resolve_names");
    User, "user", UserNamespace, "root, without capabilities", ByProbe("share_user_namespace");
    NoOtherGroup, "no_other_group", UserNamespace, "the user is in a second group of this machine", ByProbe("share_user_namespace");
    PidNamespace, "pid_namespace", PidNamespace, "that of the host", Inside("it is not the first process");
    NetworkNamespace, "network_namespace", NetworkNamespace, "that of the host", ByProbe("connect_host_loopback");
    IpcNamespace, "ipc_namespace", IpcNamespace, "that of the host", ByProbe("share_ipc_namespace");
    UtsNamespace, "uts_namespace", UtsNamespace, "that of the host", ByProbe("share_uts_namespace");
    CgroupNamespace, "cgroup_namespace", CgroupNamespace, "that of the host", ByProbe("share_cgroup_namespace");
    Capabilities, "capabilities", Capabilities, "those that Docker usually gives, to a user who has none of them yet", ByProbe("capabilities");
    Unprivileged, "unprivileged", Capabilities, "what Docker calls a privileged container: every device and capability", Outside("filters of system calls");
    NoNewPrivilegesOption, "no_new_privileges_option", NoNewPrivileges, "Docker is not asked for it", Inside("new privileges");
    NoNewPrivileges, "no_new_privileges", NoNewPrivileges, "neither Docker, nor herma's filter, nor Landlock sets it, and nothing checks it", ByProbe("new_privileges");
    Filter, "filter", Seccomp, "Docker's own filter only", ByProbe("trace_sibling");
    DockersFilter, "dockers_filter", Seccomp, "herma's filter only", Outside("filters of system calls");
    Landlock, "landlock", Landlock, "no Landlock", ByProbe("second_wall");
    Memory, "memory", Limits, "Docker sets no such limit", Outside("`memory`");
    Processes, "processes", Limits, "Docker sets no such limit", Outside("`processes`");
    Cpu, "cpu", Limits, "Docker sets no such limit", Outside("`cpu`");
    Groups, "groups", Limits, "Docker sets none of the three, and nothing checks them", ByProbe("exceed_processes");
    Rlimits, "rlimits", Limits, "no process has limits of its own", ByProbe("limits");
    Sizes, "sizes", Limits, "/tmp and the home have no size", ByProbe("limits");
    Files, "files", Files, "herma's first process leaves a file open", ByProbe("inherited_files");
    Environment, "environment", Environment, "the image's variables stay", ByProbe("inherited_variables");
    Parent, "parent", Parent, "the command outlives herma's first process", ByProbe("outlive_herma");
}
