//! The router under test: the real binary with a configuration of this directory, and what it leaves.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::audit::Audit;
use crate::libraries::here;

/// The clients of `router.toml`, with the variable of their token and the token.
pub(crate) const CLIENTS: &[(&str, &str, &str)] = &[
    ("main", "MAIN_TOKEN", "main-5b1f0c9ad27e4836"),
    ("poor", "POOR_TOKEN", "poor-0e6d83f1c4972ab5"),
    ("thrifty", "THRIFTY_TOKEN", "thrifty-7a94cd2e10b86f35"),
];

/// A router that listens. It is killed if the test forgets it.
pub(crate) struct Router {
    child: Child,
    pub(crate) url: String,
    pub(crate) dir: TempDir,
}

/// Starts the router in a directory of its own.
pub(crate) fn start() -> Router {
    let dir = TempDir::new().unwrap();
    fs::copy(here().join("router.toml"), dir.path().join("router.toml")).unwrap();
    copy_all(&here().join("scripts"), &dir.path().join("scripts"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_herma"))
        .args(["router", "--json", "--config"])
        .arg(dir.path().join("router.toml"))
        .env_clear()
        .env("HERMA_HOME", dir.path().join("home"))
        .env("HOME", dir.path())
        .envs(CLIENTS.iter().map(|(_, variable, token)| (variable, token)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let said: serde_json::Value =
        serde_json::from_str(&said).unwrap_or_else(|e| panic!("the router said {said:?}: {e}"));
    assert_eq!(said["schema"], "herma.router/v1");
    Router { child, url: format!("http://{}", said["listen"].as_str().unwrap()), dir }
}

impl Router {
    /// Lets it end as an operator does, and reads what it recorded.
    pub(crate) fn stop(mut self) -> Audit {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "the router ended with {status}");
        Audit::read(&self.dir.path().join("state/audit"))
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Copies the files of a directory.
pub(crate) fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
