//! The kill test: herma dies by SIGKILL at every step, and the next command leaves everything closed.

use std::ffi::OsString;

use herma_core::{Blocker, RunId, Status, Step};

use crate::kit::{Herma, ON_REPOSITORY, Repository, everything_below, fix_and, processes_of, until};

/// Where the run takes place, and on what.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scene {
    Sandbox,
    Host,
    Repository,
}

impl Scene {
    /// The arguments of a run whose engine fixes the bug, with something left behind that only a kill ends.
    fn args(self, herma: &Herma) -> Vec<OsString> {
        let destination = if self == Self::Host { "host" } else { "sandbox" };
        let mut terms = vec![("destination", destination)];
        if self == Self::Repository {
            terms.extend(ON_REPOSITORY);
        }
        let contract = herma.contract(&terms);
        let script = herma.script(&fix_and(&["- daemon: sleep 1000"]));
        vec!["run".into(), contract.into(), "--script".into(), script.into()]
    }
}

fn kill_at_every_step(scene: Scene) {
    // A run that changes only a copy lands nowhere.
    for step in Step::ALL.into_iter().filter(|step| *step != Step::Land) {
        kill_at(scene, step, false);
    }
}

#[test]
fn a_run_in_the_sandbox_is_closed_after_a_kill_at_any_step() {
    kill_at_every_step(Scene::Sandbox);
}

#[test]
fn a_run_on_the_host_is_closed_after_a_kill_at_any_step() {
    kill_at_every_step(Scene::Host);
}

#[test]
fn a_run_on_a_repository_is_closed_after_a_kill_at_any_step() {
    kill_at_every_step(Scene::Repository);
}

#[test]
fn a_workspace_that_is_to_be_kept_is_kept_after_a_kill_if_it_was_used() {
    for step in [Step::Workspace, Step::Engine, Step::Verify, Step::Close] {
        kill_at(Scene::Sandbox, step, true);
    }
}

fn kill_at(scene: Scene, step: Step, keep: bool) {
    let herma = Herma::new();
    let repository = (scene == Scene::Repository).then(|| Repository::of_fixture(&herma, "string-slugify"));
    let before = repository.as_ref().map(Repository::picture);
    let mut args = scene.args(&herma);
    args.extend(keep.then(|| "--keep-workspace".into()));

    let ended = herma.run_with_fault(&format!("kill:{step}"), &args);
    assert!(ended.was_killed(), "{scene:?} {step}: {ended:#?}");
    assert_eq!(herma.active().len(), 1, "{scene:?} {step}");

    let listed = herma.json(&["runs", "--all", "--json"]);
    let [run] = herma.runs()[..] else { panic!("{scene:?} {step}: {:?}", herma.runs()) };
    assert_closed(&herma, run, step);
    assert_eq!(listed["runs"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["runs"][0]["run_id"], run.to_string());
    assert_eq!(listed["runs"][0]["status"], herma.bundle(run).report().status.as_str());
    let dir = herma.home().join("runs").join(run.to_string());
    if keep && step > Step::Workspace {
        assert_eq!(crate::kit::names(&dir), ["bundle", "workspace"], "{scene:?} {step}");
    } else if matches!(step, Step::Collect | Step::Check) {
        // The agent has changed files, and no patch has them yet.
        assert_eq!(crate::kit::names(&dir), ["bundle", "session", "workspace"], "{scene:?} {step}");
    } else {
        herma.assert_only_the_bundle_is_left(run);
    }
    assert_eq!(repository.as_ref().map(Repository::picture), before, "{scene:?} {step}: the target changed");

    let closed = everything_below(&dir);
    assert_eq!(herma.json(&["runs", "--all", "--json"]), listed, "{scene:?} {step}");
    assert_eq!(everything_below(&dir), closed, "{scene:?} {step}: a second command changed something");
}

/// The run is closed: as interrupted, or with its real verdict where the attestation was there already.
pub(crate) fn assert_closed(herma: &Herma, run: RunId, step: Step) {
    let bundle = herma.bundle(run);
    let report = bundle.report();
    if step == Step::Close {
        assert_eq!(report.status, Status::Pass, "{report:#?}");
    } else {
        assert_eq!(report.status, Status::Blocked, "{step}: {report:#?}");
        assert!(report.blockers.iter().any(|b| b.blocker == Blocker::Interrupted), "{step}: {report:#?}");
    }
    bundle.assert_whole();
    herma.assert_verifies(&bundle);
    assert_eq!(herma.active(), [""; 0], "{step}");
    assert_eq!(processes_of(run), [0; 0], "{step}: a process of the run is alive");
}

#[test]
fn a_daemon_of_a_killed_run_is_dead_after_the_next_command() {
    for destination in ["host", "sandbox"] {
        let herma = Herma::new();
        let contract = herma.contract(&[("destination", destination)]);
        let script = herma.script("steps: [{ daemon: sleep 1000 }, { sleep: 10m }]");
        let args = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
        let started = herma.start(&args);
        until("the engine works", || herma.runs().iter().any(|run| herma.said(*run, "engine.started")));
        let run = herma.runs()[0];
        until("the engine has a process", || !processes_of(run).is_empty());
        assert!(started.kill().was_killed());
        assert_eq!(herma.run(&["runs"]).code, Some(0));
        assert_closed(&herma, run, Step::Engine);
    }
}

#[test]
fn a_run_that_cannot_be_closed_keeps_no_other_open() {
    let herma = Herma::new();
    let contract = herma.contract(&[("destination", "host")]);
    let script = herma.script("steps: [{ sleep: 10m }]");
    let args = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
    let started = [herma.start(&args), herma.start(&args)];
    until("both engines work", || {
        herma.runs().iter().filter(|run| herma.said(**run, "engine.started")).count() == 2
    });
    for herma in started {
        assert!(herma.kill().was_killed());
    }
    let mut runs = herma.runs();
    runs.sort();
    let [older, newer] = runs[..] else { panic!("{runs:?}") };
    let bundle = herma.bundle(newer).dir;
    std::fs::remove_dir_all(&bundle).unwrap();
    std::fs::write(&bundle, "no place for a bundle").unwrap();

    let refused = herma.run(&["runs"]);
    assert_eq!(refused.code, Some(4), "{refused:#?}");
    assert_eq!(herma.active(), [newer.to_string()]);
    let bundle = herma.bundle(older);
    assert_eq!(bundle.report().blockers[0].blocker, Blocker::Interrupted);
    herma.assert_verifies(&bundle);
}

#[test]
fn a_run_under_way_is_not_touched_by_another_command() {
    let herma = Herma::new();
    let contract = herma.contract(&[]);
    let script =
        herma.script(&fix_and(&["- shell: 'while [ ! -e tests/go ]; do sleep 0.05; done; rm tests/go'"]));
    let mut started =
        herma.start(&["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()]);
    until("the engine works", || herma.runs().iter().any(|run| herma.said(*run, "engine.started")));
    let run = herma.runs()[0];
    let listed = herma.json(&["runs", "--all", "--json"]);
    assert_eq!(listed["runs"][0]["status"], serde_json::Value::Null);
    assert_eq!(herma.active(), [run.to_string()]);
    for command in [&["verify", "last"][..], &["show", "last"]] {
        let unfinished = herma.run(command);
        assert_eq!((unfinished.code, unfinished.stdout.as_str()), (Some(2), ""), "{unfinished:#?}");
        assert!(unfinished.stderr.contains("still under way"), "{unfinished:#?}");
    }
    // By its directory nobody asks whose it is.
    let bundle = herma.bundle(run).dir;
    let unfinished = herma.run(&["verify".as_ref(), bundle.as_os_str()]);
    assert_eq!(unfinished.code, Some(1), "{unfinished:#?}");
    assert!(unfinished.stdout.contains("the run is not finished"), "{unfinished:#?}");
    assert!(!unfinished.stdout.contains("BROKEN"), "{unfinished:#?}");
    assert!(started.is_alive());
    let workspace = herma.home().join("runs").join(run.to_string()).join("workspace");
    std::fs::write(workspace.join("tests/go"), "").unwrap();
    let ended = started.end();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert_eq!(herma.bundle(run).report().status, Status::Pass);
}

#[test]
fn of_two_commands_that_find_the_same_orphan_one_closes_it_and_both_go_on() {
    for round in 0..6 {
        let herma = Herma::new();
        let killed = herma.run_with_fault("kill:verify", &["demo"]);
        assert!(killed.was_killed(), "{killed:#?}");
        let racing: Vec<_> = (0..4).map(|_| herma.start(&["runs"])).collect();
        let ended: Vec<_> = racing.into_iter().map(crate::kit::Started::end).collect();
        assert!(ended.iter().all(|ended| ended.code == Some(0)), "round {round}: {ended:#?}");
        let closers = ended.iter().filter(|ended| ended.stderr.contains("it is closed as blocked")).count();
        assert_eq!(closers, 1, "round {round}: {ended:#?}");
        assert_closed(&herma, herma.runs()[0], Step::Verify);
    }
}

#[test]
fn a_recovery_that_is_killed_itself_is_taken_up_by_the_next() {
    for delay in [0, 10, 20, 30, 40, 60, 80, 120] {
        let herma = Herma::new();
        assert!(herma.run_with_fault("kill:verify", &["demo", "--destination", "host"]).was_killed());
        let recovery = herma.start(&["runs"]);
        std::thread::sleep(std::time::Duration::from_millis(delay));
        recovery.kill();
        let ended = herma.run(&["runs"]);
        assert_eq!(ended.code, Some(0), "after {delay} ms: {ended:#?}");
        assert_closed(&herma, herma.runs()[0], Step::Verify);
    }
}
