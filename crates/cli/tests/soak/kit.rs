//! Starts herma, kills it, and sees what it left.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use herma_model::RunId;
use serde_json::Value;

/// What herma's home can hold once everything is closed.
const HOME: [&str; 7] = ["active", "keys", "reserve", "runs", "store.db", "store.db-shm", "store.db-wal"];

/// The herma that was built for this test, with a home of its own for a user of its own.
pub(crate) struct Herma {
    home: tempfile::TempDir,
    user: tempfile::TempDir,
}

/// How a herma ended that was to be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It was still there.
    Killed,
    /// It had already ended with this exit code.
    Exited(i32),
}

impl Herma {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), user: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    fn command(&self, args: &[String]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_herma"));
        command.args(args).env("HERMA_HOME", self.home()).stdin(Stdio::null());
        command.env("HOME", self.user.path()).env("TMPDIR", self.user.path());
        command
    }

    /// Runs herma to its end: exit code, standard output, standard error.
    pub(crate) fn run(&self, args: &[String]) -> (i32, String, String) {
        let output = self.command(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    /// How long a whole run takes, and its exit code.
    pub(crate) fn timed(&self, args: &[String]) -> (Duration, i32) {
        let start = Instant::now();
        let (code, ..) = self.run(args);
        (start.elapsed(), code)
    }

    /// Starts herma and kills it after `delay`.
    pub(crate) fn killed_after(&self, args: &[String], delay: Duration) -> End {
        let mut child = self.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(delay);
        child.kill().unwrap();
        child.wait().unwrap().code().map_or(End::Killed, End::Exited)
    }

    /// What `herma runs` lists, which also closes what was left.
    pub(crate) fn runs(&self) -> Result<Vec<Value>, String> {
        let (code, out, err) = self.run(&words("runs --json --limit 1000"));
        if code != 0 {
            return Err(format!("`herma runs` exits with {code}: {err}"));
        }
        let listed: Value = serde_json::from_str(&out).map_err(|e| format!("{e}: {out}"))?;
        Ok(listed["runs"].as_array().cloned().unwrap_or_default())
    }

    /// What lies around that no closed run needs: in herma's home, in the user's, among temporary files.
    pub(crate) fn litter(&self) -> Vec<String> {
        let mut litter = names(self.user.path());
        litter.extend(names(self.home()).into_iter().filter(|name| !HOME.contains(&name.as_str())));
        litter
    }

    /// The runs that have a directory.
    pub(crate) fn run_dirs(&self) -> BTreeSet<RunId> {
        names(&self.home().join("runs")).iter().map(|name| name.parse().unwrap()).collect()
    }
}

/// The names in a directory; none if it is not there.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub(crate) fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// Every file below a directory: permissions and bytes, or where a link leads.
pub(crate) fn snapshot(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut files = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let bytes = if meta.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if meta.is_dir() {
                open.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            files.insert(path, (meta.permissions().mode(), bytes));
        }
    }
    files
}

/// The processes that work somewhere below a directory.
pub(crate) fn processes_in(dir: &Path) -> Vec<String> {
    let dir = dir.canonicalize().unwrap();
    let inside =
        |pid: &String| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&dir));
    names(Path::new("/proc"))
        .into_iter()
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        .filter(inside)
        .map(|pid| {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!("{pid}: {}", line.replace('\0', " "))
        })
        .collect()
}
