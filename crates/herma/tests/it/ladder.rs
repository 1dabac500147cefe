//! The proof ladder, from outside, with the engine `stub`: what a run lacks, what a proof holds, and what takes it away.

mod default;
mod gates;
mod identity;
mod killed;
mod people;
mod proving;
mod records;
mod stale;
mod table;
mod tampered;

use std::collections::BTreeMap;

use herma_core::decision::Decision;
use herma_core::proof::Proof;
use herma_core::{Blocker, Gate, RunId};
use serde_json::Value;

use crate::kit::{Ended, Finished, Herma, names};

/// A run of `stub` on the fixture's contract with these terms.
fn run_stub(herma: &Herma, terms: &[(&str, &str)]) -> Finished {
    let contract = herma.contract(terms);
    herma.finished(&["run", contract.to_str().unwrap(), "--engine", "stub", "--json"])
}

fn decision(run: &Finished) -> Decision {
    serde_json::from_str(&run.bundle.text("decision.json")).unwrap()
}

/// The gates that do not hold, in order, and what each says.
fn missing(run: &Finished) -> Vec<(Gate, String)> {
    decision(run).missing_gates.into_iter().map(|missing| (missing.gate, missing.reason)).collect()
}

fn blockers(run: &Finished) -> Vec<Blocker> {
    run.report.blockers.iter().map(|record| record.blocker).collect()
}

/// The run was blocked before anything was made for it.
fn assert_never_began(run: &Finished) {
    assert_eq!(run.ended.code, Some(3), "{:#?}", run.ended);
    assert!(!run.report.engine_started, "{:#?}", run.report);
    let trace = run.bundle.text("trace.jsonl");
    let step = |line: &str| serde_json::from_str::<Value>(line).unwrap()["step"].as_str().unwrap().to_owned();
    let steps: Vec<String> = trace.lines().map(step).collect();
    assert_eq!(steps, ["start", "gates", "report"], "no workspace and nothing else was made");
}

/// The output of `herma prove --json`.
fn proof(proven: &Ended) -> Proof {
    serde_json::from_str(&proven.stdout).unwrap_or_else(|error| panic!("{error}: {proven:#?}"))
}

/// `herma ladder`: the state of each stage of `stub` and what it says.
fn rungs(herma: &Herma) -> BTreeMap<u64, (String, String)> {
    let shown = herma.json(&["ladder", "--engine", "stub", "--json"]);
    assert_eq!(shown["schema"], "herma.ladder/v1");
    let text = |rung: &Value, key: &str| rung[key].as_str().unwrap().to_owned();
    let rungs = shown["rungs"].as_array().unwrap().iter();
    rungs.map(|rung| (rung["stage"].as_u64().unwrap(), (text(rung, "state"), text(rung, "detail")))).collect()
}

/// The states alone, from stage 1 on.
fn states(herma: &Herma) -> Vec<String> {
    rungs(herma).into_values().map(|(state, _)| state).collect()
}

/// The proof in the home.
fn kept(herma: &Herma, stage: u8) -> Proof {
    let bytes = std::fs::read(herma.proof("stub", stage)).unwrap();
    let signed: herma_core::signed::Signed<Proof> = serde_json::from_slice(&bytes).unwrap();
    signed.record
}

/// Nothing of a proof's ground is left: no repository and no admission of one.
fn assert_no_ground(herma: &Herma) {
    assert_eq!(names(&herma.home().join("proving")), [""; 0]);
    let listed = herma.json(&["admissions", "list", "--json"]);
    let rows = listed["admissions"].as_array().unwrap();
    assert!(rows.iter().all(|row| !row["name"].as_str().unwrap().starts_with("proving-")), "{listed:#}");
}

/// Every run has its whole bundle, which verifies, and nothing is under way.
fn assert_all_closed(herma: &Herma, runs: &[RunId]) {
    assert_eq!(herma.active(), [""; 0]);
    for run in runs {
        let bundle = herma.bundle(*run);
        bundle.assert_whole();
        herma.assert_verifies(&bundle);
        herma.assert_only_the_bundle_is_left(*run);
    }
}
