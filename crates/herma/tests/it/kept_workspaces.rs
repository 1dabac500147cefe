//! A run that is interrupted after its agent changed files keeps its workspace until a person discards it, and a later run starts from it.

use std::fs;
use std::path::{Path, PathBuf};

use herma_core::report::PathRule;
use herma_core::{Blocker, EventType, RunId};
use rustix::process::Signal;
use serde_json::Value;

use crate::kit::{Ended, Finished, HOLD, Herma, ON_REPOSITORY, Repository, fix_and, names, until};

/// A script that does nothing more.
const GOES_ON: &str = "steps: [{ say: the rest was done already }]";

/// How the run is interrupted.
#[derive(Clone, Copy, Debug)]
enum Interruption {
    Signal,
    Kill,
}

/// A run that was interrupted while its agent worked, after it had fixed the bug.
struct Interrupted {
    herma: Herma,
    repository: Repository,
    run: RunId,
    ended: Ended,
}

impl Interrupted {
    fn by(interruption: Interruption, steps: &[&str]) -> Self {
        let herma = Herma::new();
        let repository = Repository::of_fixture(&herma, "string-slugify");
        let contract = herma.contract(&ON_REPOSITORY);
        let steps =
            [steps, &["- shell: touch tests/.begun && mv tests/.begun tests/begun", "- sleep: 10m"]].concat();
        let script = herma.script(&fix_and(&steps));
        let args = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
        let started = herma.start(&args);
        let begun = |run: &RunId| dir_of(&herma, *run).join("workspace/tests/begun").exists();
        until("the agent has changed files", || herma.runs().iter().any(begun));
        let run = herma.runs()[0];
        let ended = match interruption {
            Interruption::Signal => {
                started.signal(Signal::INT);
                started.end()
            }
            Interruption::Kill => {
                assert!(started.kill().was_killed());
                herma.run(&["runs"])
            }
        };
        herma.file("goes-on.yaml", GOES_ON);
        Self { herma, repository, run, ended }
    }

    fn dir(&self) -> PathBuf {
        dir_of(&self.herma, self.run)
    }

    /// Resumes from the kept workspace.
    fn resume(&self) -> Finished {
        let (run, script) = (self.run.to_string(), self.herma.at("goes-on.yaml"));
        let script = script.to_str().unwrap();
        self.herma.finished(&["resume", &run, "--from-workspace", "--script", script])
    }
}

fn dir_of(herma: &Herma, run: RunId) -> PathBuf {
    herma.home().join("runs").join(run.to_string())
}

fn prepared(finished: &Finished) -> Value {
    let events = finished.bundle.events();
    let event = events.iter().find(|event| event.kind == EventType::WorkspacePrepared).unwrap();
    event.data["resumed"].clone()
}

#[test]
fn the_workspace_of_an_interrupted_run_is_kept_and_a_later_run_starts_from_it() {
    for interruption in [Interruption::Signal, Interruption::Kill] {
        let scene = Interrupted::by(interruption, &[]);
        let Interrupted { herma, run, .. } = &scene;
        assert_eq!(
            names(&scene.dir()),
            ["bundle", "session", "workspace"],
            "{interruption:?} {:?} {:#?}",
            scene.ended,
            herma.bundle(*run).report().blockers
        );
        let bundle = herma.bundle(*run);
        herma.assert_verifies(&bundle);
        let report = bundle.report();
        let short = run.short();
        let step = &report.blockers[0].next_step;
        assert_eq!(report.blockers[0].blocker, Blocker::Interrupted);
        assert!(step.contains(&format!("`herma resume {short} --from-workspace`")), "{step}");
        assert!(step.contains(&format!("`herma discard {short}`")), "{step}");
        if matches!(interruption, Interruption::Signal) {
            assert!(scene.ended.stdout.contains("herma resume"), "{:#?}", scene.ended);
        }

        let id = run.to_string();
        let unsaid = herma.run(&["resume", &id, "--script", "goes-on.yaml"]);
        assert_eq!(unsaid.code, Some(2), "{unsaid:#?}");
        assert!(unsaid.stderr.contains("keeps the workspace in which it was interrupted"), "{unsaid:#?}");
        assert!(unsaid.stderr.contains("`--from-workspace`"), "{unsaid:#?}");

        let resumed = scene.resume();
        resumed.assert_pass();
        assert_eq!(resumed.report.parent_run, Some(*run));
        assert_eq!(resumed.changed(), ["slugify.sh", "tests/begun"]);
        let told = prepared(&resumed);
        assert_eq!(told["run"], id);
        assert_eq!(told["start_tree"], resumed.report.result_tree.clone().unwrap());
        assert!(told["kept_workspace"].as_str().unwrap().starts_with("sha256:"), "{told}");
        assert!(told.get("session").is_none(), "{told}");
        assert!(scene.dir().join("workspace").is_dir(), "it stays until it is discarded");

        // At a terminal a person is asked.
        let script = herma.at("goes-on.yaml");
        let args = ["resume", &id, "--script", script.to_str().unwrap()];
        let asked = herma.finished_by(|| herma.run_typing("yes", &args));
        asked.assert_pass();
        assert!(asked.ended.stderr.contains("Start from it?"), "{asked:#?}");
        let declined = herma.run_typing("no", &args);
        assert!(declined.stderr.contains("the engine `fake` cannot continue a session"), "{declined:#?}");
    }
}

#[test]
fn discarding_deletes_workspace_and_session_and_the_bundle_stays() {
    let scene = Interrupted::by(Interruption::Signal, &[]);
    let (herma, id) = (&scene.herma, scene.run.to_string());
    let inside = {
        let mut inside = herma.twin();
        inside.set("HERMA_RUN", &id);
        inside.run(&["discard", &id])
    };
    assert_eq!(inside.code, Some(3), "{inside:#?}");
    assert!(scene.dir().join("workspace").is_dir());

    let discarded = herma.json(&["discard", &id, "--json"]);
    assert_eq!(discarded["removed"], serde_json::json!(["workspace", "session"]));
    assert_eq!(names(&scene.dir()), ["bundle", "discarded.json"]);
    herma.assert_verifies(&herma.bundle(scene.run));
    assert_eq!(herma.run(&["show", &id]).code, Some(0));
    for command in [&["discard", &id][..], &["resume", &id, "--from-workspace", "--script", "goes-on.yaml"]] {
        let refused = herma.run(command);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        assert!(refused.stderr.contains("discarded on 2"), "{refused:#?}");
    }
    let nothing = herma.demo(&[]).report.run_id.to_string();
    let refused = herma.run(&["discard", &nothing]);
    assert!(refused.stderr.contains("keeps no workspace and no session"), "{refused:#?}");
}

#[test]
fn a_run_under_way_is_not_discarded() {
    let herma = Herma::new();
    let contract = herma.contract(&[]);
    let script = herma.script("steps: [{ say: hello }, { sleep: 10m }]");
    let args = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
    let started = herma.start(&args);
    until("the engine works", || herma.runs().iter().any(|run| herma.said(*run, "engine.started")));
    let refused = herma.run(&["discard", "last"]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("is still under way"), "{refused:#?}");
    started.kill();
}

/// Another process of the same user may have written there since.
#[test]
fn a_kept_workspace_is_judged_like_the_result_of_an_agent() {
    let scene = Interrupted::by(Interruption::Signal, &[]);
    let workspace = scene.dir().join("workspace");
    let blocked = |why: &str| {
        let finished = scene.resume();
        finished.assert_only(Blocker::DirtyStartingTree);
        let detail = &finished.report.blockers[0].detail;
        assert!(detail.contains(why) && !finished.report.engine_started, "{why}: {detail}");
    };
    fs::write(workspace.join("extra.md"), "outside of the allowed paths\n").unwrap();
    scene.resume().assert_disallowed(&[("extra.md", PathRule::NotAllowed)]);
    fs::remove_file(workspace.join("extra.md")).unwrap();
    std::os::unix::fs::symlink("/etc", workspace.join("tests/etc")).unwrap();
    scene.resume().assert_disallowed(&[("tests/etc", PathRule::SymlinkEscape)]);
    fs::remove_file(workspace.join("tests/etc")).unwrap();

    let fifo = workspace.join("tests/fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    blocked("`tests/fifo` in it is a FIFO");
    fs::remove_file(fifo).unwrap();
    fs::create_dir_all(workspace.join("tests/sub/.git/objects")).unwrap();
    fs::write(workspace.join("tests/sub/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    blocked("is a nested repository");
    fs::remove_dir_all(workspace.join("tests/sub")).unwrap();
    scene.resume().assert_pass();

    fs::write(scene.repository.dir.join("slugify.sh"), "slugify() { echo another; }\n").unwrap();
    scene.repository.commit("another base");
    blocked("the target's base is another one now");
}

#[test]
fn only_work_that_no_patch_has_is_kept() {
    // The agent changed nothing.
    let herma = Herma::new();
    let contract = herma.contract(&[]);
    let script = herma.script("steps: [{ say: hello }, { sleep: 10m }]");
    let args = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
    let started = herma.start(&args);
    until("the engine works", || herma.runs().iter().any(|run| herma.said(*run, "engine.started")));
    started.signal(Signal::INT);
    started.end();
    let run = herma.runs()[0];
    herma.assert_only_the_bundle_is_left(run);
    let report = herma.bundle(run).report();
    assert_eq!(report.blockers[0].next_step, "Run the contract again.");
    // A directory that is there for another reason is no kept workspace.
    let finished = herma.run(&["demo", "--json"]);
    let run = finished.json()["run_id"].as_str().unwrap().to_owned();
    fs::create_dir(Path::new(&herma.home().join("runs").join(&run)).join("workspace")).unwrap();
    herma.file("goes-on.yaml", GOES_ON);
    let refused = herma.run(&["resume", &run, "--from-workspace", "--script", "goes-on.yaml"]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("keeps no workspace"), "{refused:#?}");
}

#[test]
fn what_a_run_under_way_starts_from_is_not_removed() {
    let scene = Interrupted::by(Interruption::Signal, &[]);
    let (herma, id) = (&scene.herma, scene.run.to_string());
    herma.file("waits.yaml", format!("steps:\n  {HOLD}\n"));
    let started = herma.start(&["resume", &id, "--from-workspace", "--script", "waits.yaml"]);
    let works = |run: &RunId| *run != scene.run && herma.said(*run, "engine.started");
    until("the engine works", || herma.runs().iter().any(works));
    let resumed = herma.runs().into_iter().find(works).unwrap();
    let refused = herma.run(&["discard", &id]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("a run that is under way starts from run"), "{refused:#?}");
    let all = ["gc", "--older-than", "0s", "--bundles-older-than", "0s", "--yes", "--json"];
    let done = herma.json(&all);
    assert_eq!((&done["workspaces"], &done["bundles"]), (&Value::from([0; 0]), &Value::from([0; 0])));
    let because = done["kept_bundles"][0]["because"].as_array().unwrap();
    assert!(because.contains(&"a run under way".into()), "{done:#}");
    assert!(scene.dir().join("workspace").is_dir() && herma.bundle(scene.run).dir.is_dir());
    fs::write(dir_of(herma, resumed).join("workspace/tests/go"), "").unwrap();
    assert_eq!(started.end().code, Some(0));
    herma.assert_verifies(&herma.bundle(resumed));
    // Afterwards the workspace goes.
    assert_eq!(herma.json(&all)["workspaces"].as_array().unwrap().len(), 1);
}
