//! Transcripts show no secret, stay within their size, and survive a crash.

use std::fs;
use std::sync::Arc;

use herma_core::Timestamp;
use herma_core::secret::Secret;
use herma_core::transcript::{TranscriptEntry, TranscriptHead};
use herma_evidence::{Bundle, Redactor, Reopened, SecretScanner, TranscriptLog, layout, transcript};

use crate::sample::{Ticks, run_id};

const KNOWN: &str = "correct \"horse\" battery";

fn message(text: impl Into<String>) -> TranscriptEntry {
    TranscriptEntry::Message { text: text.into() }
}

/// The written transcript with these entries.
fn written(entries: Vec<TranscriptEntry>) -> String {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("bundle");
    let bundle = Bundle::create(&dir, Ticks::from_start(), None).unwrap();
    let redactor = Redactor::new([Secret::new(KNOWN.to_owned())]);
    let mut log = TranscriptLog::create(&bundle, redactor, run_id(), "fake".parse().unwrap()).unwrap();
    for entry in entries {
        log.append(entry).unwrap();
    }
    log.finish().unwrap();
    let text = fs::read_to_string(dir.join(layout::TRANSCRIPT)).unwrap();
    assert_eq!(bundle.artifacts()[layout::TRANSCRIPT].size, text.len() as u64);
    text
}

fn finds_secret(text: &str) -> bool {
    let mut scanner = SecretScanner::new();
    scanner.push(text.as_bytes());
    !scanner.finish().is_empty()
}

#[test]
fn the_first_line_says_whose_words_these_are() {
    let text = written(vec![message("done")]);
    let head: TranscriptHead = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(head, TranscriptHead::new(run_id(), "fake".parse().unwrap()));
    let lines = transcript::read(text.as_bytes());
    assert_eq!(lines.into_iter().map(|line| line.entry).collect::<Vec<_>>(), [message("done")]);
}

#[test]
fn no_secret_is_in_it() {
    let token = format!("ghp_{}", "aB3dE5fG7h".repeat(4));
    let call = TranscriptEntry::ToolCall { call: None, tool: "shell".into(), arguments: token.clone() };
    let text = written(vec![message(format!("it is {KNOWN}.")), call]);
    assert!(!text.contains("battery") && !text.contains(&token) && !finds_secret(&text), "{text}");
}

#[test]
fn a_secret_in_parts_does_not_make_the_file_show_one() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7".repeat(3);
    let parts = ["-----BEGIN PRIVATE KEY-----".to_owned(), body, "-----END PRIVATE KEY-----".to_owned()];
    let text = written(parts.into_iter().map(message).collect());
    assert!(!finds_secret(&text), "{text}");
}

#[test]
fn a_transcript_stays_within_its_size_and_says_so() {
    let plan = TranscriptEntry::Plan { items: vec!["x".repeat(1000); 2000] };
    let text = written(vec![plan]);
    assert!(text.contains("herma left out an entry of"), "{}", text.len());
    let text = written(vec![message("\u{1}".repeat(30_000)); 200]);
    assert!(text.len() < transcript::MAX_BYTES + 1000);
    assert!(text.trim_end().ends_with("\"kind\":\"left_out\"}"));
}

#[test]
fn a_torn_line_is_cut_off_after_a_crash() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("bundle");
    let clock: Arc<_> = Ticks::from_start();
    let bundle = Bundle::create(&dir, clock.clone(), None).unwrap();
    let mut log =
        TranscriptLog::create(&bundle, Redactor::default(), run_id(), "fake".parse().unwrap()).unwrap();
    log.append(message("one")).unwrap();
    drop((log, bundle));
    let path = dir.join(layout::TRANSCRIPT);
    let sound = fs::read(&path).unwrap();
    fs::write(&path, [&sound[..], b"{\"ts\":\"20"].concat()).unwrap();
    let Reopened::Open(bundle) = Bundle::reopen(&dir, clock, Timestamp::UNIX_EPOCH).unwrap() else {
        panic!("attested")
    };
    assert_eq!(fs::read(&path).unwrap(), sound);
    assert_eq!(bundle.artifacts()[layout::TRANSCRIPT].size, sound.len() as u64);
}
