//! Writing a bundle: faults, caps, keys, events.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use herma_core::blocker::Blocker;
use herma_core::event::{EventType, Source};
use herma_core::{Fault, secret::Secret};
use herma_evidence::keys::{KEY_FILE, PUBLIC_FILE};
use herma_evidence::{
    AttestError, Bundle, EventLog, InstallationKey, KeyError, PublicKey, Redactor, attest, layout,
};
use serde_json::{Map, Value, json};

use crate::sample::{Ticks, pass, run_id};

fn bundle(fault: Option<Fault>) -> (tempfile::TempDir, Bundle) {
    let temp = tempfile::tempdir().unwrap();
    let bundle = Bundle::create(temp.path().join("b"), Ticks::from_start(), fault).unwrap();
    (temp, bundle)
}

fn data(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("not an object") };
    map
}

#[test]
fn a_broken_file_fails_and_the_others_do_not() {
    let (_temp, bundle) = bundle(Some(Fault::FailWrite(layout::PATCH.to_owned())));
    let error = bundle.write(layout::PATCH, b"x").unwrap_err();
    assert_eq!((error.name.as_str(), error.is_full()), (layout::PATCH, false));
    bundle.write(layout::CONTRACT, b"x").unwrap();
    assert_eq!(bundle.artifacts().into_keys().collect::<Vec<_>>(), [layout::CONTRACT]);
}

#[test]
fn a_broken_event_log_leaves_no_file() {
    let (_temp, bundle) = bundle(Some(Fault::FailWrite(layout::EVENTS.to_owned())));
    let log = EventLog::create(&bundle, run_id(), Redactor::default());
    assert!(log.append(Source::Harness, EventType::RunStarted, Map::new()).is_err());
    log.finish().unwrap();
    assert_eq!(fs::read_dir(bundle.dir()).unwrap().count(), 0);
}

#[test]
fn a_full_disk_has_its_own_error() {
    let full = herma_evidence::WriteError { name: "x".to_owned(), source: rustix::io::Errno::NOSPC.into() };
    assert!(full.is_full());
}

#[test]
fn an_unknown_name_and_an_unfinished_file_leave_nothing() {
    let (_temp, bundle) = bundle(None);
    assert!(bundle.write("notes.txt", b"x").is_err());
    let mut writer = bundle.writer(layout::PATCH).unwrap();
    writer.write_all(b"half").unwrap();
    drop(writer);
    assert_eq!(fs::read_dir(bundle.dir()).unwrap().count(), 0);
}

#[test]
fn a_bundle_with_an_unrecorded_file_is_not_attested() {
    let sample = pass(|_| {});
    let (_temp, bundle) = bundle(None);
    herma_evidence::write_report(&bundle, &sample.report).unwrap();
    fs::write(bundle.dir().join(layout::PATCH), "x").unwrap();
    assert!(matches!(attest(&bundle, &sample.key, &sample.report), Err(AttestError::Unrecorded(_))));
}

#[test]
fn a_dropped_event_is_not_written_and_the_chain_holds() {
    let (_temp, bundle) = bundle(Some(Fault::DropEvent(EventType::DiffChecked)));
    let log = EventLog::create(&bundle, run_id(), Redactor::default());
    for kind in [EventType::RunStarted, EventType::DiffChecked, EventType::RunCompleted] {
        log.append(Source::Harness, kind, Map::new()).unwrap();
    }
    let kinds: Vec<_> = log.events().iter().map(|event| (event.seq, event.kind)).collect();
    assert_eq!(kinds, [(0, EventType::RunStarted), (1, EventType::RunCompleted)]);
}

#[test]
fn events_hold_no_secret_and_no_flood() {
    let (_temp, bundle) = bundle(None);
    let log = EventLog::create(&bundle, run_id(), Redactor::new([Secret::new("hunter2hunter2".to_owned())]));
    let deep = (0..200).fold(json!("x"), |inner, _| json!([inner]));
    log.append(
        Source::Agent,
        EventType::EngineMessage,
        data(json!({"text": "my hunter2hunter2", "deep": deep})),
    )
    .unwrap();
    log.append(Source::Agent, EventType::EngineMessage, data(json!({"text": "x".repeat(1 << 20)}))).unwrap();
    log.append(Source::Agent, EventType::EngineMessage, data(json!({"n": u64::MAX, "f": 0.1}))).unwrap();
    for _ in 0..10_000 {
        log.append(Source::Agent, EventType::EngineMessage, Map::new()).unwrap();
    }
    log.append(Source::Harness, EventType::RunCompleted, Map::new()).unwrap();
    assert_eq!((log.events().len(), log.agent_events_left_out()), (10_001, 3));
    assert_eq!(log.events()[0].data["text"], "my [redacted:known_secret]");
    let text = fs::read(bundle.dir().join(layout::EVENTS)).unwrap();
    let mut chain = herma_evidence::chain::Chain::new(Some(run_id()));
    for line in text.split_inclusive(|b| *b == b'\n') {
        assert!(line.len() < 20 << 10);
        chain.follow(&line[..line.len() - 1]).unwrap();
    }
}

#[test]
fn a_key_is_made_once_even_in_a_race() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("keys");
    let ids: BTreeSet<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| InstallationKey::load_or_create(&dir).unwrap().key_id()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1);
    let public = PublicKey::from_pem(&fs::read_to_string(dir.join(PUBLIC_FILE)).unwrap()).unwrap();
    assert_eq!(Some(&public.key_id()), ids.first());
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
    assert_eq!(fs::metadata(dir.join(KEY_FILE)).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    InstallationKey::load_or_create(temp.path()).unwrap();
    let path = temp.path().join(KEY_FILE);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let error = InstallationKey::load_or_create(temp.path()).unwrap_err();
    assert!(matches!(error, KeyError::Exposed { mode: 0o640, .. }));
    assert!(error.to_string().contains(&format!("chmod 600 {}", path.display())));
}

#[test]
fn the_report_for_people_says_what_to_do_and_runs_nothing() {
    let mut report = pass(|_| {}).report;
    report.blockers.push(Blocker::NoDiff.because("<b>[x](y)\n# \u{202e}done"));
    report.verification[0].command = "a | b `c`".to_owned();
    let text = herma_evidence::render_markdown(&report);
    for expected in [
        "- **no_diff**: &lt;b>\\[x\\](y) \\# \\u{202e}done\n",
        "  - next: Read engine/stdout.log",
        "- modified `strings.py`\n",
        "| `` a \\| b `c` `` | passed | 0 | 12 |\n",
        "| patch.diff |",
        "- `confinement.json`: the destination is host\n",
    ] {
        assert!(text.contains(expected), "{expected}\n---\n{text}");
    }
}
