//! The kill test for runs that need an approval and land: the target, and how often an approval is used.

use std::time::{Duration, Instant};

use herma_core::report::ApprovalStatus;
use herma_core::{EventType, Report, RunId, Status, Step};

use crate::crash::assert_closed;
use crate::kit::{CONTRACT, Herma, Owned, Random, assert_unplaced_in, fix_and, names, rounds};

/// A script that does the task, and leaves something behind that only a kill ends.
fn script() -> String {
    fix_and(&["- daemon: sleep 1000"])
}

/// The one run that was made since.
fn new_run(herma: &Herma, before: &[RunId]) -> RunId {
    let new: Vec<RunId> = herma.runs().into_iter().filter(|run| !before.contains(run)).collect();
    let [run] = new[..] else { panic!("{new:?}") };
    run
}

/// Kills the contract's run at every step. `look` sees each that was closed, and leaves everything ready for the next.
fn kill_at_every_step(herma: &Herma, look: impl Fn(Step, &Report)) {
    herma.script(&script());
    let mut approval = herma.approve();
    for step in Step::ALL {
        let before = herma.runs();
        let ended =
            herma.run_with_fault(&format!("kill:{step}"), &["run", CONTRACT, "--script", "script.yaml"]);
        assert!(ended.was_killed(), "{step}: {ended:#?}");
        let next = herma.run(&["runs"]);
        assert_eq!(next.code, Some(0), "{step}: {next:#?}");
        let run = new_run(herma, &before);
        assert_closed(herma, run, step);
        herma.assert_only_the_bundle_is_left(run);
        let (bundle, report) = (herma.bundle(run), herma.bundle(run).report());
        assert_unplaced_in(&bundle);

        // The approval is used just before the workspace is made. Up to there it stays for the next run.
        let used = bundle.has_event(EventType::ApprovalConsumed);
        assert_eq!(used, step > Step::Probe, "{step}");
        let stands = herma.approval(&approval);
        assert_eq!(
            stands,
            if used { ("consumed".into(), Some(run)) } else { ("granted".into(), None) },
            "{step}"
        );
        assert_eq!(used, report.approval_status == ApprovalStatus::Consumed, "{step}: {report:#?}");
        if used {
            approval = herma.approve();
        }
        let landed = report.landing.as_ref().is_some_and(|landing| landing.landed);
        assert_eq!(landed, report.status == Status::Pass, "{step}: {report:#?}");
        look(step, &report);
    }
    // Nothing that was left speaks against the next run.
    herma.finished(&["run", CONTRACT, "--script", "script.yaml"]).assert_pass();
}

#[test]
fn a_run_in_a_disposable_repository_is_closed_after_a_kill_at_any_step() {
    let herma = Herma::proven(4);
    herma.contract(&[("stage", "4")]);
    kill_at_every_step(&herma, |_, _| {});
}

#[test]
fn a_run_that_lands_in_a_target_is_closed_after_a_kill_at_any_step() {
    let (herma, owned) = Herma::with_target(&[]);
    let before = owned.picture();
    kill_at_every_step(&herma, |step, report| {
        assert_in_target(&owned, report, &step.to_string());
        if report.status == Status::Pass {
            let run = report.run_id.to_string();
            let rejected = herma.run_as("alice", &["reject", &run, "--reason", "the next one"]);
            assert_eq!(rejected.code, Some(0), "{rejected:#?}");
        }
        assert!(owned.picture() == before, "{step}: the target is not as before");
    });
}

/// The target holds the one commit of a pass, and of anything else nothing at all.
fn assert_in_target(owned: &Owned, report: &Report, at: &str) {
    let format = "--format=%(refname) %(objectname)";
    let there = owned.repository.git(&["for-each-ref", format, "refs/heads/herma"]);
    let expected = match (&report.landing, report.status) {
        (Some(landing), Status::Pass) => format!("{} {}\n", landing.reference, landing.commit),
        _ => String::new(),
    };
    assert_eq!(there, expected, "{at}");
    let litter: Vec<String> = names(&owned.repository.dir.join(".git/objects/pack"))
        .into_iter()
        .filter(|name| name.starts_with("tmp"))
        .collect();
    assert_eq!(litter, [""; 0], "{at}");
    owned.repository.git(&["fsck", "--full"]);
}

/// Waits for a moment that is too short for a poll with pauses.
fn spin(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// Somebody's lock holds git up after the pack came and before the ref is made, and herma dies there.
#[test]
fn a_pack_whose_ref_was_never_made_is_taken_out_again() {
    let (herma, owned) = Herma::with_target(&[]);
    // So long git waits for somebody else's lock.
    owned.repository.git(&["config", "core.filesRefLockTimeout", "5000"]);
    let before = owned.picture();
    let packs = owned.repository.dir.join(".git/objects/pack");
    let known = names(&packs);
    herma.script(&fix_and(&[]));
    herma.approve();
    let proven = herma.runs();
    let started = herma.start(&["run", CONTRACT, "--script", "script.yaml"]);
    let run = landing(&herma, &proven);
    let lock = owned.repository.dir.join(format!(".git/refs/heads/herma/{run}.lock"));
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    std::fs::write(&lock, "").unwrap();
    let index = |name: &String| name.starts_with("pack-") && name.ends_with("idx");
    spin("the pack", || names(&packs).iter().any(|name| index(name) && !known.contains(name)));
    assert!(started.kill().was_killed());
    let reference = lock.with_extension("");
    assert!(!reference.exists(), "the lock came too late for this test");
    assert_eq!(herma.run(&["runs"]).code, Some(0));
    assert_closed(&herma, run, Step::Land);
    assert_eq!(names(&packs), known, "the pack is there, and no ref names it");

    // The git that herma started has outlived it, and goes on when the lock is gone.
    std::fs::remove_file(&lock).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert_in_target(&owned, &herma.bundle(run).report(), "after the lock");
    let _ = std::fs::remove_dir(lock.parent().unwrap());
    assert!(owned.picture() == before, "the target is not as before");
}

/// Waits until a run that was not there before lands.
fn landing(herma: &Herma, before: &[RunId]) -> RunId {
    let mut found = None;
    spin("the landing", || {
        let new = herma.runs().into_iter().find(|run| !before.contains(run));
        found = new.filter(|run| {
            let trace = std::fs::read_to_string(herma.bundle(*run).dir.join("trace.jsonl"));
            trace.is_ok_and(|trace| trace.contains("\"land\""))
        });
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn a_kill_at_any_moment_of_the_landing_leaves_all_or_nothing() {
    let ((herma, owned), mut random) = (Herma::with_target(&[]), Random::new());
    let before = owned.picture();
    herma.script(&fix_and(&[]));
    for round in 0..rounds(6) {
        let (runs, approval) = (herma.runs(), herma.approve());
        let started = herma.start(&["run", CONTRACT, "--script", "script.yaml"]);
        let run = landing(&herma, &runs);
        let delay = random.below(160);
        std::thread::sleep(Duration::from_millis(delay));
        let ended = started.kill();
        assert_eq!(herma.run(&["runs"]).code, Some(0));
        let at = format!("round {round}, {delay} ms, seed {}", random.seed());
        let (bundle, report) = (herma.bundle(run), herma.bundle(run).report());
        herma.assert_verifies(&bundle);
        herma.assert_only_the_bundle_is_left(run);
        assert!(ended.was_killed() || report.status == Status::Pass, "{at}: {ended:#?}");
        assert_eq!(herma.approval(&approval), ("consumed".into(), Some(run)), "{at}");
        assert_in_target(&owned, &report, &at);
        if report.status == Status::Pass {
            let rejected = herma.run_as("alice", &["reject", &run.to_string(), "--reason", "the next one"]);
            assert_eq!(rejected.code, Some(0), "{at}: {rejected:#?}");
        }
        assert!(owned.picture() == before, "{at}: the target is not as before");
    }
}
