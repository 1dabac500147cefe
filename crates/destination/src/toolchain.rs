//! Where a toolchain lies on this machine, and what must be mounted so that it runs inside.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use herma_core::contract::Toolchain;

use crate::destination::Unready;
use crate::job::Mount;
use crate::tool::Tool;

/// A toolchain that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What must be mounted; nothing if it lies in the system, which is visible anyway.
    pub mounts: Vec<Mount>,
    /// The directories inside that must come first in `PATH`.
    pub path: Vec<PathBuf>,
}

/// Python of the system: visible inside without a mount.
const SYSTEM_PYTHON: &str = "/usr/bin/python3";

/// Finds the toolchain through `path`, the caller's PATH; `home` is the user's home, where version managers keep
/// what they installed.
pub fn find(toolchain: Toolchain, path: &OsStr, home: &Path) -> Result<Found, Unready> {
    match toolchain {
        Toolchain::Python if Path::new(SYSTEM_PYTHON).is_file() => {
            Ok(Found { mounts: Vec::new(), path: Vec::new() })
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

fn found(program: &str, args: &[&str], path: &OsStr, home: &Path, next_step: &str) -> Result<Found, Unready> {
    let unready = |what: String| Unready { what, next_step: next_step.to_owned() };
    let tool = Tool::find(program, path).map_err(|_| unready(format!("{program} is not installed")))?;
    let asked = tool.call().args(args.iter().copied()).env("PATH", path).env("HOME", home).checked();
    let answer = asked.map_err(|error| unready(format!("{program} does not say where it lies: {error}")))?;
    let said = PathBuf::from(OsString::from_vec(answer.stdout.trim_ascii().to_vec()));
    // The real path: a link could lead from what is checked below to something else that is then mounted.
    let real = said
        .canonicalize()
        .ok()
        .filter(|real| said.is_absolute() && real.join("bin").join(program).is_file());
    let Some(prefix) = real else {
        return Err(unready(format!("{program} says that it lies in `{}`, and it does not", said.display())));
    };
    let bin = prefix.join("bin");
    if prefix.starts_with("/usr") {
        return Ok(Found { mounts: Vec::new(), path: vec![bin] });
    }
    // A mount of this would show the user's home, keys and all.
    let real_home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    if home.starts_with(&prefix) || real_home.starts_with(&prefix) {
        return Err(unready(format!(
            "{program} lies in `{}`, which holds the user's home",
            prefix.display()
        )));
    }
    Ok(Found { mounts: vec![Mount { host: prefix.clone(), inside: prefix }], path: vec![bin] })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_python_outside_the_system_is_mounted_where_it_lies() {
        let dir = tempfile::tempdir().unwrap();
        let (prefix, shims) = (dir.path().join("3.14"), dir.path().join("shims"));
        fs::create_dir_all(prefix.join("bin")).unwrap();
        fs::create_dir(&shims).unwrap();
        fs::write(prefix.join("bin/python3"), "").unwrap();
        // A version manager's shim: it needs the home to know where the real one lies.
        fs::write(shims.join("python3"), "#!/bin/sh\nprintf %s \"$HOME/../3.14\"\n").unwrap();
        fs::set_permissions(shims.join("python3"), fs::Permissions::from_mode(0o755)).unwrap();
        let found = found("python3", &[], shims.as_os_str(), &shims, "").unwrap();
        assert_eq!(found.path, [prefix.join("bin")]);
        assert_eq!(found.mounts, [Mount { host: prefix.clone(), inside: prefix }]);
    }
}
