//! The file system, the user and the variables inside the sandbox, as bubblewrap's words.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use herma_core::RunId;
use herma_core::units::Bytes;

use super::quota;
use crate::environment;
use crate::job::{BadJob, Job, JobPaths, Mount, View};
use crate::limits::{Held, HeldBy, LimitName, Limits};
use crate::standing::Standing;
use crate::wall::Wall;

/// A file that is there in every sandbox and nowhere else; it holds the run's name.
pub const INSIDE_MARKER: &str = "/herma/inside";

/// Where herma's own binary appears inside.
pub(crate) const HERMA: &str = "/herma/herma";
/// Where the router's socket appears inside, for jobs that may ask a model.
pub(crate) const ROUTER: &str = "/herma/router.sock";
/// Where the egress proxy's socket appears inside, for jobs that have a way out.
pub(crate) const EGRESS: &str = "/herma/egress.sock";
/// Where the socket appears inside at which tool calls are judged.
pub(crate) const GOVERNANCE: &str = "/herma/governance.sock";
/// Where the workspace appears inside.
pub(crate) const WORKSPACE: &str = "/workspace";
/// Where the engine's own directory appears inside.
pub(crate) const ENGINE: &str = "/engine";

pub(crate) const HOME: &str = "/home/agent";
pub(crate) const TMP: &str = "/tmp";

/// A file that the mounts would let be written, and the second wall does not: by it the wall is seen to stand. In a
/// container it is a directory.
pub(crate) const SECOND_WALL: &str = "/herma/second-wall";

/// Directories that the second wall lets be written, besides the rooms.
const OWN_PLACES: [&str; 3] = [HOME, TMP, SHARED_MEMORY];
/// Devices that it lets be written.
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

/// Namespaces, user and session: each wall and its words.
const WALLS: &[(Wall, &[&str])] = &[
    // No further user namespace inside: each one would hand out capabilities over its own mounts and networks.
    (Wall::UserNamespace, &["--disable-userns"]),
    (Wall::PidNamespace, &["--unshare-pid"]),
    (Wall::NetworkNamespace, &["--unshare-net"]),
    (Wall::IpcNamespace, &["--unshare-ipc"]),
    (Wall::UtsNamespace, &["--unshare-uts", "--hostname", "herma"]),
    (Wall::CgroupNamespace, &["--unshare-cgroup"]),
    (Wall::Parent, &["--die-with-parent"]),
    (Wall::Session, &["--new-session"]),
    (Wall::Environment, &["--clearenv"]),
    (Wall::Capabilities, &["--cap-drop", "ALL"]),
];

/// The user, and that bubblewrap itself tries whether a further user namespace can be made: under the filter of system
/// calls nothing inside could tell.
const USER: [&str; 6] = ["--unshare-user", "--assert-userns-disabled", "--uid", "1000", "--gid", "1000"];

/// Top-level names that are links into /usr on most systems and directories of their own on others.
const SYSTEM: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// What programs need from /etc to start at all. Each mount costs every start some time.
const ETC: [&str; 2] = ["/etc/ld.so.cache", "/etc/alternatives"];

/// Whom programs trust that speak TLS, for jobs that have a way out: on Debian and its kin, and on Fedora and its kin. What
/// lies beside them may be private keys.
const CERTIFICATES: [&str; 3] = ["/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted"];

/// What the kernel lists of the whole machine: the first, which keys the user has; the others, which only root may read,
/// where memory lies and who waits for what. The user inside is the one that herma runs as.
pub(crate) const KERNEL_LISTS: [&str; 8] = [
    "/proc/keys",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/pagetypeinfo",
    "/proc/slabinfo",
    "/proc/timer_list",
    "/proc/vmallocinfo",
];

/// Places that no mount may cover or lie in.
const TAKEN: [&str; 6] = [WORKSPACE, ENGINE, "/herma", "/proc", "/dev", "/etc"];

/// The words that are the same for every job: walls, system, and the private places. `quotas` are settings of the user
/// namespace, each with the number of the open file that holds its value.
pub(super) fn walls(
    standing: Standing<Wall>,
    limits: &Limits,
    quotas: Vec<(&str, OsString)>,
) -> Vec<OsString> {
    let mut words = Words(USER.iter().map(OsString::from).collect());
    for (_, of_wall) in WALLS.iter().filter(|(wall, _)| standing.has(*wall)) {
        words.0.extend(of_wall.iter().map(OsString::from));
    }
    if !standing.has(Wall::Capabilities) {
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
        // bubblewrap writes them while it has capabilities over the namespace. The mount is below the next one, for good.
        words.three("--bind", quota::SETTINGS, "/proc");
        for (setting, value) in quotas {
            words.three("--file", value, format!("/proc/{setting}"));
        }
    }
    words.two("--proc", "/proc");
    if standing.has(Wall::Mounts) {
        // What herma cannot read, the inside cannot either; each mount costs every start some time. On a mount without
        // devices /dev/null cannot be opened.
        for name in KERNEL_LISTS.into_iter().filter(|name| fs::File::open(name).is_ok()) {
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

/// What lies over a directory that is hidden holds nothing. A size of zero would mean without limit.
pub(crate) const NOTHING: Bytes = Bytes(4096);

/// Where something at the top of the workspace is seen inside.
pub(crate) fn inside_workspace(name: &str) -> String {
    format!("{WORKSPACE}/{name}")
}

/// Where the second wall lets be written.
pub(crate) fn writable(paths: &JobPaths) -> Vec<PathBuf> {
    let engine = paths.engine_dir.as_ref().map(|_| ENGINE);
    [WORKSPACE].into_iter().chain(engine).chain(OWN_PLACES).chain(DEVICES).map(PathBuf::from).collect()
}

/// What the sizes of the private places hold.
pub(crate) fn held(limits: &Limits) -> [Held; 3] {
    let sized = |name, Bytes(size)| Held::new(name, size, HeldBy::Tmpfs);
    [
        sized(LimitName::Tmp, limits.tmp),
        sized(LimitName::Home, limits.home),
        sized(LimitName::SharedMemory, limits.shared_memory),
    ]
}

/// Where the place lies whose size a limit is.
pub(crate) fn sized_place(name: LimitName) -> Option<&'static str> {
    match name {
        LimitName::Tmp => Some(TMP),
        LimitName::Home => Some(HOME),
        LimitName::SharedMemory => Some(SHARED_MEMORY),
        _ => None,
    }
}

/// Small files that herma writes itself: a user for git and python, a name for loopback, the marker.
pub(super) fn texts(run_id: RunId) -> [(&'static str, String); 4] {
    [
        ("/etc/passwd", format!("agent:x:1000:1000:agent:{HOME}:/bin/sh\n")),
        ("/etc/group", "agent:x:1000:\n".to_owned()),
        ("/etc/hosts", "127.0.0.1 localhost herma\n::1 localhost\n".to_owned()),
        (INSIDE_MARKER, format!("{run_id}\n")),
    ]
}

/// The words of one job: its mounts, its rooms, its variables.
pub(super) fn job_args(job: &Job, view: &View, herma: &Path) -> Vec<OsString> {
    let mut words = Words(Vec::new());
    for Mount { host, inside } in &job.mounts {
        words.three("--ro-bind", host, inside);
    }
    words.three("--ro-bind", herma, HERMA);
    // A socket can be called through a mount that cannot be written. To the egress proxy leads its port alone.
    if let Some(socket) = &job.paths.router {
        words.three("--ro-bind", socket, ROUTER);
    }
    if let Some(socket) = &job.paths.governance {
        words.three("--ro-bind", socket, GOVERNANCE);
    }
    for name in CERTIFICATES.iter().filter(|_| job.paths.egress.is_some()) {
        words.three("--ro-bind-try", name, name);
    }
    words.three("--bind", &job.paths.workspace, WORKSPACE);
    for name in &job.hidden {
        let place = inside_workspace(name);
        words.sized(&place, NOTHING);
        words.two("--remount-ro", &place);
    }
    if let Some(dir) = &job.paths.engine_dir {
        words.three("--bind", dir, ENGINE);
    }
    // Last, because until here bubblewrap itself makes directories in them. In /proc the kernel takes orders: the user
    // inside is the one that herma runs as, and root may write there.
    for place in ["/proc", "/dev", "/"] {
        words.two("--remount-ro", place);
    }
    words.two("--chdir", WORKSPACE);
    for (name, value) in environment::ways_out(view) {
        words.three("--setenv", name, value);
    }
    for (name, value) in environment::variables(job, Path::new(HOME), Path::new(TMP)) {
        words.three("--setenv", name, value);
    }
    words.0
}

/// Refuses mounts that would cover what herma lays out, or be covered by it.
pub(crate) fn check_mounts(mounts: &[Mount]) -> Result<(), BadJob> {
    for Mount { inside, .. } in mounts {
        let clash =
            TAKEN.into_iter().find(|taken| inside.starts_with(taken) || Path::new(taken).starts_with(inside));
        if let Some(taken) = clash {
            return Err(BadJob::Taken { inside: inside.clone(), taken });
        }
    }
    Ok(())
}

struct Words(Vec<OsString>);

impl Words {
    /// A file system in memory of at most this size.
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
        for inside in
            ["/", "/workspace", "/workspace/sub", "/herma", "/herma/inside", "/proc/1", "/dev", "/etc/passwd"]
        {
            assert!(at(inside).is_err(), "{inside}");
        }
        for inside in
            ["/opt/python", "/home/bob/.rustup/toolchains/stable", "/workspaces", "/home/alice/.pyenv"]
        {
            assert_eq!(at(inside), Ok(()), "{inside}");
        }
    }
}
