//! Steps of the wall clock, and their effect on runs, approvals and lists. The machine's own clock is left alone.

#[path = "../clock/test_clock.rs"]
mod test_clock;

use herma_core::report::ApprovalStatus;
use herma_core::{Blocker, EventType, Status};
use herma_evidence::layout;

use self::test_clock::TestClock;
use crate::kit::{CONTRACT, Herma, contract_text, fix_and, until};

const HOUR_MS: i64 = 3_600_000;

/// A home whose herma has a wall clock of the test's own.
fn with_clock(mut herma: Herma) -> (Herma, TestClock) {
    let clock = TestClock::new(herma.at("clock"));
    for (name, value) in clock.variables() {
        herma.set(name, value);
    }
    (herma, clock)
}

/// The clock steps while the engine works.
fn steps_during_a_run(offset_ms: i64) {
    let (herma, clock) = with_clock(Herma::new());
    herma.contract(&[]);
    herma.script(&fix_and(&["- sleep: 1s"]));
    let finished = herma.finished_by(|| {
        let run = herma.start(&["run", CONTRACT, "--json", "--script", "script.yaml"]);
        until("the engine starts", || {
            let bundles = herma.runs().into_iter().map(|run| herma.bundle(run).dir.join(layout::EVENTS));
            let started = |log: String| log.contains(EventType::EngineStarted.as_str());
            bundles.into_iter().any(|log| std::fs::read_to_string(log).is_ok_and(started))
        });
        clock.set_ms(offset_ms);
        run.end()
    });
    finished.assert_pass();
    let report = &finished.report;
    assert!(report.freshness.passed, "{report:#?}");
    let took = report.run_finished_at.duration_since(report.run_started_at);
    assert!(took.as_secs() < 600, "the step is not in the run's times: {report:#?}");
}

#[test]
fn a_clock_that_steps_back_during_a_run_leaves_a_pass_that_verifies() {
    steps_during_a_run(-HOUR_MS);
}

#[test]
fn a_clock_that_steps_ahead_during_a_run_leaves_a_pass_that_verifies() {
    steps_during_a_run(HOUR_MS);
}

#[test]
fn a_run_that_a_herma_with_a_clock_behind_closes_verifies() {
    for step in ["engine", "verify", "report", "attest"] {
        let (herma, clock) = with_clock(Herma::new());
        let killed = herma.run_with_fault(&format!("kill:{step}"), &["demo"]);
        assert!(killed.was_killed(), "{killed:#?}");
        clock.set_ms(-HOUR_MS);
        assert_eq!(herma.run(&["runs"]).code, Some(0));
        let [run] = herma.runs()[..] else { panic!("{:?}", herma.runs()) };
        let bundle = herma.bundle(run);
        bundle.assert_whole();
        herma.assert_verifies(&bundle);
        let report = bundle.report();
        assert_eq!(report.blockers[0].blocker, Blocker::Interrupted, "{step}: {report:#?}");
        assert!(report.run_started_at <= report.run_finished_at, "{step}: {report:#?}");
    }
}

#[test]
fn a_run_from_a_clock_ahead_does_not_stay_the_last() {
    let (herma, clock) = with_clock(Herma::new());
    clock.set_ms(HOUR_MS);
    let ahead = herma.demo(&[]).report.run_id;
    clock.set_ms(0);
    let newest = herma.demo(&[]).report.run_id;
    assert!(newest < ahead, "the names sort by the clock");
    let shown = herma.json(&["show", "last", "--json"]);
    assert!(shown.to_string().contains(&newest.to_string()), "{shown:#}");
    let listed = herma.json(&["runs", "--all", "--json"]);
    let listed: Vec<_> = listed["runs"].as_array().unwrap().iter().map(|run| run["run_id"].clone()).collect();
    assert_eq!(listed, [newest.to_string(), ahead.to_string()]);
    let earlier = herma.json(&["runs", "--all", "--json", "--before", &newest.to_string()]);
    assert_eq!(earlier["runs"][0]["run_id"], ahead.to_string(), "{earlier:#}");
}

/// The approval of a run, as its report shows it.
fn at_the_gate(herma: &Herma) -> (Blocker, String) {
    let run = herma.finished(&["run", CONTRACT, "--json", "--script", "script.yaml"]);
    let about =
        |record: &&herma_core::blocker::BlockerRecord| record.blocker.as_str().starts_with("approval_");
    let record = run.report.blockers.iter().find(about);
    let record = record.unwrap_or_else(|| panic!("{:#?}", run.report));
    (record.blocker, record.detail.clone())
}

#[test]
fn an_approval_is_good_only_at_or_after_its_request_and_its_grant() {
    let (herma, clock) = with_clock(Herma::proven(4));
    herma.file(CONTRACT, contract_text(&[("stage", "4")]));
    herma.script(&fix_and(&[]));
    let asked = herma.json(&["approvals", "request", CONTRACT, "--reason", "it is time", "--json"]);
    let (id, code) = (asked["approval_id"].as_str().unwrap(), asked["code"].as_str().unwrap());
    let grant = ["approvals", "grant", id, "--reason", "I read it", "--code", code];

    clock.set_ms(-HOUR_MS);
    let early = herma.run_as("alice", &grant);
    assert_eq!(early.code, Some(3), "{early:#?}");
    assert!(early.stderr.contains("nobody rules on what is still to come"), "{early:#?}");

    clock.set_ms(60_000);
    assert_eq!(herma.run_as("alice", &grant).code, Some(0));
    for offset in [0, -HOUR_MS] {
        clock.set_ms(offset);
        let (blocker, detail) = at_the_gate(&herma);
        assert_eq!(blocker, Blocker::ApprovalVoid, "{detail}");
        assert!(detail.contains("and the clock says"), "{detail}");
    }
    clock.set_ms(120_000);
    let run = herma.finished(&["run", CONTRACT, "--json", "--script", "script.yaml"]);
    assert_eq!(run.report.status, Status::Pass, "{:#?}", run.report);
    assert_eq!(run.report.approval_status, ApprovalStatus::Consumed);
}
