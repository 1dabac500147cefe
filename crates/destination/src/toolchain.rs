//! Finds a toolchain on this machine and the mounts that it needs inside.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use herma_core::contract::Toolchain;

use crate::destination::Unready;
use crate::job::Mount;
use crate::tool::Tool;

/// The mounts and PATH directories of toolchains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchains {
    /// The mounts; none for a toolchain of the system, which is visible anyway.
    pub mounts: Vec<Mount>,
    /// The directories inside that must come first in `PATH`.
    pub path: Vec<PathBuf>,
}

/// The system's Python, which is visible inside without a mount.
const SYSTEM_PYTHON: &str = "/usr/bin/python3";

/// Finds the toolchain through `path`, the caller's PATH; `home` is the user's home, where version managers
/// install.
pub fn find(toolchain: Toolchain, path: &OsStr, home: &Path) -> Result<Toolchains, Unready> {
    match toolchain {
        Toolchain::Python if Path::new(SYSTEM_PYTHON).is_file() => {
            Ok(Toolchains { mounts: Vec::new(), path: Vec::new() })
        }
        Toolchain::Python => {
            let args = ["-I", "-c", "import sys; sys.stdout.write(sys.base_prefix)"];
            found("python3", &args, path, home, "apt install python3")
        }
        Toolchain::Rust => {
            let next_step = "install Rust from https://rustup.rs or apt install rustc cargo";
            found("rustc", &["--print", "sysroot"], path, home, next_step)
        }
    }
}

fn found(
    program: &str,
    args: &[&str],
    path: &OsStr,
    home: &Path,
    next_step: &str,
) -> Result<Toolchains, Unready> {
    let unready = |what: String| Unready { what, next_step: next_step.to_owned() };
    let tool = Tool::find(program, path).map_err(|_| unready(format!("{program} is not installed")))?;
    let asked = tool.call().args(args.iter().copied()).env("PATH", path).env("HOME", home).checked();
    let answer = asked.map_err(|error| unready(format!("{program} does not report its prefix: {error}")))?;
    let said = PathBuf::from(OsString::from_vec(answer.stdout.trim_ascii().to_vec()));
    // Resolved, because a link could lead from the path that is checked below to another one that is then mounted.
    let real = said
        .canonicalize()
        .ok()
        .filter(|real| said.is_absolute() && real.join("bin").join(program).is_file());
    let Some(prefix) = real else {
        return Err(unready(format!("{program} reports the prefix `{}`, and is not there", said.display())));
    };
    let bin = prefix.join("bin");
    if prefix.starts_with("/usr") {
        return Ok(Toolchains { mounts: Vec::new(), path: vec![bin] });
    }
    // This mount would expose the user's home, including keys.
    let real_home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    if home.starts_with(&prefix) || real_home.starts_with(&prefix) {
        return Err(unready(format!(
            "{program} is in `{}`, which contains the user's home",
            prefix.display()
        )));
    }
    Ok(Toolchains { mounts: vec![Mount { host: prefix.clone(), inside: prefix }], path: vec![bin] })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_python_outside_the_system_is_mounted_at_its_own_path() {
        let dir = tempfile::tempdir().unwrap();
        let (prefix, shims) = (dir.path().join("3.14"), dir.path().join("shims"));
        fs::create_dir_all(prefix.join("bin")).unwrap();
        fs::create_dir(&shims).unwrap();
        fs::write(prefix.join("bin/python3"), "").unwrap();
        // The shim of a version manager: it needs HOME to find the real interpreter.
        fs::write(shims.join("python3"), "#!/bin/sh\nprintf %s \"$HOME/../3.14\"\n").unwrap();
        fs::set_permissions(shims.join("python3"), fs::Permissions::from_mode(0o755)).unwrap();
        let found = found("python3", &[], shims.as_os_str(), &shims, "").unwrap();
        assert_eq!(found.path, [prefix.join("bin")]);
        assert_eq!(found.mounts, [Mount { host: prefix.clone(), inside: prefix }]);
    }
}
