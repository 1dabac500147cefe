//! The file system, the user and the variables inside the sandbox, as bubblewrap's words.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use herma_model::RunId;

use crate::environment;
use crate::job::{BadJob, Job, Mount};

/// A file that is there in every sandbox and nowhere else; it holds the run's name.
pub const INSIDE_MARKER: &str = "/herma/inside";

/// Where herma's own binary appears inside, for jobs that ask for it.
pub(super) const HERMA: &str = "/herma/herma";
/// Where the router's socket appears inside, for jobs that may ask a model.
pub(super) const ROUTER: &str = "/herma/router.sock";
/// Where the workspace appears inside.
pub(super) const WORKSPACE: &str = "/workspace";
/// Where the engine's own directory appears inside.
pub(super) const ENGINE: &str = "/engine";

const HOME: &str = "/home/agent";
const TMP: &str = "/tmp";

/// Namespaces, user and session: the same for every job.
const WALLS: &[&str] = &[
    // Every namespace; the user namespace is named again because `--unshare-all` only tries it.
    "--unshare-all",
    "--unshare-user",
    // No further user namespace inside: each one would hand out capabilities over its own mounts and networks.
    "--disable-userns",
    "--die-with-parent",
    "--new-session",
    "--clearenv",
    "--cap-drop",
    "ALL",
    "--uid",
    "1000",
    "--gid",
    "1000",
    "--hostname",
    "herma",
];

/// Top-level names that are links into /usr on most systems and directories of their own on others.
const SYSTEM: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// What programs need from /etc to start at all. Each mount costs every start some time, and nothing inside reaches a
/// network that would ask for certificates.
const ETC: [&str; 2] = ["/etc/ld.so.cache", "/etc/alternatives"];

/// Where the kernel takes orders. The user inside is the one that herma runs as, and root may write here.
const KERNEL: [&str; 8] = [
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/fs",
    "/proc/acpi",
    "/proc/scsi",
    "/proc/mtrr",
];

/// Places that no mount may cover or lie in.
const TAKEN: [&str; 6] = [WORKSPACE, ENGINE, "/herma", "/proc", "/dev", "/etc"];

/// The words that are the same for every job: walls, system, and the private places.
pub(super) fn walls() -> Vec<OsString> {
    let mut words = Words(WALLS.iter().map(OsString::from).collect());
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
    words.two("--proc", "/proc");
    for name in KERNEL {
        words.three("--ro-bind-try", name, name);
    }
    words.two("--tmpfs", TMP);
    words.two("--tmpfs", HOME);
    words.0
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
pub(super) fn rooms(job: &Job, herma: &Path) -> Vec<OsString> {
    let mut words = Words(Vec::new());
    for Mount { host, inside } in &job.mounts {
        words.three("--ro-bind", host, inside);
    }
    if job.herma || job.memory.is_some() {
        words.three("--ro-bind", herma, HERMA);
    }
    if let Some(router) = &job.rooms.router {
        // A socket can be called through a mount that cannot be written.
        words.three("--ro-bind", router, ROUTER);
    }
    words.three("--bind", &job.rooms.workspace, WORKSPACE);
    if let Some(dir) = &job.rooms.engine_dir {
        words.three("--bind", dir, ENGINE);
    }
    // Last, because until here bubblewrap itself makes directories in it.
    words.two("--remount-ro", "/");
    words.two("--chdir", WORKSPACE);
    for (name, value) in environment::variables(job, Path::new(HOME), Path::new(TMP)) {
        words.three("--setenv", name, value);
    }
    words.0
}

/// Refuses mounts that would cover what herma lays out, or be covered by it.
pub(super) fn check_mounts(mounts: &[Mount]) -> Result<(), BadJob> {
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
