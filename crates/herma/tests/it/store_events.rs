//! The events of a run in the store, read by another process.

use std::fs;

use herma_store::{BlockingStore, StoreLocation};

use crate::kit::{Herma, contract_text, fix_and, until};

#[test]
fn the_store_has_the_events_of_a_run_in_progress_and_after_a_kill_those_of_its_bundle() {
    let herma = Herma::new();
    let contract = herma.file("contracts/events.md", contract_text(&[("destination", "sandbox")]));
    let script = herma.file("fix.yaml", fix_and(&["- say: done", "- sleep: 10m"]));
    let mut service = herma.service(1);
    service.submit(&contract, &script);
    let run = service.until_submitted(1)[0];
    let store = BlockingStore::open(&StoreLocation::file(herma.home().join("store.db"))).unwrap();
    let stored = || -> Vec<String> {
        let rows = store.call(|store| store.events_after(run, None, u32::MAX)).unwrap();
        rows.into_iter().map(|row| row.line).collect()
    };
    let written = || -> Vec<String> {
        let events = fs::read_to_string(herma.bundle(run).dir.join("events.jsonl")).unwrap();
        events.lines().map(str::to_owned).collect()
    };
    until("the store has the events so far", || {
        stored().iter().any(|line| line.contains(r#""type":"engine.message""#))
    });
    let so_far = stored();
    assert_eq!(so_far, written()[..so_far.len()]);

    service.kill();
    let runs = herma.json(&["runs", "--all", "--json"]);
    assert_eq!(runs["runs"][0]["status"], "blocked", "{runs:#}");
    assert_eq!(stored(), written());
    assert!(stored().len() > so_far.len());
}
