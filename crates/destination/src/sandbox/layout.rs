//! The file system, user and environment inside the sandbox, as bubblewrap arguments.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use herma_core::RunId;
use herma_core::units::Bytes;

use super::quota;
use crate::enabled_layers::EnabledLayers;
use crate::environment;
use crate::isolation_layer::IsolationLayer;
use crate::job::{BadJob, Job, JobPaths, Mount, View};
use crate::limits::{Held, HeldBy, LimitName, Limits};

/// A file that exists in every sandbox and nowhere else; it holds the run's id.
pub const INSIDE_MARKER: &str = "/herma/inside";

/// herma's own binary inside.
pub(crate) const HERMA: &str = "/herma/herma";
/// The router's socket inside, for jobs that may call a model.
pub(crate) const ROUTER: &str = "/herma/router.sock";
/// The egress proxy's socket inside, for jobs with egress.
pub(crate) const EGRESS: &str = "/herma/egress.sock";
/// The socket of the tool-call policy service inside.
pub(crate) const GOVERNANCE: &str = "/herma/governance.sock";
/// The workspace inside.
pub(crate) const WORKSPACE: &str = "/workspace";
/// The engine's own directory inside.
pub(crate) const ENGINE: &str = "/engine";

pub(crate) const HOME: &str = "/home/agent";
pub(crate) const TMP: &str = "/tmp";

/// A file that the mounts leave writable and Landlock protects, so that a probe can test Landlock alone. In a
/// container it is a directory.
pub(crate) const LANDLOCK_CANARY_PATH: &str = "/herma/landlock-canary";

/// Directories that Landlock leaves writable, besides those of the job.
const PRIVATE_DIRS: [&str; 3] = [HOME, TMP, SHARED_MEMORY];
/// Devices that Landlock leaves writable.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];
const SHARED_MEMORY: &str = "/dev/shm";

/// Namespaces, user and session: each layer and its arguments.
const LAYERS: &[(IsolationLayer, &[&str])] = &[
    // No nested user namespace: each one would grant capabilities over its own mounts and networks.
    (IsolationLayer::UserNamespace, &["--disable-userns"]),
    (IsolationLayer::PidNamespace, &["--unshare-pid"]),
    (IsolationLayer::NetworkNamespace, &["--unshare-net"]),
    (IsolationLayer::IpcNamespace, &["--unshare-ipc"]),
    (IsolationLayer::UtsNamespace, &["--unshare-uts", "--hostname", "herma"]),
    (IsolationLayer::CgroupNamespace, &["--unshare-cgroup"]),
    (IsolationLayer::Parent, &["--die-with-parent"]),
    (IsolationLayer::Session, &["--new-session"]),
    (IsolationLayer::Environment, &["--clearenv"]),
    (IsolationLayer::Capabilities, &["--cap-drop", "ALL"]),
];

/// The user. bubblewrap itself checks that a nested user namespace fails: behind the seccomp filter no probe could
/// tell.
const USER: [&str; 6] = ["--unshare-user", "--assert-userns-disabled", "--uid", "1000", "--gid", "1000"];

/// Top-level names that are symlinks into /usr on most systems and directories on others.
const SYSTEM: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// The files of /etc that programs need to start. Each mount slows every start.
const ETC: [&str; 2] = ["/etc/ld.so.cache", "/etc/alternatives"];

/// The CA certificates for jobs with egress, on Debian and Fedora derivatives. Their parent directories may hold
/// private keys.
const CERTIFICATES: [&str; 3] = ["/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted"];

/// Files with information about the whole machine: keys of the user, file locks, and, readable by root only, memory
/// layout and timers. The user inside is herma's own.
pub(crate) const KERNEL_INFO_FILES: [&str; 10] = [
    "/proc/keys",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    // Locks of open file descriptions have no pid, so that the pid namespace hides none of the host's.
    "/proc/locks",
    "/proc/pagetypeinfo",
    "/proc/slabinfo",
    // Not a list: each read makes every processor of the machine fold its counters.
    "/proc/sys/vm/stat_refresh",
    "/proc/timer_list",
    "/proc/vmallocinfo",
];

/// Paths that no mount may cover or be inside of, but for [`is_tool_configuration`].
const RESERVED_PATHS: [&str; 6] = [WORKSPACE, ENGINE, "/herma", "/proc", "/dev", "/etc"];

/// Files below /etc that a tool reads and that decide nothing else: those of Debian's Java and Maven.
fn is_tool_configuration(inside: &Path) -> bool {
    let Some(name) = inside.to_str().and_then(|path| path.strip_prefix("/etc/")) else { return false };
    let java = name.strip_prefix("java-").and_then(|rest| rest.strip_suffix("-openjdk"));
    java.is_some_and(|major| !major.is_empty() && major.bytes().all(|byte| byte.is_ascii_digit()))
        || matches!(name, "maven/m2.conf" | "maven/logging")
}

/// The arguments that are the same for every job: isolation layers, system directories, private directories.
/// `quotas` are sysctls of the user namespace, each with the descriptor that holds its value.
pub(super) fn isolation_args(
    enabled: EnabledLayers<IsolationLayer>,
    limits: &Limits,
    quotas: Vec<(&str, OsString)>,
) -> Vec<OsString> {
    let mut words = BwrapArgs(USER.iter().map(OsString::from).collect());
    for (_, args) in LAYERS.iter().filter(|(layer, _)| enabled.has(*layer)) {
        words.0.extend(args.iter().map(OsString::from));
    }
    if !enabled.has(IsolationLayer::Capabilities) {
        words.two("--cap-add", "ALL");
    }
    words.three("--ro-bind", "/usr", "/usr");
    for name in SYSTEM {
        match fs::read_link(name) {
            Ok(target) => words.three("--symlink", target, name),
            Err(_) if Path::new(name).is_dir() => words.three("--ro-bind", name, name),
            Err(_) => {}
        }
    }
    for name in ETC {
        words.three("--ro-bind-try", name, name);
    }
    words.two("--dev", "/dev");
    words.sized(SHARED_MEMORY, limits.shared_memory);
    if !quotas.is_empty() {
        // bubblewrap writes them while it has capabilities over the namespace. The next mount covers this one for
        // good.
        words.three("--bind", quota::SETTINGS, "/proc");
        for (setting, value) in quotas {
            words.three("--file", value, format!("/proc/{setting}"));
        }
    }
    words.two("--proc", "/proc");
    if enabled.has(IsolationLayer::Mounts) {
        // Files that herma cannot read, the inside cannot read either; each mount slows every start. /dev/null
        // cannot be opened on a nodev mount.
        for name in KERNEL_INFO_FILES.into_iter().filter(|name| fs::File::open(name).is_ok()) {
            words.three("--ro-bind", "/dev/null", name);
        }
        words.sized(TMP, limits.tmp);
    } else {
        for name in ["/tmp", "/root"] {
            words.three("--ro-bind-try", name, name);
        }
    }
    words.sized(HOME, limits.home);
    words.0
}

/// The size of the tmpfs over a hidden directory; zero would mean unlimited.
pub(crate) const EMPTY_TMPFS_BYTES: Bytes = Bytes(4096);

/// The path inside of a name at the top of the workspace.
pub(crate) fn inside_workspace(name: &str) -> String {
    format!("{WORKSPACE}/{name}")
}

/// The paths that Landlock leaves writable.
pub(crate) fn writable(paths: &JobPaths) -> Vec<PathBuf> {
    let engine = paths.engine_dir.as_ref().map(|_| ENGINE);
    [WORKSPACE].into_iter().chain(engine).chain(PRIVATE_DIRS).chain(DEVICES).map(PathBuf::from).collect()
}

/// The limits enforced by the tmpfs sizes.
pub(crate) fn held(limits: &Limits) -> [Held; 3] {
    let sized = |name, Bytes(size)| Held::new(name, size, HeldBy::Tmpfs);
    [
        sized(LimitName::Tmp, limits.tmp),
        sized(LimitName::Home, limits.home),
        sized(LimitName::SharedMemory, limits.shared_memory),
    ]
}

/// The mount point whose size a limit is.
pub(crate) fn sized_place(name: LimitName) -> Option<&'static str> {
    match name {
        LimitName::Tmp => Some(TMP),
        LimitName::Home => Some(HOME),
        LimitName::SharedMemory => Some(SHARED_MEMORY),
        _ => None,
    }
}

/// Small generated files: a user for git and Python, a name for the loopback, the marker.
pub(super) fn texts(run_id: RunId) -> [(&'static str, String); 4] {
    [
        ("/etc/passwd", format!("agent:x:1000:1000:agent:{HOME}:/bin/sh\n")),
        ("/etc/group", "agent:x:1000:\n".to_owned()),
        ("/etc/hosts", "127.0.0.1 localhost herma\n::1 localhost\n".to_owned()),
        (INSIDE_MARKER, format!("{run_id}\n")),
    ]
}

/// The arguments of one job: its mounts, paths and variables.
pub(super) fn job_args(job: &Job, view: &View, herma: &Path) -> Vec<OsString> {
    let mut words = BwrapArgs(Vec::new());
    for Mount { host, inside } in &job.mounts {
        words.three("--ro-bind", host, inside);
    }
    words.three("--ro-bind", herma, HERMA);
    // A socket can be connected to through a read-only mount. The egress proxy is reached through its port only.
    if let Some(socket) = &job.paths.router {
        words.three("--ro-bind", socket, ROUTER);
    }
    if let Some(socket) = &job.paths.governance {
        words.three("--ro-bind", socket, GOVERNANCE);
    }
    for name in CERTIFICATES.iter().filter(|_| job.paths.egress.is_some()) {
        words.three("--ro-bind-try", name, name);
    }
    if let Some(home) = &job.paths.home {
        words.three("--bind", home, HOME);
    }
    words.three("--bind", &job.paths.workspace, WORKSPACE);
    for name in &job.hidden {
        let place = inside_workspace(name);
        words.sized(&place, EMPTY_TMPFS_BYTES);
        words.two("--remount-ro", &place);
    }
    if let Some(dir) = &job.paths.engine_dir {
        words.three("--bind", dir, ENGINE);
    }
    // Last, because until here bubblewrap creates directories in them. The user inside is herma's own, and root
    // could write kernel settings in /proc.
    for place in ["/proc", "/dev", "/"] {
        words.two("--remount-ro", place);
    }
    words.two("--chdir", WORKSPACE);
    for (name, value) in environment::relay_variables(view) {
        words.three("--setenv", name, value);
    }
    for (name, value) in environment::variables(job, Path::new(HOME), Path::new(TMP)) {
        words.three("--setenv", name, value);
    }
    words.0
}

/// Rejects mounts that would cover herma's own layout, or be covered by it.
pub(crate) fn check_mounts(mounts: &[Mount]) -> Result<(), BadJob> {
    for Mount { inside, .. } in mounts.iter().filter(|mount| !is_tool_configuration(&mount.inside)) {
        let clash = RESERVED_PATHS
            .into_iter()
            .find(|taken| inside.starts_with(taken) || Path::new(taken).starts_with(inside));
        if let Some(taken) = clash {
            return Err(BadJob::Taken { inside: inside.clone(), taken });
        }
    }
    Ok(())
}

struct BwrapArgs(Vec<OsString>);

impl BwrapArgs {
    /// A tmpfs of at most this size.
    fn sized(&mut self, place: &str, Bytes(size): Bytes) {
        self.two("--size", &size.to_string());
        self.two("--tmpfs", place);
    }

    fn two(&mut self, flag: &str, place: &str) {
        self.0.extend([flag.into(), place.into()]);
    }

    fn three(&mut self, flag: &str, from: impl Into<OsString>, to: impl Into<OsString>) {
        self.0.extend([flag.into(), from.into(), to.into()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_covers_nothing_that_herma_lays_out() {
        let at = |inside: &str| check_mounts(&[Mount { host: "/x".into(), inside: inside.into() }]);
        for inside in [
            "/",
            "/workspace",
            "/workspace/sub",
            "/herma",
            "/herma/inside",
            "/proc/1",
            "/dev",
            "/etc",
            "/etc/passwd",
            "/etc/ld.so.preload",
            "/etc/nsswitch.conf",
            "/etc/resolv.conf",
            "/etc/maven/settings.xml",
            "/etc/java-17-openjdk/../passwd",
            "/etc/java-x-openjdk",
        ] {
            assert!(at(inside).is_err(), "{inside}");
        }
        for inside in
            ["/opt/python", "/home/bob/.rustup/toolchains/stable", "/workspaces", "/etc/java-17-openjdk"]
        {
            assert_eq!(at(inside), Ok(()), "{inside}");
        }
    }
}
