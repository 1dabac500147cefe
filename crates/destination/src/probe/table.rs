//! The table of probes: each attempt, and the isolation layer that must deny it. Read it as data.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::attempts::{self as a, ProbeOutcome};
use super::{ProbePlan, ProbeResult};
use crate::isolation_layer::IsolationLayer;

/// One probe.
pub(super) struct ProbeSpec {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// The layer under test: without it the probe must fail. Other layers may deny the attempt too.
    pub(super) layer: IsolationLayer,
    /// Whether it runs in the sandbox with small limits, which are cheap to exceed.
    pub(super) small: bool,
    pub(super) attempt: fn(&ProbePlan) -> ProbeOutcome,
}

macro_rules! probes {
    ($($name:ident, $layer:ident, $what:literal, $attempt:expr;)*) => {
        &[$(ProbeSpec {
            name: stringify!($name), what: $what, layer: IsolationLayer::$layer, small: false, attempt: $attempt,
        },)*
        ProbeSpec {
            name: "exceed_processes", what: "start more processes than there may be at once",
            layer: IsolationLayer::Limits, small: true, attempt: a::exceed_processes,
        },
        // Last, because its process is killed by the OOM killer.
        ProbeSpec {
            name: "exceed_memory", what: "fill more memory than all processes may have together",
            layer: IsolationLayer::Limits, small: true, attempt: a::exceed_memory,
        }]
    };
}

/// Every probe. Each must report a result, and each result must be a denial.
pub(super) const PROBES: &[ProbeSpec] = probes! {
    write_root, Mounts, "write in /", |plan| a::write_in(&plan.run_id, "/");
    write_usr, Mounts, "write in /usr", |plan| a::write_in(&plan.run_id, "/usr");
    write_etc, Mounts, "write in /etc", |plan| a::write_in(&plan.run_id, "/etc");
    write_mounts, Mounts, "write in a read-only mount", a::write_mounts;
    write_kernel_settings, Mounts, "open a setting of the kernel for writing", |_| a::kernel_settings();
    read_only_system, Mounts, "find the system or a read-only mount mounted for writing", a::read_only_system;
    read_kernel_lists, Mounts, "read which keys the user has, or the layout of the machine's memory", |_| a::kernel_lists();
    second_wall, Landlock, "write a file that the mounts would let be written", a::second_wall;
    read_herma_home, Mounts, "read a secret in herma's home", |plan| a::read_canary(&plan.herma_canary);
    read_user_home, Mounts, "read a secret in the user's home", |plan| a::read_canary(&plan.home_canary);
    list_other_run, Mounts, "list another run's directory", |plan| a::list(&plan.other_run);
    git_push, Mounts, "push to a repository of the host", a::push;
    reach_admin_socket, Mounts, "connect to a socket in herma's home",
        |plan| a::reach_socket(&plan.admin_socket);
    reach_host_socket, Mounts, "connect to a socket in the host's /tmp",
        |plan| a::reach_socket(&plan.host_socket);
    reach_container_socket, Mounts, "connect to a container engine's socket", |_| a::container_sockets();
    reach_abstract_socket, NetworkNamespace, "connect to an abstract socket of the host",
        |plan| a::abstract_socket(&plan.abstract_socket);
    connect_host_loopback, NetworkNamespace, "connect to a port of the host's loopback",
        |plan| a::connect_loopback(plan.port);
    send_datagram, NetworkNamespace, "send a datagram to a port of the host's loopback",
        |plan| a::datagram(plan.udp_port);
    connect_outward, NetworkNamespace, "connect to 192.0.2.1:80",
        |_| a::connect_out(Ipv4Addr::new(192, 0, 2, 1), 80);
    connect_ipv6, NetworkNamespace, "connect to [2001:db8::1]:80",
        |_| a::connect_out(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 80);
    connect_metadata, NetworkNamespace, "connect to the metadata address 169.254.169.254:80",
        |_| a::connect_out(Ipv4Addr::new(169, 254, 169, 254), 80);
    resolve_names, NetworkNamespace, "find a name server and send to one", |_| a::resolve();
    see_host_process, PidNamespace, "see herma's own process", |plan| a::see(&plan.herma);
    signal_host_process, PidNamespace, "send herma a signal", |plan| a::signal(&plan.herma);
    trace_host_process, PidNamespace, "trace herma", |plan| a::trace(&plan.herma);
    share_user_namespace, UserNamespace, "be in the host's user namespace, or in a container be privileged there",
        a::host_user;
    share_ipc_namespace, IpcNamespace, "be in the host's ipc namespace", |plan| a::namespace("ipc", &plan.namespaces);
    share_uts_namespace, UtsNamespace, "be in the host's uts namespace", |plan| a::namespace("uts", &plan.namespaces);
    share_cgroup_namespace, CgroupNamespace, "be in the host's cgroup namespace", |plan| a::namespace("cgroup", &plan.namespaces);
    become_root, UserNamespace, "become root", |_| a::other_user();
    capabilities, Capabilities, "hold a capability", |_| a::capabilities();
    new_privileges, NoNewPrivileges, "gain privileges by starting a program", |_| a::new_privileges();
    filter, Seccomp, "run without a filter of system calls", |_| a::filter();
    mount, Seccomp, "open a file system for mounting", |_| a::mount();
    trace_sibling, Seccomp, "trace another process inside", |_| a::trace_sibling();
    io_uring, Seccomp, "make an io_uring", |_| a::io_uring();
    file_lease, Seccomp, "take a lease on a file", |plan| a::file_lease(&plan.run_id);
    aio_context, Seccomp, "make a context of asynchronous I/O", |plan| a::aio_context(&plan.run_id);
    socket_filter, Seccomp, "attach a BPF filter to a socket", |plan| a::socket_filter(&plan.run_id);
    keyring, Seccomp, "get a keyring", |_| a::keyring();
    raw_packets, Seccomp, "open a raw socket", |_| a::raw_packets();
    packets, Seccomp, "open a packet socket", |_| a::packets();
    kernel_messages, Seccomp, "listen to the kernel's messages", |_| a::kernel_messages();
    hypervisor, Seccomp, "open a socket to the hypervisor", |_| a::hypervisor();
    inherited_files, Files, "find an open file of the caller", |_| a::open_files();
    inherited_variables, Environment, "find a variable of the caller", |plan| a::environment(&plan.variables);
    share_session, Session, "be in the caller's session", |_| a::session();
    outlive_herma, Parent, "go on when who started it dies", |_| a::outlive();
    limits, Limits, "find a limit that is not set", a::read_back;
    // The last of its sandbox: if it succeeds, the process has another user.
    make_user_namespace, Seccomp, "make a user namespace", |_| a::user_namespace();
};

/// One row of the table, for readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeRow {
    /// The probe's name.
    pub name: &'static str,
    /// The attempt.
    pub what: &'static str,
    /// The layer under test.
    pub layer: IsolationLayer,
}

/// All probes, in their fixed order.
pub fn rows() -> impl Iterator<Item = ProbeRow> {
    PROBES.iter().map(|ProbeSpec { name, what, layer, .. }| ProbeRow { name, what, layer: *layer })
}

impl ProbeSpec {
    pub(super) fn result(&self, denied: bool, observed: String) -> ProbeResult {
        let Self { name, what, layer, .. } = self;
        ProbeResult { name: (*name).to_owned(), what: (*what).to_owned(), wall: *layer, denied, observed }
    }
}
