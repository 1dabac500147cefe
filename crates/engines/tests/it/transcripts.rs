//! The transcripts of recorded streams of real agents.

use std::collections::BTreeMap;

use herma_core::Contract;
use herma_core::transcript::TranscriptEntry;
use herma_engines::{Assignment, Registry};
use proptest::prelude::*;
use serde_json::Value;

/// The recorded streams: the engine, the stream's name and its text.
const STREAMS: [(&str, &str, &str); 18] = [
    ("codex", "codex", include_str!("streams/codex.jsonl")),
    ("codex", "codex-auth-error", include_str!("streams/codex-auth-error.jsonl")),
    ("codex", "codex-resume", include_str!("streams/codex-resume.jsonl")),
    ("claude", "claude", include_str!("streams/claude.jsonl")),
    ("claude", "claude-auth-error", include_str!("streams/claude-auth-error.jsonl")),
    ("claude", "claude-refused", include_str!("streams/claude-refused.jsonl")),
    ("claude", "claude-resume", include_str!("streams/claude-resume.jsonl")),
    ("opencode", "opencode", include_str!("streams/opencode.jsonl")),
    ("opencode", "opencode-auth-error", include_str!("streams/opencode-auth-error.jsonl")),
    ("pi", "pi", include_str!("streams/pi.jsonl")),
    ("pi", "pi-auth-error", include_str!("streams/pi-auth-error.jsonl")),
    ("pi", "pi-resume", include_str!("streams/pi-resume.jsonl")),
    ("hermes", "hermes", include_str!("streams/hermes.jsonl")),
    ("hermes", "hermes-auth-error", include_str!("streams/hermes-auth-error.jsonl")),
    ("acp-some", "acp-claude", include_str!("streams/acp-claude.jsonl")),
    ("acp-some", "acp-codex", include_str!("streams/acp-codex.jsonl")),
    ("acp-some", "acp-hermes", include_str!("streams/acp-hermes.jsonl")),
    ("acp-some", "acp-opencode", include_str!("streams/acp-opencode.jsonl")),
];

/// The agent's side of a recorded dialogue; another stream as it is.
fn output(stream: &str, text: &str) -> Vec<u8> {
    if !stream.starts_with("acp-") {
        return text.as_bytes().to_vec();
    }
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let own = lines.filter(|line| line["dir"] == "<-").map(|line| format!("{}\n", line["msg"]));
    own.collect::<String>().into_bytes()
}

fn transcript(engine: &str, output: &[u8]) -> Vec<TranscriptEntry> {
    let text = "---\nid: t\ntitle: t\ntarget: { repo: ../r }\nstage: 2\nallowed_paths: [a]\nverify: [\"true\"]\n---\nDo it.\n";
    let contract = Contract::parse(text.as_bytes()).unwrap();
    let acp = serde_json::from_str("{\"some\":{\"program\":\"bin/some\"}}").unwrap();
    let registry = Registry::new("/herma".into(), None, BTreeMap::new(), &acp);
    let engine = registry.get(&engine.parse().unwrap()).unwrap();
    let mut reader =
        engine.transcript(&Assignment { contract: &contract, script: None, resume: None, note: None });
    let lines = output.split(|byte| *byte == b'\n');
    let mut entries: Vec<_> = lines.flat_map(|line| reader.line(line)).collect();
    entries.extend(reader.finish());
    entries
}

#[test]
fn recorded_streams_of_real_agents_give_a_transcript() {
    for (engine, stream, text) in STREAMS {
        let lines = transcript(engine, &output(stream, text));
        let lines: Vec<String> = lines.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
        insta::assert_snapshot!(stream, lines.join("\n"));
    }
}

#[test]
fn the_result_of_an_agent_of_case_is_a_message_and_no_json() {
    let said = "[unattended] implementing\n<<<AGENT_RESULT\n{\"status\":\"completed\",\n\"summary\":\"done\"}\nAGENT_RESULT>>>\n\
                {\"type\":\"pipeline_end\",\"outcome\":\"completed\"}\n{\"other\":1}\n";
    let expected = [
        TranscriptEntry::Output { text: "implementing".into() },
        TranscriptEntry::Message { text: "agent result completed: done".into() },
        TranscriptEntry::Output { text: "the pipeline ended: completed".into() },
    ];
    assert_eq!(transcript("case", said.as_bytes()), expected);
}

proptest! {
    #[test]
    fn any_bytes_are_taken(stream in 0..STREAMS.len(), cuts in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 0..20)) {
        let (engine, stream, text) = STREAMS[stream];
        let mut bytes = output(stream, text);
        for (at, byte) in cuts {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        transcript(engine, &bytes);
    }
}
