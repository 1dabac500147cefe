//! The test kit: a fresh home with the real binary, and what a test does with it.

mod bundle;
mod contract;
mod models;
mod normal_user;
mod owned;
mod people;
mod process;
mod proven;
mod provider;
mod random;
mod repository;
mod service;
pub(crate) mod stage_rows;
mod stub;
mod terminal;

use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use herma_core::blocker::BlockerRecord;
use herma_core::{Blocker, RunId};
use herma_home::{MARKER, MARKER_TEXT};
use tempfile::TempDir;

pub(crate) use bundle::{Bundle, Finished};
pub(crate) use contract::{contract_text, fix_and};
pub(crate) use models::{ANSWERS, LONG_ANSWERS, MODEL, ROUTER};
pub(crate) use owned::{
    CONTRACT, HOLD, ON_TARGET, Owned, SECRET_PLACE, assert_said_nowhere, assert_unplaced, assert_unplaced_in,
};
pub(crate) use people::as_approver;
pub(crate) use process::{Ended, Started, environment, on_path, processes_of, run_tool, until};
pub(crate) use provider::{KEY, Provider};
pub(crate) use random::{Random, rounds};
pub(crate) use repository::{ON_REPOSITORY, Repository, everything_below};
pub(crate) use service::Service;
pub(crate) use stub::built_stub;

/// The binary under test.
pub(crate) const HERMA: &str = env!("CARGO_BIN_EXE_herma");

/// herma with a home of its own, which vanishes with the test.
pub(crate) struct Herma {
    dir: Rc<TempDir>,
    home: PathBuf,
    variables: Vec<(OsString, OsString)>,
    wrapper: Vec<OsString>,
    binary: PathBuf,
}

impl Herma {
    /// A home that does not exist yet, and an empty user's home.
    pub(crate) fn new() -> Self {
        let dir = Rc::new(TempDir::new().unwrap());
        for name in ["user", "contracts"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let home = dir.path().join("home");
        let mut herma = Self {
            dir,
            home: PathBuf::new(),
            variables: Vec::new(),
            wrapper: Vec::new(),
            binary: HERMA.into(),
        };
        let user = herma.at("user");
        herma.set_home(&home);
        herma.set("HOME", user);
        herma.set("PATH", environment("PATH"));
        herma
    }

    /// Sets a variable for every command from now on; the binary sees no others.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.into(), value.into()));
    }

    /// Moves herma's home.
    pub(crate) fn set_home(&mut self, home: &Path) {
        home.clone_into(&mut self.home);
        self.set("HERMA_HOME", home);
    }

    /// Starts the binary through this command from now on.
    pub(crate) fn wrap(&mut self, wrapper: &[impl AsRef<OsStr>]) {
        self.wrapper = wrapper.iter().map(|word| word.as_ref().to_owned()).collect();
    }

    /// Starts a copy of the binary from now on.
    pub(crate) fn set_binary(&mut self, binary: &Path) {
        binary.clone_into(&mut self.binary);
    }

    /// A path in the test's own directory.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// herma's home.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// herma's home, made and marked for a test that fills it before herma's first command.
    pub(crate) fn marked_home(&self) -> &Path {
        if !self.home.exists() {
            DirBuilder::new().mode(0o700).create(&self.home).unwrap();
            std::fs::write(self.home.join(MARKER), MARKER_TEXT).unwrap();
        }
        &self.home
    }

    /// Runs a command to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Ended {
        self.start(args).end()
    }

    /// Runs a command that meets this fault.
    pub(crate) fn run_with_fault<S: AsRef<OsStr>>(&self, fault: &str, args: &[S]) -> Ended {
        let variables = [&self.variables[..], &[("HERMA_FAULT".into(), fault.into())]].concat();
        Started::new(&self.words(), &variables, self.dir.path(), args).end()
    }

    /// Starts a command and leaves it running.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, args: &[S]) -> Started {
        Started::new(&self.words(), &self.variables, self.dir.path(), args)
    }

    /// Runs a command at a terminal of its own, where this was typed.
    pub(crate) fn run_typing<S: AsRef<OsStr>>(&self, typed: &str, args: &[S]) -> Ended {
        people::at_terminal(typed, |stdin| self.start_reading(args, stdin).end())
    }

    /// Starts a command with this as its standard input.
    fn start_reading<S: AsRef<OsStr>>(&self, args: &[S], stdin: std::process::Stdio) -> Started {
        Started::reading(&self.words(), &self.variables, self.dir.path(), args, stdin)
    }

    /// The words before the arguments. Tests that `nohup` or a shell's background started ignore signals, and so would
    /// herma: `env` gives it the default ones.
    fn words(&self) -> Vec<OsString> {
        let signals = ["/usr/bin/env", "--default-signal=HUP,INT,TERM"].map(OsString::from);
        [&signals[..], &self.wrapper, &[self.binary.clone().into()]].concat()
    }

    /// Runs a command that must end with 0, and gives the JSON that it prints.
    pub(crate) fn json<S: AsRef<OsStr>>(&self, args: &[S]) -> serde_json::Value {
        let ended = self.run(args);
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        ended.json()
    }

    /// Runs the demo, which must pass.
    pub(crate) fn demo(&self, args: &[&str]) -> Finished {
        let finished = self.finished(&[&["demo", "--json"], args].concat());
        assert_eq!(finished.ended.code, Some(0), "{finished:#?}");
        finished
    }

    /// The contract of `string-slugify` with other terms, played by this script in the sandbox.
    pub(crate) fn play(&self, script: &str, terms: &[(&str, &str)]) -> Finished {
        let contract = self.contract(terms);
        let script = self.script(script);
        let args =
            ["run".as_ref(), contract.as_os_str(), "--json".as_ref(), "--script".as_ref(), script.as_ref()];
        self.finished(&args)
    }

    /// Runs a command that makes one run; the run must leave a whole bundle that verifies, and nothing else.
    pub(crate) fn finished<S: AsRef<OsStr>>(&self, args: &[S]) -> Finished {
        self.finished_by(|| self.run(args))
    }

    /// The same for a command that is run in another way.
    pub(crate) fn finished_by(&self, run: impl FnOnce() -> Ended) -> Finished {
        let before = self.runs();
        let ended = run();
        let new: Vec<RunId> = self.runs().into_iter().filter(|run| !before.contains(run)).collect();
        let [run] = new[..] else { panic!("expected one run, found {new:?}: {ended:#?}") };
        let bundle = self.bundle(run);
        bundle.assert_whole();
        self.assert_verifies(&bundle);
        self.assert_only_the_bundle_is_left(run);
        Finished { report: bundle.report(), ended, bundle }
    }

    /// Every run that has a directory.
    pub(crate) fn runs(&self) -> Vec<RunId> {
        let mut runs: Vec<RunId> =
            names(&self.home.join("runs")).iter().map(|id| id.parse().unwrap()).collect();
        runs.sort();
        runs
    }

    /// Every run that is marked as under way.
    pub(crate) fn active(&self) -> Vec<String> {
        names(&self.home.join("active"))
    }

    pub(crate) fn bundle(&self, run: RunId) -> Bundle {
        let dir = self.home.join("runs").join(run.to_string()).join("bundle");
        Bundle { dir, _keep: Rc::clone(&self.dir) }
    }

    /// `herma verify` on the bundle exits with 0.
    pub(crate) fn assert_verifies(&self, bundle: &Bundle) {
        let ended = self.run(&["verify".as_ref(), bundle.dir.as_os_str()]);
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        assert!(ended.stdout.ends_with("The bundle holds.\n"), "{ended:#?}");
    }

    /// The run's directory holds its bundle, the session of an agent that has one, and nothing else. An interrupted run whose report
    /// says so has its workspace too.
    pub(crate) fn assert_only_the_bundle_is_left(&self, run: RunId) {
        let mut left = names(&self.home.join("runs").join(run.to_string()));
        left.retain(|name| name != "session");
        let report = self.bundle(run).report();
        let keeps = |record: &BlockerRecord| {
            record.blocker == Blocker::Interrupted && record.next_step.starts_with("Its workspace is kept: ")
        };
        let expected: &[&str] =
            if report.blockers.iter().any(keeps) { &["bundle", "workspace"] } else { &["bundle"] };
        assert_eq!(left, expected);
    }

    /// Nothing was created: no run, not even a directory for one.
    pub(crate) fn assert_no_run(&self) {
        assert_eq!(self.runs(), []);
        assert_eq!(self.active(), [""; 0]);
    }
}

/// The names in a directory, sorted; none where it is not there.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
