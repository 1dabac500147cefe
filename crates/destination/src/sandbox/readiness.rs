//! Checks that bubblewrap is installed, recent enough, and able to create namespaces on this machine.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::layout;
use crate::cgroup;
use crate::destination::{Readiness, Unready};
use crate::enabled_layers::EnabledLayers;
use crate::isolation_layer::IsolationLayer;
use crate::launcher::landlock::LandlockAbi;
use crate::limits::{HeldBy, Limits};
use crate::tool::Tool;

/// The first release that can forbid nested user namespaces.
const OLDEST: (u32, u32) = (0, 8);

/// The isolation layers as the report names them. Those that depend on the kernel follow.
const LAYERS: [&str; 7] = [
    "own user, mount, pid, ipc, uts, network and cgroup namespaces; no further user namespace",
    "no capabilities, no new privileges",
    "read-only system; own /tmp and home; only the workspace and the engine's directory are writable",
    "no network but an empty loopback",
    "no variable and no open file of the caller",
    "own session; dies with herma",
    "a filter of system calls; 32-bit and x32 system calls kill the process",
];

pub(super) fn not_installed() -> Unready {
    Unready {
        what: "bubblewrap is not installed".to_owned(),
        next_step: "apt install bubblewrap (or dnf, pacman, zypper)".to_owned(),
    }
}

/// Checks that bubblewrap is installed and recent enough.
pub(super) fn check(bwrap: &Path, herma: &Path) -> Result<Readiness, Unready> {
    let unready = |what: String, next_step: &str| Unready { what, next_step: next_step.to_owned() };
    if !herma.is_file() {
        return Err(unready(
            format!("herma's own binary is not at {}", herma.display()),
            "install herma again",
        ));
    }
    if let Some(why) = whose(bwrap) {
        return Err(unready(
            format!("{} is not the system's own: {why}", bwrap.display()),
            "put the directory of the system's bubblewrap first in PATH: only root may be able to change the program that isolates",
        ));
    }
    let tool = Tool::at("bwrap", bwrap.to_owned());
    let broken = |error: &dyn std::error::Error| {
        unready(format!("{} does not work: {error}", bwrap.display()), "install bubblewrap again")
    };
    let said = tool.call().arg("--version").checked().map_err(|error| broken(&error))?;
    let detail = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    match version(&detail) {
        Some(version) if version >= OLDEST => {}
        _ => {
            let what = format!("`{detail}` at {} is too old", bwrap.display());
            return Err(unready(what, "install bubblewrap 0.8 or newer"));
        }
    }
    Ok(Readiness {
        walls: LAYERS.map(str::to_owned).into_iter().chain([second_wall(), limits()]).collect(),
        detail,
    })
}

/// The line for Landlock. A kernel without it is accepted, because Landlock only repeats the mounts' restrictions.
fn second_wall() -> String {
    match LandlockAbi::of_this_kernel() {
        Some(version) => {
            let scope = if version.keeps_signals() { ", signals and abstract sockets" } else { "" };
            format!("Landlock {} around files{scope}", version.number())
        }
        None => "no Landlock: this kernel has none".to_owned(),
    }
}

/// The line for the enforcement of limits over all processes.
fn limits() -> String {
    let by: Vec<String> = cgroup::will_hold(&Limits::default())
        .iter()
        .map(|held| {
            format!(
                "{} by {}",
                held.name,
                if held.by == HeldBy::CgroupV2 { "cgroup v2" } else { "cgroup v1" }
            )
        })
        .collect();
    match &by[..] {
        [] => "limits of each process by rlimits: no cgroup can be made here".to_owned(),
        _ => format!("limits: {}; the rest by rlimits", by.join(", ")),
    }
}

/// Why another user than root could have installed this program. A wrapper in PATH could disable a layer, and
/// nothing inside would see it.
fn whose(bwrap: &Path) -> Option<String> {
    let real = match bwrap.canonicalize() {
        Ok(real) => real,
        Err(error) => return Some(error.to_string()),
    };
    real.ancestors().find_map(|path| {
        let meta = path.symlink_metadata().ok()?;
        // In a directory with the sticky bit, other users cannot replace the file.
        let others_write = meta.mode() & 0o022 != 0 && meta.mode() & 0o1000 == 0;
        let what = path.display();
        if meta.uid() != 0 {
            Some(format!("{what} belongs to user {}", meta.uid()))
        } else {
            others_write.then(|| format!("others can write {what}"))
        }
    })
}

/// Sets up the isolation once, around a command that does nothing.
pub(super) fn rehearse(bwrap: &Path, enabled: EnabledLayers<IsolationLayer>) -> Result<(), Unready> {
    let mut words: Vec<OsString> = layout::isolation_args(enabled, &Limits::default(), Vec::new());
    words.extend(["--setenv", "PATH", "/usr/bin:/bin", "--", "true"].map(OsString::from));
    let tried = Tool::at("bwrap", bwrap.to_owned()).call().args(words).checked();
    tried.map(drop).map_err(|error| Unready {
        what: format!("bubblewrap cannot make its namespaces: {error}"),
        next_step: "let it make user namespaces: `sysctl -w user.max_user_namespaces=15000`, and on Ubuntu an \
                    AppArmor profile for bwrap or `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`; in a \
                    container, allow them there"
            .to_owned(),
    })
}

fn version(said: &str) -> Option<(u32, u32)> {
    let mut parts = said.rsplit(' ').next()?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn versions_are_read_and_compared_as_numbers() {
        assert_eq!(version("bubblewrap 0.8.0"), Some((0, 8)));
        assert!(version("bubblewrap 0.11.0").unwrap() > OLDEST);
        assert!(version("bubblewrap 0.6.2").unwrap() < OLDEST);
        assert_eq!(version("something else"), None);
    }

    #[test]
    fn a_bubblewrap_that_another_user_could_replace_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let wrapper = dir.path().join("bwrap");
        fs::write(&wrapper, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o757)).unwrap();
        assert!(whose(&wrapper).is_some());
        assert!(whose(&dir.path().join("none")).is_some());
        assert_eq!(whose(Path::new("/bin/sh")), None);
    }
}
