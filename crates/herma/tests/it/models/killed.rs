//! herma dies in the middle of a call: the next command closes the run, and the call is charged at the most.

use herma_core::model_call::{Ended, ModelCall};
use herma_core::{Blocker, Status, Step};
use herma_evidence::layout;

use crate::kit::{ANSWERS, Finished, Herma, MODEL, ROUTER, fix_and, run_tool, until};

/// An upstream that lets one question wait.
const SLOW: &str =
    "name: slow\nmatch: { marker: take your time }\nmodels: [m]\nturns: [{ say: so, delay: 600s }]\n";

#[test]
fn a_call_that_was_under_way_is_listed_as_unsettled_and_charged_at_the_most() {
    let herma = Herma::with_model(ANSWERS);
    let router = ROUTER.replace("\"answers.yaml\"", "\"slow.yaml\", \"answers.yaml\"");
    herma.configure(&format!("{router}\n[budgets]\nday = {{ tokens = \"1M\" }}\n"), ANSWERS);
    std::fs::write(herma.home().join("slow.yaml"), SLOW).unwrap();
    let contract = herma.contract(&[MODEL, ("limits", "{ tokens: 100k, usd: 1.00 }")]);
    let script = herma.script(&fix_and(&[
        "- ask: { prompt: quickly, must: true }",
        "- ask: { prompt: take your time, max_output: 500 }",
    ]));
    let run = herma.start(&["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()]);
    let begun = || {
        let [id] = herma.runs()[..] else { return false };
        let dir = herma.home().join("runs").join(id.to_string());
        let lines = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap_or_default().lines().count();
        let counted = || (lines("router/calls-begun"), lines("router/model-calls.jsonl"));
        let engine = std::fs::read_to_string(dir.join("bundle/events.jsonl")).unwrap_or_default();
        let (begun, ended) = counted();
        if !engine.contains("engine.started") || begun != ended + 1 {
            return false;
        }
        // A call that has ended is on record a moment later: only the slow one stays open.
        std::thread::sleep(std::time::Duration::from_millis(300));
        counted() == (begun, ended)
    };
    until("the call is under way", begun);
    assert!(run.kill().was_killed());

    assert_eq!(herma.run(&["runs"]).code, Some(0));
    let [id] = herma.runs()[..] else { panic!("{:?}", herma.runs()) };
    let bundle = herma.bundle(id);
    let report = bundle.report();
    assert_eq!(report.status, Status::Blocked, "{report:#?}");
    assert!(report.blockers.iter().any(|b| b.blocker == Blocker::Interrupted));
    bundle.assert_whole();
    herma.assert_verifies(&bundle);
    herma.assert_only_the_bundle_is_left(id);
    let text = bundle.text(layout::MODEL_CALLS);
    let calls: Vec<ModelCall> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = calls.last().unwrap();
    assert_eq!((last.ended, last.settled), (Ended::Interrupted, false), "{last:#?}");
    assert_eq!(calls.iter().filter(|call| !call.settled).count(), 1);
    assert!(last.charged.tokens >= 500, "{last:#?}");
    assert_eq!(report.usage.unsettled, 1);
    let charged: u64 = calls.iter().map(|call| call.charged.tokens).sum();
    assert_eq!(report.usage.charged_tokens, charged);
    let usage = herma.json(&["usage", "--json"]);
    let total = &usage["total"];
    assert_eq!(total["usage"]["unsettled"], 1, "{usage:#}");
    let counted = ["usage", "probes"].map(|part| total[part]["charged_tokens"].as_u64().unwrap());
    assert_eq!(counted.iter().sum::<u64>(), charged);
    // The part of the day's lease that the dead process did not spend is free again.
    let ask = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); \
               print(db.execute(\"SELECT SUM(tokens) FROM leases WHERE scope LIKE 'day %' AND holder = ?\", \
               [sys.argv[2]]).fetchone()[0])";
    let (store, holder) = (herma.home().join("store.db"), id.to_string());
    let args = ["-c".as_ref(), ask.as_ref(), store.as_os_str(), holder.as_ref()];
    assert_eq!(run_tool("python3", &args, &[]).trim(), charged.to_string());
}

#[test]
fn a_run_with_a_model_is_closed_after_a_kill_at_any_step() {
    for step in Step::ALL.into_iter().filter(|step| *step != Step::Land) {
        let herma = Herma::with_model(ANSWERS);
        let contract = herma.contract(&[MODEL]);
        let script = herma.script(&fix_and(&["- ask: { prompt: hi, must: true }"]));
        let args = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
        assert!(herma.run_with_fault(&format!("kill:{step}"), &args).was_killed(), "{step}");
        assert_eq!(herma.run(&["runs"]).code, Some(0), "{step}");
        let [id] = herma.runs()[..] else { panic!("{step}: {:?}", herma.runs()) };
        let bundle = herma.bundle(id);
        bundle.assert_whole();
        herma.assert_verifies(&bundle);
        herma.assert_only_the_bundle_is_left(id);
        let report = bundle.report();
        // The model is asked at the step after the gates.
        let asked = report.usage.requests;
        assert_eq!(asked > 0, step > Step::Probe, "{step}: {asked}");
    }
}

#[test]
fn calls_that_cannot_be_written_into_the_bundle_are_a_write_failure() {
    let herma = Herma::with_model(ANSWERS);
    let contract = herma.contract(&[MODEL]);
    let script = herma.script(&fix_and(&["- ask: { prompt: hi, must: true }"]));
    let args = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
    let ended = herma.run_with_fault("fail-write:model-calls.jsonl", &args);
    let [id] = herma.runs()[..] else { panic!("{ended:#?}") };
    let bundle = herma.bundle(id);
    bundle.assert_whole();
    herma.assert_verifies(&bundle);
    let finished = Finished { report: bundle.report(), ended, bundle };
    finished.assert_only(Blocker::ArtifactWriteFailure);
    assert!(finished.report.usage.requests > 0, "what was used is known all the same");
}
