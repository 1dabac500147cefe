//! The work of each round: a contract on a target in a destination, with a script for `fake`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::daemon::Daemon;
use crate::kit::{Herma, Victim, snapshot, words};

/// How many whole runs are timed to know how long one takes.
const TIMED: usize = 5;

/// The possible victims, those first that every destination has.
pub(crate) const VICTIMS: [Victim; 4] =
    [Victim::Herma, Victim::Inside("__fake"), Victim::Inside("__forward"), Victim::Inside("__keep")];

/// One kind of run.
pub(crate) struct World {
    pub(crate) name: String,
    pub(crate) args: Vec<String>,
    /// The home that most rounds share.
    pub(crate) herma: Herma,
    /// How long a whole run takes.
    pub(crate) median: Duration,
    /// How a whole run ends.
    pub(crate) exit_code: i32,
    /// The possible victims: herma, the agent, and in a container also its forwarder and its keeper.
    pub(crate) victims: &'static [Victim],
    repository: Option<Repository>,
}

/// A repository that must stay as it is, byte by byte.
struct Repository {
    _temp: tempfile::TempDir,
    dir: PathBuf,
    before: BTreeMap<PathBuf, (u32, Vec<u8>)>,
}

impl World {
    /// Every kind of run, each timed.
    pub(crate) fn all(docker: &Daemon) -> Vec<Self> {
        let mut worlds = Vec::new();
        for destination in ["host", "sandbox", "docker"] {
            let new = |name, args, repository| Self::new(name, args, repository, destination, docker);
            for script in ["fix", "daemon"] {
                let line =
                    format!("run fixture:string-slugify --destination {destination} --script {script}");
                worlds.push(new(format!("fixture on {destination}, {script}"), words(&line), None));
            }
            let repository = Repository::new();
            let (contract, script) = (repository.beside("contract.md"), repository.beside("fix.yaml"));
            let args = words(&format!("run {contract} --destination {destination} --script {script}"));
            worlds.push(new(format!("repository on {destination}"), args, Some(repository)));
        }
        worlds
    }

    fn new(
        name: String,
        args: Vec<String>,
        repository: Option<Repository>,
        destination: &str,
        docker: &Daemon,
    ) -> Self {
        let in_docker = destination == "docker";
        let victims = if in_docker { &VICTIMS[..] } else { &VICTIMS[..2] };
        let herma = Herma::new(in_docker.then_some(docker));
        let mut timed: Vec<(Duration, i32)> = (0..TIMED).map(|_| herma.timed(&args)).collect();
        timed.sort();
        let (median, exit_code) = timed[TIMED / 2];
        assert!(timed.iter().all(|(_, code)| *code == exit_code && *code <= 1), "{name}: {timed:?}");
        Self { name, args, herma, median, exit_code, victims, repository }
    }

    /// Whether its runs take place in containers.
    pub(crate) fn in_docker(&self) -> bool {
        self.victims.len() > 2
    }

    /// The target's directory, where it has one.
    pub(crate) fn target(&self) -> Option<&Path> {
        self.repository.as_ref().map(|repository| repository.dir.as_path())
    }

    pub(crate) fn target_untouched(&self) -> Result<(), String> {
        let Some(repository) = &self.repository else { return Ok(()) };
        let after = snapshot(&repository.dir);
        let changed: Vec<_> = repository
            .before
            .keys()
            .chain(after.keys())
            .filter(|path| repository.before.get(*path) != after.get(*path))
            .collect();
        if changed.is_empty() { Ok(()) } else { Err(format!("the target changed: {changed:?}")) }
    }
}

impl Repository {
    /// The fixture's files in a repository of their own, with a contract and a script beside it.
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("repo");
        let fixture = herma_fixtures::find("string-slugify").unwrap();
        for file in fixture.files {
            let path = dir.join(file.path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file.bytes).unwrap();
        }
        for line in ["init -q", "add -A", "commit -q -m base"] {
            git(&dir, line);
        }
        let contract = fixture.contract.replace("{ fixture: string-slugify }", "{ repo: ./repo }");
        let contract = contract.replace("stage: 2", "stage: 3");
        fs::write(temp.path().join("contract.md"), contract).unwrap();
        // It lingers, so that there is time to kill it.
        let script = format!("{}  - sleep: 200ms\n", fixture.script("fix").unwrap());
        fs::write(temp.path().join("fix.yaml"), script).unwrap();
        let before = snapshot(&dir);
        Self { _temp: temp, dir, before }
    }

    fn beside(&self, name: &str) -> String {
        self.dir.with_file_name(name).to_string_lossy().into_owned()
    }
}

fn git(dir: &Path, line: &str) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "gc.auto=0"];
    let status = Command::new("git").current_dir(dir).args(identity).args(words(line)).status().unwrap();
    assert!(status.success(), "git {line}");
}
