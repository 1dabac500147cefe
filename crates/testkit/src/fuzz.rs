//! The fuzz targets: each takes any bytes and panics where something that must hold does not.
//!
//! `fuzz/` runs them under libFuzzer, the test `corpus` of package herma runs them over `fuzz/corpus`.

mod acp_output;
mod bundle;
mod case_output;
mod claude_output;
mod codex_output;
mod contract;
mod engine_output;
mod envelope;
mod events;
mod hermes_output;
mod http_head;
mod opencode_output;
mod patch;
mod paths;
mod pi_output;
mod redactor;
mod report;
mod request;
mod router_script;
mod script;
mod sse;
mod usage;

use herma_dialect::Dialect;
use herma_engines::{AgentEvent, DialogueAction, OutputReader, PermissionRequest};
use serde::Deserialize;
use serde_json::Value;

pub use acp_output::acp_output;
pub use bundle::bundle;
pub use case_output::case_output;
pub use claude_output::claude_output;
pub use codex_output::codex_output;
pub use contract::contract;
pub use engine_output::engine_output;
pub use envelope::envelope;
pub use events::events;
pub use hermes_output::hermes_output;
pub use http_head::http_head;
pub use opencode_output::opencode_output;
pub use patch::patch;
pub use paths::paths;
pub use pi_output::pi_output;
pub use redactor::redactor;
pub use report::report;
pub use request::request;
pub use router_script::router_script;
pub use script::script;
pub use sse::sse;
pub use usage::usage;

/// A target, by the name of its directory in `fuzz/corpus`.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("acp_output", acp_output),
    ("bundle", bundle),
    ("case_output", case_output),
    ("claude_output", claude_output),
    ("codex_output", codex_output),
    ("contract", contract),
    ("engine_output", engine_output),
    ("envelope", envelope),
    ("events", events),
    ("hermes_output", hermes_output),
    ("http_head", http_head),
    ("opencode_output", opencode_output),
    ("patch", patch),
    ("paths", paths),
    ("pi_output", pi_output),
    ("redactor", redactor),
    ("report", report),
    ("request", request),
    ("router_script", router_script),
    ("script", script),
    ("sse", sse),
    ("usage", usage),
];

/// The first byte, by which a target decides something, and the rest.
fn choice(input: &[u8]) -> (usize, &[u8]) {
    input.split_first().map_or((0, input), |(first, rest)| (usize::from(*first), rest))
}

/// The objects by which one of the agents says that it ended.
const ENDS: [&str; 6] = ["turn.completed", "turn.failed", "result", "step_finish", "error", "agent_settled"];

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type")]
    kind: String,
}

/// Reads the output of a real agent line by line.
fn agent_output(reader: &mut dyn OutputReader, output: &[u8]) {
    for line in output.split(|b| *b == b'\n') {
        let all = match reader.line(line) {
            None => continue,
            Some(AgentEvent::Malformed(why)) => {
                assert!((1..=200).contains(&why.chars().count()));
                continue;
            }
            Some(AgentEvent::All(all)) => all,
            Some(said) => vec![said],
        };
        let text = String::from_utf8_lossy(line.trim_ascii());
        // Parts that nobody reads may be wrong in a small way: half of a character, a number that is too large.
        assert!(text.starts_with('{'), "what is understood is an object");
        let Typed { kind } = serde_json::from_str(&text).expect("it is JSON, and says its type");
        let ended = ENDS.contains(&kind.as_str());
        for said in all {
            assert!(ended || !matches!(said, AgentEvent::Result(_)), "{kind} is no end");
        }
    }
}

/// The lines that herma sends with these actions.
fn said_by(turns: &[DialogueAction]) -> Vec<Value> {
    let lines = turns.iter().flat_map(|turn| match turn {
        DialogueAction::Say(line) | DialogueAction::ShutdownMessage(line) => vec![line.clone()],
        DialogueAction::Answer(PermissionRequest { yes, no, .. }) => {
            yes.iter().cloned().chain([no.clone().because("it is \"forbidden\"\nhere")]).collect()
        }
        DialogueAction::End => Vec::new(),
    });
    let read = |line: String| {
        assert!(!line.contains('\n'), "a message is one line");
        serde_json::from_str(&line).expect("it is JSON")
    };
    lines.map(read).collect()
}

/// The dialect that the first byte names, and the rest.
fn dialect(input: &[u8]) -> (Dialect, &[u8]) {
    let (which, rest) = choice(input);
    ([Dialect::Chat, Dialect::Responses, Dialect::Messages][which % 3], rest)
}

/// Whether a position that an error names is in the text, or right behind its end.
fn is_in(text: &[u8], line: u64, column: u64) -> bool {
    // A carriage return alone ends a line too, for YAML.
    let ends = text.iter().filter(|b| matches!(b, b'\n' | b'\r')).count() as u64;
    (1..=ends + 2).contains(&line) && (1..=text.len() as u64 + 2).contains(&column)
}
