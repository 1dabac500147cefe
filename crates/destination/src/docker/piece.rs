//! The pieces that a container's walls are made of: what each is, what a test build does without it, and who notices.
//! Read it as data.

use crate::wall::Wall;

/// One piece of a container's walls. A build for tests can leave any one of them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The image cannot be written.
    ReadOnlyImage,
    /// What is mounted beside the rooms cannot be written.
    ReadOnlyMounts,
    /// The kernel's settings cannot be written.
    KernelSettings,
    /// The kernel's lists of keys and memory are covered.
    KernelLists,
    /// Nothing of the host's files has a name.
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
    /// Not what Docker calls a privileged container.
    Unprivileged,
    /// Docker's option `no-new-privileges`.
    NoNewPrivilegesOption,
    /// The same in all three ways by which it comes about.
    NoNewPrivileges,
    /// herma's filter of system calls.
    Filter,
    /// Docker's own filter of system calls.
    DockersFilter,
    /// Landlock.
    Landlock,
    /// The limit of memory, by Docker.
    Memory,
    /// The limit of processes, by Docker.
    Processes,
    /// The limit of processor time, by Docker.
    Cpu,
    /// All three, and that they are read back.
    Groups,
    /// The limits of each process.
    Rlimits,
    /// The sizes of the private places.
    Sizes,
    /// No open file of the caller.
    Files,
    /// No variable of the image.
    Environment,
    /// The command dies with the first process.
    Parent,
}

/// Who notices that a piece is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noticed {
    /// This probe fails.
    ByProbe(&'static str),
    /// herma's first process in the container refuses to start anything, in these words.
    Inside(&'static str),
    /// herma, which reads the kernel's state of that process from outside, refuses, in these words.
    Outside(&'static str),
}

/// One row of the table, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceRow {
    /// The piece.
    pub piece: Piece,
    /// Its name.
    pub name: &'static str,
    /// The wall that it is a part of.
    pub wall: Wall,
    /// How a container is without it.
    pub without: &'static str,
    /// Who notices.
    pub noticed: Noticed,
}

macro_rules! pieces {
    ($($piece:ident, $name:literal, $wall:ident, $without:literal, $noticed:expr;)*) => {
        /// Every piece.
        pub const PIECES: &[PieceRow] = &[$(PieceRow {
            piece: Piece::$piece, name: $name, wall: Wall::$wall, without: $without, noticed: $noticed,
        },)*];
    };
}

use Noticed::{ByProbe, Inside, Outside};

pieces! {
    ReadOnlyImage, "read_only_image", Mounts, "the image can be written", ByProbe("read_only_system");
    ReadOnlyMounts, "read_only_mounts", Mounts, "all that is mounted can be written", ByProbe("read_only_system");
    KernelSettings, "kernel_settings", Mounts, "Docker leaves /proc/sys and its kin open for writing", ByProbe("read_only_system");
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
    NoNewPrivileges, "no_new_privileges", NoNewPrivileges, "neither Docker, nor herma's filter, nor Landlock sets it, and nobody looks", ByProbe("new_privileges");
    Filter, "filter", Seccomp, "Docker's own filter only", ByProbe("trace_sibling");
    DockersFilter, "dockers_filter", Seccomp, "herma's filter only", Outside("filters of system calls");
    Landlock, "landlock", Landlock, "no Landlock", ByProbe("second_wall");
    Memory, "memory", Limits, "Docker sets no such limit", Outside("`memory`");
    Processes, "processes", Limits, "Docker sets no such limit", Outside("`processes`");
    Cpu, "cpu", Limits, "Docker sets no such limit", Outside("`cpu`");
    Groups, "groups", Limits, "Docker sets none of the three, and nobody looks", ByProbe("exceed_processes");
    Rlimits, "rlimits", Limits, "no process has limits of its own", ByProbe("limits");
    Sizes, "sizes", Limits, "/tmp and the home have no size", ByProbe("limits");
    Files, "files", Files, "herma's first process leaves a file open", ByProbe("inherited_files");
    Environment, "environment", Environment, "the image's variables stay", ByProbe("inherited_variables");
    Parent, "parent", Parent, "the command outlives herma's first process", ByProbe("outlive_herma");
}
