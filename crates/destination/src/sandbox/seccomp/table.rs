//! The table of denied system calls, each with its reason. Read it as data.
//!
//! Calls that are not listed are allowed: a list of everything that every toolchain needs would never be complete.
//! The listed calls lead to large and rarely used parts of the kernel, to other processes, out of the namespaces,
//! or exhaust what all users of the machine share.

use Is::{Equal, Has, Not};

/// One denied system call.
pub(super) struct SyscallRow {
    #[cfg_attr(not(test), expect(dead_code, reason = "people read it"))]
    pub(super) name: &'static str,
    pub(super) number: i64,
    /// It is denied if all checks of one of these lists hold; always, if there is no list.
    pub(super) when: &'static [&'static [ArgCheck]],
    pub(super) answer: RefusalErrno,
    /// The reason. For readers, and for a test that requires one.
    #[cfg_attr(not(test), expect(dead_code, reason = "people read it"))]
    pub(super) why: &'static str,
}

/// The errno that the caller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalErrno {
    /// EPERM: not permitted.
    NotPermitted,
    /// ENOSYS: no such call. Callers then fall back to the older call, whose arguments the filter can see.
    NotThere,
}

/// A comparison of one argument.
pub(super) struct ArgCheck {
    pub(super) argument: u8,
    pub(super) is: Is,
}

/// All arguments compared here are 32 bits wide in the kernel, or only their lower 32 bits matter.
pub(super) enum Is {
    Equal(u32),
    Not(u32),
    /// The masked argument equals this value.
    Has(u32, u32),
}

const ALWAYS: &[&[ArgCheck]] = &[];

const fn at(argument: u8, is: Is) -> ArgCheck {
    ArgCheck { argument, is }
}

/// The namespace flags of clone.
const NAMESPACES: &[&[ArgCheck]] = &[
    &[at(0, Has(0x0002_0000, 0x0002_0000))], // CLONE_NEWNS
    &[at(0, Has(0x0200_0000, 0x0200_0000))], // CLONE_NEWCGROUP
    &[at(0, Has(0x0400_0000, 0x0400_0000))], // CLONE_NEWUTS
    &[at(0, Has(0x0800_0000, 0x0800_0000))], // CLONE_NEWIPC
    &[at(0, Has(0x1000_0000, 0x1000_0000))], // CLONE_NEWUSER
    &[at(0, Has(0x2000_0000, 0x2000_0000))], // CLONE_NEWPID
    &[at(0, Has(0x4000_0000, 0x4000_0000))], // CLONE_NEWNET
];

const UNIX: u32 = 1;
const INET: u32 = 2;
const INET6: u32 = 10;
const NETLINK: u32 = 16;
const TYPE: u32 = 0xf;
const RAW: u32 = 3;

const SOCKETS: &[&[ArgCheck]] = &[
    // Any family but these four.
    &[at(0, Not(UNIX)), at(0, Not(INET)), at(0, Not(INET6)), at(0, Not(NETLINK))],
    // Of netlink only NETLINK_ROUTE, which node and getaddrinfo use to list interfaces.
    &[at(0, Equal(NETLINK)), at(2, Not(0))],
    // No raw sockets.
    &[at(0, Equal(INET)), at(1, Has(TYPE, RAW))],
    &[at(0, Equal(INET6)), at(1, Has(TYPE, RAW))],
];

/// Any but: plain, 32-bit, old kernel's name, both, the query, and without address randomisation (debuggers).
const PERSONALITIES: &[&[ArgCheck]] = &[&[
    at(0, Not(0)),
    at(0, Not(0x0000_0008)),
    at(0, Not(0x0002_0000)),
    at(0, Not(0x0002_0008)),
    at(0, Not(0x0004_0000)),
    at(0, Not(0xffff_ffff)),
]];

/// Both inject input into a terminal.
const TERMINAL: &[&[ArgCheck]] = &[
    &[at(1, Equal(0x5412))], // TIOCSTI
    &[at(1, Equal(0x541c))], // TIOCLINUX
];

/// The fcntl commands for leases and directory notification.
const LEASES: &[&[ArgCheck]] = &[
    &[at(1, Equal(1024))], // F_SETLEASE
    &[at(1, Equal(1026))], // F_NOTIFY
    &[at(1, Equal(1040))], // F_SETDELEG, since Linux 6.19
];

/// Socket options (level `SOL_SOCKET`) that load a BPF program. The kernel compiles it into memory that all users without
/// `CAP_BPF` share (`net.core.bpf_jit_limit`) and that no cgroup counts.
const SOCKET_FILTERS: &[&[ArgCheck]] = &[
    &[at(1, Equal(SOL_SOCKET)), at(2, Equal(26))], // SO_ATTACH_FILTER
    &[at(1, Equal(SOL_SOCKET)), at(2, Equal(50))], // SO_ATTACH_BPF
    &[at(1, Equal(SOL_SOCKET)), at(2, Equal(51))], // SO_ATTACH_REUSEPORT_CBPF
    &[at(1, Equal(SOL_SOCKET)), at(2, Equal(52))], // SO_ATTACH_REUSEPORT_EBPF
];
const SOL_SOCKET: u32 = 1;

/// Flags that allocate huge pages, which the memory cgroup does not count.
const MAP_HUGETLB: &[&[ArgCheck]] = &[&[at(3, Has(0x0004_0000, 0x0004_0000))]];
const MFD_HUGETLB: &[&[ArgCheck]] = &[&[at(1, Has(0x4, 0x4))]];
const SHM_HUGETLB: &[&[ArgCheck]] = &[&[at(2, Has(0x800, 0x800))]];

macro_rules! row {
    ($name:ident, $number:expr, $why:literal) => {
        row!($name, $number, ALWAYS, RefusalErrno::NotPermitted, $why)
    };
    ($name:ident, $number:expr, $when:expr, $answer:expr, $why:literal) => {
        SyscallRow { name: stringify!($name), number: $number, when: $when, answer: $answer, why: $why }
    };
}

const MOUNT: &str = "the file system is as herma laid it out";

macro_rules! mount {
    ($name:ident, $number:expr) => {
        SyscallRow {
            name: stringify!($name),
            number: $number,
            when: ALWAYS,
            answer: RefusalErrno::NotPermitted,
            why: MOUNT,
        }
    };
}

/// Every denied call.
pub(super) const TABLE: &[SyscallRow] = &[
    mount!(mount, libc::SYS_mount),
    mount!(umount2, libc::SYS_umount2),
    mount!(pivot_root, libc::SYS_pivot_root),
    mount!(chroot, libc::SYS_chroot),
    mount!(open_tree, libc::SYS_open_tree),
    mount!(open_tree_attr, 467), // newer than the names that libc has; the same number everywhere
    mount!(move_mount, libc::SYS_move_mount),
    mount!(fsopen, libc::SYS_fsopen),
    mount!(fsconfig, libc::SYS_fsconfig),
    mount!(fsmount, libc::SYS_fsmount),
    mount!(fspick, libc::SYS_fspick),
    mount!(mount_setattr, libc::SYS_mount_setattr),
    row!(unshare, libc::SYS_unshare, "a new namespace brings capabilities over itself"),
    row!(setns, libc::SYS_setns, "the way into another namespace"),
    row!(
        clone,
        libc::SYS_clone,
        NAMESPACES,
        RefusalErrno::NotPermitted,
        "a new namespace brings capabilities over itself"
    ),
    row!(
        clone3,
        libc::SYS_clone3,
        ALWAYS,
        RefusalErrno::NotThere,
        "its flags lie in memory, where no filter sees them; libc falls back to clone"
    ),
    row!(ptrace, libc::SYS_ptrace, "rules another process"),
    row!(process_vm_readv, libc::SYS_process_vm_readv, "reads another process's memory"),
    row!(process_vm_writev, libc::SYS_process_vm_writev, "writes another process's memory"),
    row!(process_madvise, libc::SYS_process_madvise, "changes another process's memory"),
    row!(pidfd_getfd, libc::SYS_pidfd_getfd, "takes an open file of another process"),
    row!(kcmp, libc::SYS_kcmp, "tells addresses of the kernel apart"),
    row!(kexec_load, libc::SYS_kexec_load, "starts another kernel"),
    row!(kexec_file_load, libc::SYS_kexec_file_load, "starts another kernel"),
    row!(init_module, libc::SYS_init_module, "brings code into the kernel"),
    row!(finit_module, libc::SYS_finit_module, "brings code into the kernel"),
    row!(delete_module, libc::SYS_delete_module, "takes code out of the kernel"),
    row!(bpf, libc::SYS_bpf, "runs programs in the kernel"),
    row!(perf_event_open, libc::SYS_perf_event_open, "watches the machine; a long history of holes"),
    row!(
        userfaultfd,
        libc::SYS_userfaultfd,
        "stops the kernel where it touches memory: makes races easy to win"
    ),
    row!(io_uring_setup, libc::SYS_io_uring_setup, "does other calls' work where no filter sees them"),
    row!(io_uring_enter, libc::SYS_io_uring_enter, "as io_uring_setup"),
    row!(io_uring_register, libc::SYS_io_uring_register, "as io_uring_setup"),
    row!(keyctl, libc::SYS_keyctl, "keyrings belong to the user, not to a namespace"),
    row!(add_key, libc::SYS_add_key, "as keyctl"),
    row!(request_key, libc::SYS_request_key, "as keyctl; it can also start a program outside"),
    row!(
        fcntl,
        libc::SYS_fcntl,
        LEASES,
        RefusalErrno::NotPermitted,
        "a lease on a file that is mounted from the host makes every process that opens it wait, 45 seconds each time"
    ),
    row!(
        io_setup,
        libc::SYS_io_setup,
        ALWAYS,
        RefusalErrno::NotThere,
        "all users of the machine share fs.aio-max-nr; libaio's callers do without, as on a kernel built without it"
    ),
    row!(
        cachestat,
        451, // the same number everywhere
        ALWAYS,
        RefusalErrno::NotThere,
        "tells which files of the host are in use; older kernels do not have it"
    ),
    row!(
        mmap,
        libc::SYS_mmap,
        MAP_HUGETLB,
        RefusalErrno::NotPermitted,
        "the machine's pool of huge pages; callers fall back to ordinary pages"
    ),
    row!(
        memfd_create,
        libc::SYS_memfd_create,
        MFD_HUGETLB,
        RefusalErrno::NotPermitted,
        "as mmap with huge pages"
    ),
    row!(shmget, libc::SYS_shmget, SHM_HUGETLB, RefusalErrno::NotPermitted, "as mmap with huge pages"),
    row!(
        personality,
        libc::SYS_personality,
        PERSONALITIES,
        RefusalErrno::NotPermitted,
        "old behaviours switch off protections of memory"
    ),
    row!(open_by_handle_at, libc::SYS_open_by_handle_at, "opens a file by its number, past every directory"),
    row!(memfd_secret, libc::SYS_memfd_secret, "memory that no other process can read"),
    row!(fanotify_init, libc::SYS_fanotify_init, "watches whole file systems"),
    row!(quotactl, libc::SYS_quotactl, "the machine's quotas"),
    row!(quotactl_fd, libc::SYS_quotactl_fd, "the machine's quotas"),
    row!(swapon, libc::SYS_swapon, "the machine's swap"),
    row!(swapoff, libc::SYS_swapoff, "the machine's swap"),
    row!(reboot, libc::SYS_reboot, "ends the machine, or the namespace"),
    row!(acct, libc::SYS_acct, "the machine's accounting, written to a file of the caller's choice"),
    row!(syslog, libc::SYS_syslog, "the kernel's log shows addresses, and what others do"),
    row!(vhangup, libc::SYS_vhangup, "hangs up a terminal"),
    row!(nfsservctl, libc::SYS_nfsservctl, "the machine's file server"),
    row!(lookup_dcookie, libc::SYS_lookup_dcookie, "for profilers of the whole machine"),
    row!(settimeofday, libc::SYS_settimeofday, "the machine's clock"),
    row!(clock_settime, libc::SYS_clock_settime, "the machine's clock"),
    row!(adjtimex, libc::SYS_adjtimex, "the machine's clock"),
    row!(clock_adjtime, libc::SYS_clock_adjtime, "the machine's clock"),
    row!(sethostname, libc::SYS_sethostname, "the name is as herma set it"),
    row!(setdomainname, libc::SYS_setdomainname, "the name is as herma set it"),
    row!(migrate_pages, libc::SYS_migrate_pages, "moves another process's memory"),
    row!(move_pages, libc::SYS_move_pages, "moves another process's memory"),
    row!(
        socket,
        libc::SYS_socket,
        SOCKETS,
        RefusalErrno::NotPermitted,
        "the rarely used families are where the holes are; raw packets could pretend to be anybody"
    ),
    row!(
        socketpair,
        libc::SYS_socketpair,
        &[&[at(0, Not(UNIX))]],
        RefusalErrno::NotPermitted,
        "only Unix sockets come in pairs that anybody needs"
    ),
    row!(
        setsockopt,
        libc::SYS_setsockopt,
        SOCKET_FILTERS,
        RefusalErrno::NotPermitted,
        "socket filters use up net.core.bpf_jit_limit, and then no process of the machine can load a seccomp filter"
    ),
    row!(ioctl, libc::SYS_ioctl, TERMINAL, RefusalErrno::NotPermitted, "types into a terminal for its user"),
    #[cfg(target_arch = "x86_64")]
    row!(iopl, libc::SYS_iopl, "the machine's ports"),
    #[cfg(target_arch = "x86_64")]
    row!(ioperm, libc::SYS_ioperm, "the machine's ports"),
    #[cfg(target_arch = "x86_64")]
    row!(modify_ldt, libc::SYS_modify_ldt, "16-bit segments; a long history of holes"),
    #[cfg(target_arch = "x86_64")]
    row!(_sysctl, libc::SYS__sysctl, "of old kernels; sets them up"),
    #[cfg(target_arch = "x86_64")]
    row!(uselib, libc::SYS_uselib, "of old C libraries"),
    #[cfg(target_arch = "x86_64")]
    row!(ustat, libc::SYS_ustat, "of old C libraries; asks about any device"),
    #[cfg(target_arch = "x86_64")]
    row!(sysfs, libc::SYS_sysfs, "of old kernels; lists their file systems"),
];
