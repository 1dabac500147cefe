//! A run that was killed leaves a bundle that can be closed.

use std::fs;
use std::io::Write as _;

use herma_core::blocker::Blocker;
use herma_core::event::{EventType, RunCompleted, Source};
use herma_core::{Digest, Status, Step};
use herma_evidence::{Bundle, EventLog, Redactor, Reopened, Trace, attest, layout, seal};
use serde_json::Map;

use crate::sample::{Ticks, pass, run_id, taken};

fn append(path: &std::path::Path, bytes: &[u8]) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn unfinished_files_are_removed_and_the_rest_is_hashed() {
    let sample = pass(|_| {});
    let dir = sample.dir();
    fs::remove_file(dir.join(layout::ATTESTATION)).unwrap();
    fs::write(dir.join(".unfinished-patch.diff"), "half").unwrap();
    fs::write(dir.join("stray"), "x").unwrap();
    fs::create_dir(dir.join("deep")).unwrap();
    let events = fs::read(dir.join(layout::EVENTS)).unwrap();
    append(&dir.join(layout::EVENTS), b"{\"seq\":9,\"ts");
    append(&dir.join(layout::TRACE), b"{\"st");

    let Reopened::Open(bundle) =
        Bundle::reopen(&dir, Ticks::from_start(), sample.report.run_started_at).unwrap()
    else {
        panic!("attested")
    };
    let artifacts = bundle.artifacts();
    assert_eq!(artifacts[layout::EVENTS].sha256, Digest::of(&events));
    assert!(artifacts.contains_key(layout::ENGINE_STDOUT));
    let mut names: Vec<_> = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    let expected =
        ["contract.md", "decision.json", "engine", "events.jsonl", "patch.diff", "test.log", "trace.jsonl"];
    assert_eq!(names, expected);

    let log = EventLog::resume(&bundle, run_id(), Redactor::default()).unwrap();
    let before = log.events().len();
    log.append(Source::Harness, EventType::RunCompleted, Map::new()).unwrap();
    log.finish().unwrap();
    assert_eq!((before, log.events().len(), log.events()[9].seq), (9, 10, 9));
    let written = fs::read(dir.join(layout::EVENTS)).unwrap();
    assert_eq!(bundle.artifacts()[layout::EVENTS].sha256, Digest::of(&written));

    let (trace, steps) = Trace::resume(&bundle).unwrap();
    assert_eq!(steps.iter().map(|s| s.step).collect::<Vec<_>>(), taken());
    trace.append(Step::Attest).unwrap();
    trace.finish().unwrap();
}

#[test]
fn an_attested_bundle_is_left_alone() {
    let sample = pass(|_| {});
    assert!(matches!(
        Bundle::reopen(sample.dir(), Ticks::from_start(), sample.report.run_started_at).unwrap(),
        Reopened::Attested
    ));
    assert!(sample.verify().ok());
}

#[test]
fn an_attestation_of_another_report_does_not_count() {
    let sample = pass(|_| {});
    append(&sample.dir().join(layout::REPORT), b" ");
    assert!(matches!(
        Bundle::reopen(sample.dir(), Ticks::from_start(), sample.report.run_started_at).unwrap(),
        Reopened::Open(_)
    ));
    assert!(!sample.dir().join(layout::ATTESTATION).exists());
}

#[test]
fn a_log_is_continued_after_its_last_sound_event() {
    let sample = pass(|_| {});
    let path = sample.dir().join(layout::EVENTS);
    append(&path, &[0; 300]);
    append(&path, b"\n");
    let bundle = Bundle::create(sample.temp.path().join("new"), Ticks::from_start(), None).unwrap();
    fs::copy(&path, bundle.dir().join(layout::EVENTS)).unwrap();
    let log = EventLog::resume(&bundle, run_id(), Redactor::default()).unwrap();
    assert_eq!(log.events().len(), 9);
    assert!(!fs::read(bundle.dir().join(layout::EVENTS)).unwrap().contains(&0));
}

/// The run was killed between its verdict and its attestation; the next herma closes it.
#[test]
fn a_closed_orphan_verifies() {
    close_orphan(Ticks::later());
}

#[test]
fn an_orphan_that_is_closed_with_a_clock_an_hour_behind_verifies() {
    close_orphan(Ticks::earlier());
}

fn close_orphan(clock: std::sync::Arc<Ticks>) {
    let sample = pass(|_| {});
    let dir = sample.dir();
    fs::remove_file(dir.join(layout::ATTESTATION)).unwrap();
    let started = sample.report.run_started_at;
    let Reopened::Open(bundle) = Bundle::reopen(&dir, clock, started).unwrap() else { panic!("attested") };
    let mut report = sample.report.clone();
    report.blockers = vec![Blocker::Interrupted.because("killed")];
    report.status = Status::Blocked;
    let log = EventLog::resume(&bundle, run_id(), Redactor::default()).unwrap();
    let verdict = RunCompleted::new(report.status, &report.blockers, 0).into_data();
    log.append(Source::Harness, EventType::RunCompleted, verdict).unwrap();
    log.finish().unwrap();
    let (trace, _) = Trace::resume(&bundle).unwrap();
    trace.append(Step::Report).unwrap();
    trace.finish().unwrap();
    let report = seal(&bundle, &report, &Redactor::default()).unwrap();
    attest(&bundle, &sample.key, &report).unwrap();
    let list = sample.verify();
    assert!(list.ok(), "{list:#?}");
}
