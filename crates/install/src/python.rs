//! An interpreter of Python that the machine has: which one it is, and how it is copied into a tree, so that the digest of
//! the tree covers it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use herma_destination::Tool;
use herma_engines::PYTHON_HOME;
use serde::Deserialize;

use crate::host_tools::HostTools;

/// The script that prints an interpreter's version and paths.
const ASK: &str = r#"
import importlib.util, json, os, sys, sysconfig
of = sysconfig.get_config_var
base = getattr(sys, "_base_executable", None) or sys.executable
print(json.dumps({
    "version": "%d.%d" % sys.version_info[:2],
    "starts": sys.executable,
    "program": os.path.realpath(base),
    "prefixes": [sys.prefix, sys.base_prefix],
    "modules": sysconfig.get_path("stdlib"),
    "library": os.path.join(of("LIBDIR") or "/", of("INSTSONAME") or ""),
    "pip": importlib.util.find_spec("pip") is not None,
}))
"#;

/// Modules that are not copied: unused by programs, or specific to the machine.
const LEFT_OUT: [&str; 10] = [
    "__pycache__",
    "dist-packages",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "site-packages",
    "sitecustomize.py",
    "test",
    "tkinter",
    "turtledemo",
];
/// The maximum depth of its modules.
const DEEPEST: usize = 16;

/// An interpreter, as it describes itself.
#[derive(Debug, Deserialize)]
pub(crate) struct Python {
    version: String,
    /// The program to start: the interpreter, or its link in a virtual environment.
    pub(crate) starts: PathBuf,
    /// The interpreter's own file.
    program: PathBuf,
    /// Its prefixes: its own and that of its packages.
    pub(crate) prefixes: [PathBuf; 2],
    modules: PathBuf,
    /// Its shared library, if it has one.
    library: PathBuf,
    pip: bool,
}

impl Python {
    /// The first on PATH that is of one of these versions and has pip.
    pub(crate) fn find(host: &HostTools, versions: &[&str]) -> Option<Self> {
        let names =
            std::iter::once("python3".to_owned()).chain(versions.iter().map(|v| format!("python{v}")));
        names
            .filter_map(|name| Tool::find(&name, &host.search_path).ok())
            .filter_map(|tool| {
                let said = tool
                    .call()
                    .args(["-I", "-c", ASK])
                    .env("PATH", &host.search_path)
                    .env("HOME", &host.user_home)
                    .checked()
                    .ok()?;
                serde_json::from_slice(&said.stdout).ok()
            })
            .find(|found: &Self| found.pip && versions.contains(&found.version.as_str()))
    }

    /// Copies the interpreter, its modules and its library below `tree`, laid out as below its own prefix. Its packages
    /// stay where they are.
    pub(crate) fn copy(&self, tree: &Path) -> io::Result<()> {
        let home = tree.join(PYTHON_HOME);
        let [_, prefix] = &self.prefixes;
        let outside = || io::Error::other("the modules of Python do not lie below its prefix");
        let modules = self.modules.strip_prefix(prefix).map_err(|_| outside())?;
        fs::create_dir_all(home.join("bin"))?;
        fs::create_dir_all(home.join("lib"))?;
        fs::copy(&self.program, home.join("bin/python3"))?;
        if let Some(name) = self.library.file_name()
            && self.library.is_file()
        {
            fs::copy(&self.library, home.join("lib").join(name))?;
        }
        copy_modules(&self.modules, &home.join(modules), DEEPEST)
    }
}

/// Copies a directory of modules. Links to files become files, so that nothing in the tree leads out of it.
fn copy_modules(from: &Path, to: &Path, deepest: usize) -> io::Result<()> {
    if deepest == 0 {
        return Err(io::Error::other(format!("{} is nested too deep", from.display())));
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if is_left_out(&name) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy_modules(&entry.path(), &to.join(name), deepest - 1)?;
        } else if entry.path().is_file() {
            fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}

/// Besides the list: the headers for programs in C.
fn is_left_out(name: &OsStr) -> bool {
    LEFT_OUT.iter().any(|out| name == *out) || name.to_string_lossy().starts_with("config-")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_interpreter_is_copied_with_its_modules_and_without_the_packages_of_the_machine() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("own");
        for file in [
            "bin/python3.12",
            "lib64/libpython3.12.so.1.0",
            "lib64/python3.12/json/decoder.py",
            "else/linked.py",
        ] {
            fs::create_dir_all(own.join(file).parent().unwrap()).unwrap();
            fs::write(own.join(file), file).unwrap();
        }
        for out in LEFT_OUT.into_iter().chain(["config-3.12-x86_64-linux-gnu"]) {
            fs::create_dir_all(own.join("lib64/python3.12").join(out)).unwrap();
        }
        symlink(own.join("else/linked.py"), own.join("lib64/python3.12/linked.py")).unwrap();
        symlink("nowhere", own.join("lib64/python3.12/dangling.py")).unwrap();
        symlink(&own, own.join("lib64/python3.12/around")).unwrap();
        let python = Python {
            version: "3.12".to_owned(),
            starts: own.join("bin/python3.12"),
            program: own.join("bin/python3.12"),
            prefixes: [own.clone(), own.clone()],
            modules: own.join("lib64/python3.12"),
            library: own.join("lib64/libpython3.12.so.1.0"),
            pip: true,
        };
        let tree = dir.path().join("tree");
        python.copy(&tree).unwrap();
        let mut found: Vec<PathBuf> = Vec::new();
        let mut waiting = vec![tree.clone()];
        while let Some(place) = waiting.pop() {
            for entry in fs::read_dir(place).unwrap().map(Result::unwrap) {
                assert!(!entry.file_type().unwrap().is_symlink());
                if entry.path().is_dir() {
                    waiting.push(entry.path());
                } else {
                    found.push(entry.path().strip_prefix(&tree).unwrap().to_owned());
                }
            }
        }
        found.sort();
        let expected = [
            "python/bin/python3",
            "python/lib/libpython3.12.so.1.0",
            "python/lib64/python3.12/json/decoder.py",
            "python/lib64/python3.12/linked.py",
        ];
        assert_eq!(found, expected.map(PathBuf::from));

        let elsewhere = Python { modules: dir.path().join("elsewhere"), ..python };
        assert!(elsewhere.copy(&tree).is_err());
    }
}
