//! Runs the cases in one language.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::libraries::{here, installed};
use crate::router::{CLIENTS, Router, copy_all};

/// No suite takes this long unless it hangs.
const SAFETY_NET: Duration = Duration::from_mins(2);

/// A language that the cases are written in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Language {
    Python,
    JavaScript,
}

/// The report of one case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Report {
    pub(crate) case: String,
    /// The usage that the library saw in each answer, in order; none for an answer without it.
    pub(crate) used: Vec<Option<BTreeMap<String, u64>>>,
    pub(crate) failed: Option<String>,
}

/// Runs all cases against a router.
pub(crate) fn run(language: Language, router: &Router) -> Vec<Report> {
    let dir = router.dir.path();
    let suite = dir.join("suite");
    let mut command = match language {
        Language::Python => {
            copy_all(&here().join("python"), &suite);
            let mut command = Command::new(installed().join("python/bin/python"));
            command.arg("-B").arg(suite.join("main.py"));
            command
        }
        Language::JavaScript => {
            copy_all(&here().join("javascript"), &suite);
            symlink(installed().join("javascript/node_modules"), suite.join("node_modules")).unwrap();
            let mut command = Command::new("node");
            command.arg(suite.join("main.js"));
            command
        }
    };
    let [stdout, stderr] = ["said", "complained"].map(|name| dir.join(name));
    let mut child = command
        .env_clear()
        .env("PATH", path())
        .env("HOME", dir)
        .env("ROUTER", &router.url)
        .envs(CLIENTS.iter().map(|(_, variable, token)| (variable, token)))
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&stdout).unwrap())
        .stderr(fs::File::create(&stderr).unwrap())
        .spawn()
        .unwrap_or_else(|error| panic!("{language:?} does not start: {error}; run scripts/clients"));
    let deadline = Instant::now() + SAFETY_NET;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        thread::sleep(Duration::from_millis(10));
    };
    let [said, complained] = [stdout, stderr].map(|file| fs::read_to_string(file).unwrap());
    assert!(
        status.is_some_and(|status| status.success()),
        "{language:?} ended with {status:?} (nothing: it hung)\n{said}\n{complained}"
    );
    let report = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    said.lines().map(report).collect()
}

#[allow(clippy::disallowed_methods, reason = "node is where the caller's other programs are")]
fn path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_default()
}
