//! A target of stage 5: a repository that somebody has worked with for a while, admitted, and runs that land in it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use herma_core::RunId;

use super::{Bundle, Ended, Finished, Herma, Repository, Started, everything_below, run_tool, until};

/// A directory of the target's path. No bundle and no message may hold it.
pub(crate) const SECRET_PLACE: &str = "where-it-is-kept";
/// The contract of a test.
pub(crate) const CONTRACT: &str = "contracts/contract.md";
/// The terms that make the fixture's contract one for the admitted repository.
pub(crate) const ON_TARGET: [(&str, &str); 2] = [("target", "{ repo: my-repo }"), ("stage", "5")];
/// A step at which the engine waits until [`UnderWay::go_on`].
pub(crate) const HOLD: &str = "- shell: 'while [ ! -e tests/go ]; do sleep 0.02; done; rm tests/go'";

/// The admitted repository `my-repo`, with a copy of how it was at first.
pub(crate) struct Owned {
    pub(crate) repository: Repository,
    pristine: PathBuf,
}

impl Owned {
    /// A repository with commits, tags, branches, a stash, a linked work tree, hooks, packed and loose refs, in which
    /// every hook would leave a trace.
    pub(crate) fn new(herma: &Herma) -> Self {
        let made = Repository::of_fixture(herma, "string-slugify");
        let dir = herma.at(SECRET_PLACE).join("repo");
        fs::create_dir_all(dir.parent().unwrap()).unwrap();
        fs::rename(&made.dir, &dir).unwrap();
        let repository = Repository { dir };
        write_history(&repository);
        let pristine = herma.at("pristine");
        copy(dir_of(&repository), &pristine);
        Self { repository, pristine }
    }

    /// Puts everything back to how it was at first.
    pub(crate) fn put_back(&self) {
        let place = dir_of(&self.repository);
        fs::remove_dir_all(place).unwrap();
        copy(&self.pristine, place);
    }

    /// Everything around the target, byte by byte: work tree, git directory, linked work tree.
    pub(crate) fn picture(&self) -> std::collections::BTreeMap<PathBuf, (u32, Vec<u8>)> {
        everything_below(dir_of(&self.repository))
    }
}

fn dir_of(repository: &Repository) -> &Path {
    repository.dir.parent().unwrap()
}

fn copy(from: &Path, to: &Path) {
    run_tool("cp", &[OsStr::new("-a"), from.as_os_str(), to.as_os_str()], &[]);
}

fn write_history(repository: &Repository) {
    let write = |path: &str, text: &str| {
        let path = repository.dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let git = |args: &[&str]| repository.git(args);
    let me = ["-c", "user.name=owner", "-c", "user.email=owner@herma.invalid"];
    git(&["tag", "v1"]);
    write(".gitignore", "/build/\n");
    write("docs/guide.md", "how to use it\n");
    repository.commit("a guide");
    git(&[&me[..], &["tag", "-a", "-m", "the second release", "v2"]].concat());
    git(&["checkout", "-q", "-b", "feature"]);
    write("docs/feature.md", "to come\n");
    repository.commit("a feature");
    git(&["checkout", "-q", "main"]);
    git(&["gc", "-q"]);
    write("docs/guide.md", "how to use it, and how not\n");
    repository.commit("more of a guide");
    git(&["branch", "loose"]);
    write("README.md", "not yet\n");
    git(&[&me[..], &["stash", "-q"]].concat());
    git(&["worktree", "add", "-q", "-b", "beside", "../linked"]);
    write("build/output", "ignored\n");
    git(&["config", "core.logAllRefUpdates", "always"]);
    for hook in
        ["pre-commit", "post-commit", "reference-transaction", "update", "post-checkout", "post-index-change"]
    {
        let path = repository.dir.join(".git/hooks").join(hook);
        fs::write(&path, format!("#!/bin/sh\necho {hook} >> \"$(dirname \"$0\")\"/ran\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// A run whose engine waits.
pub(crate) struct UnderWay<'a> {
    herma: &'a Herma,
    started: Started,
    pub(crate) run: RunId,
}

impl UnderWay<'_> {
    /// Lets the engine go on, and waits for the end of the run, which must leave a whole bundle that verifies.
    pub(crate) fn go_on(self) -> Finished {
        let (herma, run) = (self.herma, self.run);
        let ended = self.let_go().end();
        let bundle = herma.bundle(run);
        bundle.assert_whole();
        herma.assert_verifies(&bundle);
        herma.assert_only_the_bundle_is_left(run);
        Finished { report: bundle.report(), ended, bundle }
    }

    /// Lets the engine go on and waits for nothing.
    pub(crate) fn let_go(self) -> Started {
        let workspace = self.herma.home().join("runs").join(self.run.to_string()).join("workspace");
        fs::write(workspace.join("tests/go"), "").unwrap();
        self.started
    }
}

impl Herma {
    /// A home in which `fake` has proven every stage, with the admitted target `my-repo`.
    pub(crate) fn with_target(admission: &[&str]) -> (Self, Owned) {
        let herma = Self::proven(5);
        let owned = Owned::new(&herma);
        herma.admit_target(&owned.repository.dir, admission);
        herma.contract(&ON_TARGET);
        (herma, owned)
    }

    /// Admits the repository as `my-repo`, signed by alice.
    pub(crate) fn admit_target(&self, dir: &Path, more: &[&str]) {
        let draft = ["admit", "target", "my-repo", "--path", dir.to_str().unwrap(), "--owner", "me"];
        let why = ["--ownership-evidence", "I made it", "--risk-class", "low_risk_noncritical"];
        let mut options = [&draft[..], &why, &["--rationale", "a test", "--json"], more].concat();
        for otherwise in [["--allowed-path", "**"], ["--review-trigger", "herma_version=0.1"]] {
            if !more.contains(&otherwise[0]) {
                options.extend(otherwise);
            }
        }
        let drafted = self.json(&options);
        let code = &drafted["digest"].as_str().unwrap()["sha256:".len()..][..6];
        let signed = self.run_as("alice", &["admit", "sign", "target", "my-repo", "--code", code]);
        assert_eq!(signed.code, Some(0), "{signed:#?}");
    }

    /// Asks for an approval of the contract and has alice grant it; gives its name.
    pub(crate) fn approve(&self) -> String {
        self.approve_contract(CONTRACT)
    }

    /// The same for a contract in another file.
    pub(crate) fn approve_contract(&self, contract: &str) -> String {
        let asked = self.json(&["approvals", "request", contract, "--reason", "it is time", "--json"]);
        let [id, code] = ["approval_id", "code"].map(|key| asked[key].as_str().unwrap());
        let granted = self.run_as("alice", &["approvals", "grant", id, "--reason", "yes", "--code", code]);
        assert_eq!(granted.code, Some(0), "{granted:#?}");
        id.to_owned()
    }

    /// How an approval stands, and which run has used it.
    pub(crate) fn approval(&self, id: &str) -> (String, Option<RunId>) {
        let shown = self.json(&["approvals", "show", id, "--json"]);
        let run = shown["approval"]["consumed_by"].as_str().map(|run| run.parse().unwrap());
        (shown["state"].as_str().unwrap().to_owned(), run)
    }

    /// Has the contract approved and run with this script.
    pub(crate) fn approve_and_play(&self, script: &str) -> Finished {
        self.approve();
        self.script(script);
        self.finished(&["run", CONTRACT, "--script", "script.yaml"])
    }

    /// Starts the contract with a script that waits, and gives the run once its engine has started.
    pub(crate) fn under_way(&self) -> UnderWay<'_> {
        let before = self.runs();
        let started = self.start(&["run", CONTRACT, "--script", "script.yaml"]);
        let new = || self.runs().into_iter().find(|run| !before.contains(run));
        until("the engine works", || new().is_some_and(|run| self.said(run, "engine.started")));
        UnderWay { herma: self, started, run: new().unwrap() }
    }

    /// Whether the run's log has an event of this type yet.
    pub(crate) fn said(&self, run: RunId, event: &str) -> bool {
        let log = fs::read_to_string(self.bundle(run).dir.join("events.jsonl"));
        log.is_ok_and(|log| log.contains(&format!("\"{event}\"")))
    }
}

/// Neither the bundle nor what the command printed holds the target's path.
pub(crate) fn assert_unplaced(finished: &Finished) {
    assert_unplaced_in(&finished.bundle);
    assert_said_nowhere(&finished.ended);
}

/// No file of the bundle holds the target's path.
pub(crate) fn assert_unplaced_in(bundle: &Bundle) {
    let secret = SECRET_PLACE.as_bytes();
    for (path, (_, bytes)) in everything_below(&bundle.dir) {
        let held = bytes.windows(secret.len()).any(|window| window == secret);
        assert!(!held, "{} holds the target's path: {:#?}", path.display(), bundle.report().blockers);
    }
}

/// A command did not print the target's path.
pub(crate) fn assert_said_nowhere(ended: &Ended) {
    assert!(!format!("{ended:?}").contains(SECRET_PLACE), "{ended:#?}");
}
