//! Fuzzes the parser of scripts for the scripted upstream, and what such scripts answer.

use herma_dialect::{Dialect, ModelRequest, read_request};
use herma_scripted::{Answer, Scripted, StreamStep};

/// A client with a shell, in a conversation.
const CHAT: &[u8] = br#"{"model":"m","stream":true,"messages":[{"role":"user","content":"Fix it."}],"tools":[{"type":"function","function":{"name":"bash","parameters":{"type":"object","properties":{"command":{"type":"string"}}}}}]}"#;
const RESPONSES: &[u8] =
    br#"{"model":"m","input":"Fix it.","max_output_tokens":9,"tools":[{"type":"local_shell"}]}"#;
const MESSAGES: &[u8] = br#"{"model":"m","max_tokens":99,"stream":true,"messages":[{"role":"user","content":"Fix it."},{"role":"assistant","content":"Yes."},{"role":"user","content":"Go on."}]}"#;

/// Any bytes are a script, the same one each time, or an error that points into the file. A script answers every
/// request, the same each time, and nothing comes after a step that is the last.
pub fn router_script(input: &[u8]) {
    let scripted = match (Scripted::parse(input), Scripted::parse(input)) {
        (Ok(first), Ok(second)) => {
            assert_eq!(first.script(), second.script());
            first
        }
        (Err(bad), Err(again)) => {
            assert_eq!(bad, again);
            assert!(!bad.problem.is_empty());
            if let Some((line, column)) = bad.place {
                assert!(super::is_in(input, line, column), "{bad:?} is not in the file");
            }
            return;
        }
        differ => panic!("{differ:?}"),
    };
    assert!(!scripted.name().is_empty());
    for (dialect, body) in
        [(Dialect::Chat, CHAT), (Dialect::Responses, RESPONSES), (Dialect::Messages, MESSAGES)]
    {
        let asked = read_request(dialect, body).expect("it is a request");
        for attempt in 0..2 {
            answers(&scripted, dialect, &asked, attempt);
        }
    }
}

fn answers(scripted: &Scripted, dialect: Dialect, asked: &ModelRequest, attempt: u32) {
    let answer = scripted.answer_again(dialect, asked, attempt);
    assert_eq!(scripted.answer_again(dialect, asked, attempt), answer, "it is deterministic");
    match answer {
        Answer::Error { status, .. } => assert!((400..=599).contains(&status)),
        Answer::Whole { body, .. } => assert!(!body.is_empty()),
        Answer::Stream { steps, .. } => {
            let last = |step: &StreamStep| matches!(step, StreamStep::Cut | StreamStep::Forever { .. });
            let ends = steps.iter().position(last);
            assert!(ends.is_none_or(|at| at + 1 == steps.len()), "{steps:?}");
        }
    }
}
