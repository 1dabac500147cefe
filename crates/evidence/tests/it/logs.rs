//! Logs never show a secret, however they are cut into writes.

use std::fs;
use std::io::Write as _;

use herma_core::secret::Secret;
use herma_evidence::redact::Stream;
use herma_evidence::{Bundle, Redactor, layout, secrets};
use proptest::prelude::*;

use crate::sample::Ticks;

const KNOWN: &str = "correct horse battery";

fn token() -> String {
    format!("ghp_{}", "aB3dE5fG7h".repeat(4))
}

fn key() -> String {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n".repeat(3);
    format!("-----BEGIN {0} KEY-----\n{body}-----END {0} KEY-----", "PRIVATE")
}

fn redacted(bytes: &[u8], cuts: &[usize]) -> String {
    let mut out = String::new();
    let mut stream = Stream::new(Redactor::new([Secret::new(KNOWN.to_owned())]));
    let mut at = 0;
    for cut in cuts.iter().copied().chain([bytes.len()]) {
        let end = (at + cut).min(bytes.len());
        stream.push(&bytes[at..end], &mut |piece| out.push_str(piece));
        at = end;
    }
    stream.push(&bytes[at..], &mut |piece| out.push_str(piece));
    stream.finish(&mut |piece| out.push_str(piece));
    out
}

/// Bytes, repeated a number of times.
fn filler() -> impl Strategy<Value = (Vec<u8>, usize)> {
    prop_oneof![
        "[a-z \n\"=:+/-]{0,80}".prop_map(|text| (text.into_bytes(), 1)),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| (bytes, 1)),
        // A line that is longer than any window.
        (prop::sample::select(vec![b'x', b' ', 0xc3]), 60_000usize..70_000).prop_map(|(b, n)| (vec![b], n)),
    ]
}

#[test]
fn a_secret_behind_an_escape_does_not_get_through_wherever_a_long_line_is_cut() {
    for escape in ["\\n", "\\344", "\\303\\244", "\\\\n"] {
        // The stream holds 8 KiB of a window back; cut around there.
        for before in (56 << 10) - 12..(56 << 10) + 4 {
            let line = format!("{}{escape}{} {}", "x".repeat(before), token(), "y".repeat(20_000));
            let out = redacted(line.as_bytes(), &[]);
            assert!(secrets::scan(out.as_bytes()).is_empty(), "{escape} after {before}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn the_cuts_do_not_matter_and_no_secret_gets_through(
        parts in prop::collection::vec((filler(), 0usize..4), 1..5),
        cuts in prop::collection::vec(1usize..5_000, 0..40),
    ) {
        let secrets = [token(), KNOWN.to_owned(), key(), String::new()];
        let mut bytes = Vec::new();
        for ((filler, times), secret) in &parts {
            bytes.extend(filler.repeat(*times));
            // A word that runs into a token is not one.
            bytes.push(b' ');
            bytes.extend_from_slice(secrets[*secret].as_bytes());
        }
        let whole = redacted(&bytes, &[]);
        prop_assert!(redacted(&bytes, &cuts) == whole, "the cuts matter");
        prop_assert!(!whole.contains(&token()) && !whole.contains(KNOWN) && !whole.contains("MIIEvQIBADANBgkqhkiG"));
        prop_assert_eq!(secrets::scan(whole.as_bytes()), vec![]);
    }
}

#[test]
fn other_text_stays() {
    let text = "plain \u{e4} text\nwith lines, sk-learn, tokens: 12 and a task-force\n";
    assert_eq!(redacted(text.as_bytes(), &[3, 4]), text);
}

#[test]
fn only_the_secret_is_taken_out() {
    let text = format!("a={}; b\npostgres://me:{}@host/db\n", token(), "s3cr3tpw");
    let expected = "a=[redacted:github_token]; b\npostgres://me:[redacted:url_credentials]@host/db\n";
    assert_eq!(redacted(text.as_bytes(), &[]), expected);
}

#[test]
fn a_private_key_is_taken_out_whole() {
    let text = format!("before\n{}\nafter\n", key());
    assert_eq!(redacted(text.as_bytes(), &[]), "before\n[redacted:private_key]\n\nafter\n");
    let escaped = format!("{{\"key\": \"{}\"}}\n", key().replace('\n', "\\n"));
    assert_eq!(redacted(escaped.as_bytes(), &[]), "{\"key\": \"[redacted:private_key]\"}\n");
}

#[test]
fn a_log_is_capped_and_says_so() {
    let temp = tempfile::tempdir().unwrap();
    let bundle = Bundle::create(temp.path().join("b"), Ticks::from_start(), None).unwrap();
    let mut log = bundle.log(layout::TEST_LOG, Redactor::default(), 20).unwrap();
    for _ in 0..4 {
        log.write_all(b"ten bytes\n").unwrap();
    }
    log.finish().unwrap();
    let text = fs::read_to_string(temp.path().join("b/test.log")).unwrap();
    assert_eq!(text, "ten bytes\nten bytes\n\n[herma left out 20 bytes: this log ends at 20 bytes]\n");
    assert_eq!(bundle.artifacts()[layout::TEST_LOG].sha256, herma_core::Digest::of(text.as_bytes()));
}
