//! The fuzz targets: each takes any bytes and panics where something that must hold does not.
//!
//! `fuzz/` runs them under libFuzzer, the test `corpus` of herma-cli runs them over `fuzz/corpus`.

mod bundle;
mod contract;
mod engine_output;
mod envelope;
mod events;
mod patch;
mod paths;
mod redactor;
mod report;
mod request;
mod router_script;
mod script;
mod sse;
mod usage;

use herma_router::dialect::Dialect;

pub use bundle::bundle;
pub use contract::contract;
pub use engine_output::engine_output;
pub use envelope::envelope;
pub use events::events;
pub use patch::patch;
pub use paths::paths;
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
    ("bundle", bundle),
    ("contract", contract),
    ("engine_output", engine_output),
    ("envelope", envelope),
    ("events", events),
    ("patch", patch),
    ("paths", paths),
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

/// The dialect that the first byte names, and the rest.
fn dialect(input: &[u8]) -> (Dialect, &[u8]) {
    let (which, rest) = choice(input);
    ([Dialect::Chat, Dialect::Responses, Dialect::Messages][which % 3], rest)
}

/// Whether a place that an error names lies in the text, or right behind its end.
fn lies_in(text: &[u8], line: u64, column: u64) -> bool {
    // A carriage return alone ends a line too, for YAML.
    let ends = text.iter().filter(|b| matches!(b, b'\n' | b'\r')).count() as u64;
    (1..=ends + 2).contains(&line) && (1..=text.len() as u64 + 2).contains(&column)
}
