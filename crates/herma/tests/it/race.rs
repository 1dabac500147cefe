//! Real `herma run` processes race for one approval: of all that start, one gets it.

use std::time::Duration;

use herma_core::report::ApprovalStatus;
use herma_core::{Blocker, EventType, Report, RunId, Status};

use crate::kit::{
    CONTRACT, Ended, Herma, ON_TARGET, Random, Started, contract_text, fix_and, processes_of, rounds,
};

/// The longest that one waits for the other to start: about as long as a run takes to come to its approval.
const HEAD_START: u64 = 120;

/// A home with a contract of stage 4 and a script that fulfils it.
fn ready() -> Herma {
    let herma = Herma::proven(4);
    herma.contract(&[("stage", "4")]);
    herma.script(&fix_and(&[]));
    herma
}

fn start(herma: &Herma) -> Started {
    herma.start(&["run", CONTRACT, "--script", "script.yaml"])
}

/// The runs that were made since, each with its report; every one is closed and its bundle verifies.
fn new_runs(herma: &Herma, before: &[RunId]) -> Vec<Report> {
    let new = herma.runs().into_iter().filter(|run| !before.contains(run));
    let report = |run| {
        let bundle = herma.bundle(run);
        bundle.assert_whole();
        herma.assert_verifies(&bundle);
        assert_eq!(processes_of(run), [0; 0]);
        bundle.report()
    };
    new.map(report).collect()
}

/// How many of these runs say that they used an approval.
fn consumed(herma: &Herma, runs: &[Report]) -> usize {
    runs.iter().filter(|run| herma.bundle(run.run_id).has_event(EventType::ApprovalConsumed)).count()
}

fn started(runs: &[Report]) -> Vec<RunId> {
    runs.iter().filter(|run| run.engine_started).map(|run| run.run_id).collect()
}

#[test]
fn of_two_runs_that_race_for_an_approval_one_starts_its_engine() {
    let (herma, mut random) = (ready(), Random::new());
    for round in 0..rounds(5) {
        let (approval, before) = (herma.approve(), herma.runs());
        let first = start(&herma);
        std::thread::sleep(Duration::from_millis(random.below(HEAD_START)));
        let second = start(&herma);
        let ended = [first.end(), second.end()];
        let at = || format!("round {round}, seed {}: {ended:#?}", random.seed());
        let runs = new_runs(&herma, &before);
        let mut codes: Vec<_> = ended.iter().map(|ended: &Ended| ended.code).collect();
        codes.sort_unstable();
        assert_eq!(codes, [Some(0), Some(3)], "{}", at());

        let [winner] = started(&runs)[..] else { panic!("{}", at()) };
        assert_eq!(consumed(&herma, &runs), 1, "{}", at());
        assert_eq!(herma.approval(&approval), ("consumed".to_owned(), Some(winner)), "{}", at());
        for run in runs {
            if run.run_id == winner {
                assert_eq!(
                    (run.status, run.approval_status),
                    (Status::Pass, ApprovalStatus::Consumed),
                    "{}",
                    at()
                );
                continue;
            }
            let blockers: Vec<_> = run.blockers.iter().map(|record| record.blocker).collect();
            assert_eq!(blockers, [Blocker::ApprovalAlreadyConsumed], "{}", at());
            assert!(run.blockers[0].detail.contains(&winner.to_string()), "{}", at());
        }
    }
}

#[test]
fn a_racer_that_is_killed_never_lets_a_second_engine_start() {
    let (herma, mut random) = (ready(), Random::new());
    for round in 0..rounds(5) {
        let (approval, before) = (herma.approve(), herma.runs());
        let mut racing = vec![start(&herma), start(&herma)];
        let victim = racing.remove(usize::try_from(random.below(2)).unwrap());
        std::thread::sleep(Duration::from_millis(random.below(700)));
        let killed = victim.kill();
        let other = racing.remove(0).end();
        // The next command closes what was left.
        assert_eq!(herma.run(&["runs"]).code, Some(0));
        let at = || format!("round {round}, seed {}: {killed:#?} {other:#?}", random.seed());
        let (runs, (state, used_by)) = (new_runs(&herma, &before), herma.approval(&approval));
        let engines = started(&runs);
        assert!(engines.len() <= 1, "two engines started for one approval: {}", at());
        assert!(consumed(&herma, &runs) <= 1, "{}", at());
        if let [engine] = engines[..] {
            assert_eq!(consumed(&herma, &runs), 1, "an engine started without an approval: {}", at());
            assert_eq!((state.as_str(), used_by), ("consumed", Some(engine)), "{}", at());
        }
        // The survivor has passed, unless the other one had used the approval, which may itself have passed before it died.
        let survivor: RunId = other.stderr.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert_eq!(other.code, Some(if used_by == Some(survivor) { 0 } else { 3 }), "{}", at());
        assert!(used_by.is_some(), "{}", at());
        assert!(runs.iter().all(|run| run.status != Status::Pass || Some(run.run_id) == used_by), "{}", at());
    }
}

/// The run is killed between the mark that says that it used the approval and the store's row.
#[test]
fn an_approval_whose_run_died_after_its_mark_is_consumed_everywhere() {
    let herma = ready();
    let approval = herma.approve();
    let before = herma.runs();
    let killed =
        herma.run_with_fault("kill-after:approval-mark", &["run", CONTRACT, "--script", "script.yaml"]);
    assert!(killed.was_killed(), "{killed:#?}");
    assert_eq!(herma.run(&["runs"]).code, Some(0));
    let [run] = &new_runs(&herma, &before)[..] else { panic!("expected one run") };
    assert_eq!(herma.approval(&approval), ("consumed".to_owned(), Some(run.run_id)));
    assert_eq!((run.approval_status, run.engine_started), (ApprovalStatus::Consumed, false), "{run:#?}");
    assert_eq!(run.approval_id.map(|id| id.to_string()), Some(approval));
    assert_eq!(consumed(&herma, std::slice::from_ref(run)), 1);
    let again = herma.finished(&["run", CONTRACT, "--script", "script.yaml"]);
    again.assert_only(Blocker::ApprovalAlreadyConsumed);
}

/// A home in which such a run was closed by a herma that did not look at the marks.
#[test]
fn a_mark_that_the_store_never_learned_of_is_seen_by_the_list() {
    let herma = ready();
    let approval = herma.approve();
    let run = RunId::new("2026-01-01T00:00:00Z".parse().unwrap(), [7; 10]);
    let marks = herma.home().join("consumed");
    std::fs::create_dir_all(&marks).unwrap();
    std::fs::write(marks.join(&approval), run.to_string()).unwrap();
    let listed = herma.json(&["approvals", "list", "--all", "--json"]);
    let row = listed["approvals"].as_array().unwrap().iter().find(|row| row["approval_id"] == *approval);
    assert_eq!(row.unwrap()["state"], "consumed", "{listed:#}");
    assert_eq!(herma.approval(&approval), ("consumed".to_owned(), Some(run)));
}

/// Both have an approval of their own, so both may land, if the other has not changed the target meanwhile.
#[test]
fn two_runs_that_land_in_one_target_each_land_whole_or_not_at_all() {
    let ((herma, owned), mut random) = (Herma::with_target(&[]), Random::new());
    let before = owned.picture();
    herma.script(&fix_and(&[]));
    let other = "contracts/other.md";
    herma.file(other, contract_text(&[&ON_TARGET[..], &[("id", "another-slug")]].concat()));
    for round in 0..rounds(4) {
        for contract in [CONTRACT, other] {
            herma.approve_contract(contract);
        }
        let known = herma.runs();
        let first = start(&herma);
        std::thread::sleep(Duration::from_millis(random.below(400)));
        let second = herma.start(&["run", other, "--script", "script.yaml"]);
        let ended = [first.end(), second.end()];
        let at = || format!("round {round}, seed {}: {ended:#?}", random.seed());
        let runs = new_runs(&herma, &known);
        assert_eq!(started(&runs).len(), 2, "{}", at());
        let mut landed: Vec<String> = Vec::new();
        for run in &runs {
            let landing = run.landing.as_ref().filter(|landing| landing.landed);
            assert_eq!(run.status == Status::Pass, landing.is_some(), "{}", at());
            landed.extend(landing.map(|landing| format!("{} {}", landing.reference, landing.commit)));
        }
        let format = "--format=%(refname) %(objectname)";
        let there = owned.repository.git(&["for-each-ref", format, "refs/heads/herma"]);
        landed.sort();
        assert_eq!(there.lines().collect::<Vec<_>>(), landed, "{}", at());
        owned.repository.git(&["fsck", "--full"]);
        for run in runs.iter().filter(|run| run.status == Status::Pass) {
            let id = run.run_id.to_string();
            let rejected = herma.run_as("alice", &["reject", &id, "--reason", "the next one"]);
            assert_eq!(rejected.code, Some(0), "{rejected:#?} {}", at());
        }
        assert!(owned.picture() == before, "{}", at());
    }
}
