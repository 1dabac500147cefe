//! The audit of a run on disk.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use herma_core::model_call::{Attempt, Ended, Endpoint};
use herma_core::{Digest, Timestamp};
use herma_router::audit::{Audit, AuditError, Beginning, CALLS_BEGUN, MODEL_CALLS, Opened, Unchained, read};
use herma_router::budget::Amount;
use tempfile::TempDir;

fn beginning() -> Beginning<'static> {
    let time = "2026-01-01T12:00:00Z".parse::<Timestamp>().unwrap();
    Beginning { asked: "gpt-5", endpoint: Endpoint::Messages, request: Digest::of(b"{}"), stream: true, time }
}

fn tokens(tokens: u64) -> Amount {
    Amount { requests: 1, tokens, micro_usd: 3 * tokens }
}

fn answered(cost: Amount) -> Unchained {
    let Beginning { asked, endpoint, request, stream, time } = beginning();
    Unchained {
        answered: Some("gpt-5-2026".to_owned()),
        asked: asked.to_owned(),
        attempts: Vec::new(),
        charged: cost,
        endpoint,
        ended: Ended::Answered,
        first_byte_us: Some(10),
        latency_us: 20,
        reason: None,
        request,
        response: Some(Digest::of(b"hello")),
        rewrites: vec!["output_clamped".to_owned()],
        settled: true,
        status: 200,
        stop: Some("stop".to_owned()),
        stream,
        time,
        tool_calls: 0,
        used: None,
    }
}

fn refused() -> Unchained {
    Unchained { ended: Ended::Refused, status: 403, charged: Amount::default(), ..answered(tokens(0)) }
}

fn open(dir: &TempDir) -> (Audit, Opened) {
    Audit::open(dir.path(), "run").unwrap()
}

fn file(dir: &TempDir) -> Vec<u8> {
    fs::read(dir.path().join(MODEL_CALLS)).unwrap()
}

fn append(dir: &TempDir, name: &str, bytes: &[u8]) {
    OpenOptions::new().append(true).open(dir.path().join(name)).unwrap().write_all(bytes).unwrap();
}

#[test]
fn a_name_that_looks_like_a_secret_is_in_no_record() {
    let token = format!("gh{}{}", "p_", "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW0xYaB3d");
    let long = format!("{}{token}", "a name that is longer than a record takes ".repeat(5));
    let header = format!("-----BEGIN {} KEY-----", "RSA PRIVATE");
    for name in [&token, &long, &format!("m\n{token}"), &header, &format!("{token} {}", "x".repeat(400))] {
        let dir = TempDir::new().unwrap();
        let (audit, _) = open(&dir);
        let beginning = Beginning { asked: name, ..beginning() };
        let ended = audit.begin(tokens(9), &beginning).unwrap();
        audit.begin(tokens(9), &beginning).unwrap();
        let attempt = Attempt {
            charged: tokens(1),
            model: name.clone(),
            outcome: "answered".to_owned(),
            status: Some(200),
            upstream: name.clone(),
        };
        let mut record = answered(tokens(1));
        (record.asked, record.attempts) = (name.clone(), vec![attempt]);
        (record.answered, record.stop) = (Some(name.clone()), Some(name.clone()));
        audit.end(Some(ended), record).unwrap();
        let notes = fs::read(dir.path().join(CALLS_BEGUN)).unwrap();
        assert_eq!(herma_evidence::secrets::scan(&notes), [], "{}", String::from_utf8_lossy(&notes));
        drop(audit);
        // The next start records calls that were in flight.
        let (audit, opened) = open(&dir);
        assert_eq!((opened.records, opened.interrupted.len()), (2, 1));
        audit.finish().unwrap();
        let text = String::from_utf8(file(&dir)).unwrap();
        assert_eq!(herma_evidence::secrets::scan(text.as_bytes()), [], "{text}");
        assert!(!text.contains(&token[4..]), "{text}");
    }
}

#[test]
fn ended_calls_survive_a_restart() {
    let dir = TempDir::new().unwrap();
    let (audit, opened) = open(&dir);
    assert_eq!(opened, Opened { records: 0, charged: Amount::default(), interrupted: Vec::new() });
    let (first, second) =
        (audit.begin(tokens(9), &beginning()).unwrap(), audit.begin(tokens(9), &beginning()).unwrap());
    assert_eq!(audit.end(Some(second), answered(tokens(5))).unwrap(), 0);
    assert_eq!(audit.end(None, refused()).unwrap(), 1);
    assert_eq!(audit.end(Some(first), answered(tokens(1))).unwrap(), 2);
    let sums = audit.sums();
    assert_eq!((sums.records, sums.refused, sums.charged.tokens, sums.charged.requests), (3, 1, 6, 2));
    drop(audit);

    let (audit, opened) = open(&dir);
    assert_eq!((opened.records, opened.charged, opened.interrupted.len()), (3, sums.charged, 0));
    let third = audit.begin(tokens(1), &beginning()).unwrap();
    assert_eq!(third.to_string(), "2", "numbers go on");
    assert_eq!(audit.end(Some(third), answered(tokens(1))).unwrap(), 3);
    let again = read(&file(&dir)[..], "run", |_| ()).unwrap().unwrap();
    assert_eq!((again.sums, again.is_torn), (audit.sums(), false));
}

#[test]
fn calls_that_did_not_end_are_charged_at_the_most() {
    let dir = TempDir::new().unwrap();
    let (audit, _) = open(&dir);
    let (lost, kept) =
        (audit.begin(tokens(9), &beginning()).unwrap(), audit.begin(tokens(7), &beginning()).unwrap());
    audit.more(lost, tokens(30)).unwrap();
    audit.end(Some(kept), answered(tokens(2))).unwrap();
    drop(audit);

    let (audit, opened) = open(&dir);
    let [call] = &opened.interrupted[..] else { panic!("{opened:?}") };
    let Beginning { asked, endpoint, request, stream, time } = beginning();
    assert_eq!((call.ended, call.settled, call.status), (Ended::Interrupted, false, 0));
    assert_eq!(call.charged, tokens(9).plus(tokens(30)));
    assert_eq!(
        (&*call.asked, call.endpoint, call.request, call.stream, call.time),
        (asked, endpoint, request, stream, time)
    );
    assert_eq!(opened.charged, call.charged.plus(tokens(2)));
    assert_eq!((audit.sums().unsettled, audit.sums().unsettled_charged), (1, call.charged));
    drop(audit);
    // Once.
    assert_eq!(open(&dir).1, Opened { interrupted: Vec::new(), ..opened });
}

#[test]
fn calls_in_flight_at_the_end_of_the_audit_are_charged_at_the_most() {
    let dir = TempDir::new().unwrap();
    let (audit, _) = open(&dir);
    let lost = audit.begin(tokens(9), &beginning()).unwrap();
    let sums = audit.finish().unwrap();
    assert_eq!((sums.records, sums.unsettled, sums.charged), (1, 1, tokens(9)));
    assert_eq!(audit.finish().unwrap(), sums);
    assert!(matches!(audit.begin(tokens(1), &beginning()), Err(AuditError::Finished)));
    assert!(matches!(audit.end(Some(lost), answered(tokens(1))), Err(AuditError::Finished)));
    assert!(matches!(audit.end(None, refused()), Err(AuditError::Finished)));
    assert!(!dir.path().join(CALLS_BEGUN).exists(), "it is no evidence");
}

#[test]
fn a_torn_line_is_cut_wherever_it_was_torn() {
    let whole = {
        let dir = TempDir::new().unwrap();
        let (audit, _) = open(&dir);
        let call = audit.begin(tokens(9), &beginning()).unwrap();
        audit.end(Some(call), answered(tokens(5))).unwrap();
        file(&dir)
    };
    for left in [1, 2, whole.len() / 2, whole.len() - 1] {
        let dir = TempDir::new().unwrap();
        let (audit, _) = open(&dir);
        audit.begin(tokens(9), &beginning()).unwrap();
        drop(audit);
        append(&dir, MODEL_CALLS, &whole[..left]);
        append(&dir, CALLS_BEGUN, br#"{"began":{"asked":"gpt-5","call":1,"#);
        let (_audit, opened) = open(&dir);
        assert_eq!((opened.records, opened.charged, opened.interrupted.len()), (1, tokens(9), 1), "{left}");
        assert!(read(&file(&dir)[..], "run", |_| ()).unwrap().is_ok());
    }
}

#[test]
fn a_tampered_audit_is_not_opened() {
    let dir = TempDir::new().unwrap();
    let (audit, _) = open(&dir);
    for cost in [5, 6, 7] {
        let call = audit.begin(tokens(9), &beginning()).unwrap();
        audit.end(Some(call), answered(tokens(cost))).unwrap();
    }
    drop(audit);
    let whole = String::from_utf8(file(&dir)).unwrap();
    for (changed, line) in [
        (whole.replacen(r#""tokens":5"#, r#""tokens":4"#, 1), 2),
        (whole.replacen('\n', "\n\n", 1), 2),
        (whole.split_inclusive('\n').skip(1).collect(), 1),
        (whole.replacen("run\"", "ran\"", 1), 1),
        (format!("{whole}{{}}\n"), 4),
    ] {
        assert_ne!(changed, whole);
        fs::write(dir.path().join(MODEL_CALLS), changed).unwrap();
        let error = Audit::open(dir.path(), "run").unwrap_err();
        assert!(error.to_string().contains(&format!("{MODEL_CALLS}: line {line}: ")), "{error}");
    }
    fs::write(dir.path().join(MODEL_CALLS), &whole).unwrap();
    assert!(matches!(Audit::open(dir.path(), "another"), Err(AuditError::Broken { .. })));
    append(
        &dir,
        CALLS_BEGUN,
        b"{\"more\":{\"call\":8,\"most\":{\"micro_usd\":0,\"requests\":1,\"tokens\":1}}}\n",
    );
    let error = Audit::open(dir.path(), "run").unwrap_err();
    assert!(
        matches!(&error, AuditError::BadJournal { problem, .. } if problem == "call 8 never began"),
        "{error}"
    );
}

#[test]
fn one_process_at_a_time_has_it() {
    let dir = TempDir::new().unwrap();
    let (audit, _) = open(&dir);
    assert!(matches!(Audit::open(dir.path(), "run"), Err(AuditError::InUse { .. })));
    drop(audit);
    open(&dir);
}

#[test]
fn nothing_but_a_file_of_its_own_is_written_to() {
    let elsewhere = TempDir::new().unwrap();
    let victim = elsewhere.path().join("victim");
    for name in [MODEL_CALLS, CALLS_BEGUN] {
        let link = |at: &Path| symlink(&victim, at).unwrap();
        let second_name = |at: &Path| fs::hard_link(&victim, at).unwrap();
        let directory = |at: &Path| fs::create_dir(at).unwrap();
        let plant: [&dyn Fn(&Path); 3] = [&link, &second_name, &directory];
        for plant in plant {
            let dir = TempDir::new_in(elsewhere.path()).unwrap();
            fs::write(&victim, "").unwrap();
            plant(&dir.path().join(name));
            let error = Audit::open(dir.path(), "run").unwrap_err();
            assert!(matches!(error, AuditError::NotAFile { .. }), "{error}");
            assert_eq!(fs::read(&victim).unwrap(), b"");
        }
    }
}

#[test]
fn others_cannot_read_it() {
    let dir = TempDir::new().unwrap();
    let (_audit, _) = open(&dir);
    for name in [MODEL_CALLS, CALLS_BEGUN] {
        let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_call_ends_once_and_only_after_it_began() {
    let dir = TempDir::new().unwrap();
    let (audit, _) = open(&dir);
    let call = audit.begin(tokens(9), &beginning()).unwrap();
    audit.end(Some(call), answered(tokens(5))).unwrap();
    assert!(matches!(audit.end(Some(call), answered(tokens(5))), Err(AuditError::NotUnderWay(0))));
    assert!(matches!(audit.more(call, tokens(5)), Err(AuditError::NotUnderWay(0))));
    assert!(audit.begin(tokens(9), &beginning()).is_ok(), "a mistake of the caller is no fault of the disk");
}

#[test]
fn calls_that_end_at_once_are_one_chain() {
    let dir = TempDir::new().unwrap();
    let audit = Arc::new(open(&dir).0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let call = audit.begin(tokens(9), &beginning()).unwrap();
                    audit.end(Some(call), answered(tokens(2))).unwrap();
                    audit.sync().unwrap();
                }
            });
        }
    });
    let sums = read(&file(&dir)[..], "run", |_| ()).unwrap().unwrap().sums;
    assert_eq!((sums.records, sums.charged.tokens), (800, 1_600));
    assert_eq!(audit.finish().unwrap(), sums);
}

#[test]
fn a_name_that_fills_a_request_does_not_fill_the_audit() {
    let dir = TempDir::new().unwrap();
    let (audit, _) = open(&dir);
    let asked = "ü".repeat(4 << 20);
    audit.begin(tokens(1), &Beginning { asked: &asked, ..beginning() }).unwrap();
    audit.end(None, Unchained { asked: asked.clone(), ..refused() }).unwrap();
    drop(audit);
    let size = |name: &str| fs::metadata(dir.path().join(name)).unwrap().len();
    assert!(size(CALLS_BEGUN) < 2_000 && size(MODEL_CALLS) < 4_000);
    let (_audit, opened) = open(&dir);
    assert!(opened.interrupted[0].asked.ends_with('…'));
}
