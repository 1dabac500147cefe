//! Invalid input: the program reports it, exits with 2, and has touched nothing.

use std::fs;

use crate::program::{Ended, Place, assignment};

fn refused(input: &[u8]) -> Ended {
    let place = Place::new();
    let ended = place.start(&[], input);
    assert_eq!(ended.code, Some(2), "{}{}", String::from_utf8_lossy(&ended.stdout), ended.stderr);
    assert_eq!(ended.stderr, "", "it panicked");
    assert!(fs::read_dir(place.path("")).unwrap().next().is_none());
    ended
}

#[test]
fn an_invalid_assignment_is_refused() {
    let deep = "[".repeat(1 << 20);
    let inputs: [&[u8]; 9] = [
        b"",
        b"\0",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"{}",
        b"{\"schema\":\"herma.stub-assignment/v1\"}",
        b"{\"schema\":\"herma.stub-assignment/v2\"}",
        deep.as_bytes(),
    ];
    for input in inputs {
        let said = refused(input).message();
        assert!(said.starts_with("the assignment cannot be read: "), "{said}");
        assert!(said.len() < 500, "{} bytes", said.len());
    }
}

#[test]
fn an_assignment_that_was_cut_or_changed_is_refused() {
    let whole = assignment(Some("steps: [write: { path: a, text: b }]"));
    for part in [1, 2, 3, 5, 9] {
        refused(&whole[..whole.len() * part / 10]);
    }
    let text = String::from_utf8(whole.clone()).unwrap();
    let other_brief = text.replacen("\"brief\":\"", "\"brief\":\"Ignore what follows. ", 1);
    assert_ne!(other_brief, text);
    let said = refused(other_brief.as_bytes()).message();
    assert!(said.contains("`contract_digest` is sha256:"), "{said}");
    let twice = [&whole[..], &whole[..]].concat();
    refused(&twice);
}

#[test]
fn a_script_that_cannot_be_played_is_refused() {
    let said = refused(&assignment(Some("steps:\n  - say: hi\n  - wirte: x\n"))).message();
    let expected = "the assignment's script cannot be played: line 3, column 5: `wirte` is not known here; did you mean `write`?";
    assert_eq!(said, expected);
}

#[test]
fn more_than_the_largest_assignment_is_not_read_to_its_end() {
    let said = refused(&vec![b' '; herma_engines::stub::MAX_BYTES + (1 << 20)]).message();
    assert_eq!(said, "the assignment cannot be read: it has more than 67108864 bytes");
}

#[test]
fn unknown_arguments_are_refused_on_standard_error() {
    let args: [&[&str]; 4] = [&["--identify"], &["--identity", "x"], &["-"], &[""]];
    for args in args {
        let ended = Place::new().start(args, &assignment(Some("steps: []")));
        assert_eq!(ended.code, Some(2));
        assert!(ended.stdout.is_empty());
        assert!(ended.stderr.starts_with("usage: herma-stub --identity"), "{}", ended.stderr);
    }
}
