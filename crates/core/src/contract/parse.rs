//! From the file's bytes to a contract, or to an error that points at the line.

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::{Contract, Terms};
use crate::environment::{DefinitionPositions, DefinitionRules};
use crate::units::Bytes;
pub use crate::yaml::BadYaml as BadContract;
use crate::yaml::{self, Page};

/// A contract is a page of text; what is larger is not one.
pub const MAX_BYTES: u64 = 1 << 20;

/// herma's own program runs the probes behind the limit, and counts with all of its size.
const LEAST_MEMORY: Bytes = Bytes(128 << 20);

const PAGE: Page = Page { part: "the front matter", docs: "docs/contract.md" };

/// The entries of the key `egress`, each with its place.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Egress {
    egress: Vec<Spanned<String>>,
}

/// The values of the key `environment`, each with its place.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Environment {
    environment: DefinitionPositions,
}

impl BadContract {
    /// The problem of entry number `at` of the key `egress` of a contract that can be read.
    #[must_use]
    pub fn of_egress(bytes: &[u8], at: usize, problem: String) -> Self {
        let bad = Self::new(problem, "");
        let front = yaml::text(bytes, "a contract", MAX_BYTES).and_then(split);
        let entries = front.and_then(|(front, _)| yaml::read::<Egress>(front, PAGE));
        let place = entries.ok().and_then(|entries| entries.egress.get(at).map(|entry| entry.referenced));
        match place {
            Some(place) if place.line() > 0 => bad.at(place.line(), place.column()),
            _ => bad,
        }
    }
}

impl Contract {
    /// Reads a contract from a file's bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadContract> {
        let text = yaml::text(bytes, "a contract", MAX_BYTES)?;
        let (front, brief) = split(text)?;
        let terms: Terms = yaml::read(front, PAGE)?;
        if brief.trim().is_empty() {
            let line = 1 + text.lines().count() as u64;
            return Err(BadContract::new(
                "the brief is empty",
                "expected the task in words after the closing `---`",
            )
            .at(line, 1));
        }
        if terms.title.trim().is_empty() || terms.title.contains('\n') {
            return Err(BadContract::new("`title` is empty or has more than one line", "expected one line"));
        }
        if let Some(empty) = terms.verify.iter().position(|v| v.trim().is_empty() || v.contains('\0')) {
            return Err(BadContract::new(
                format!("`verify` has an empty command at position {}", empty + 1),
                "expected a shell command, like `sh test.sh`",
            ));
        }
        let limits = &terms.limits;
        let spans = [("total", limits.total), ("startup", limits.startup), ("idle", limits.idle)];
        if let Some((name, _)) = spans.into_iter().find(|(_, span)| span.0 == 0) {
            return Err(BadContract::new(
                format!("`limits.{name}` is no time at all"),
                "expected a time, like `90s` or `20m`",
            ));
        }
        if let Some(memory) = terms.limits.memory.filter(|memory| *memory < LEAST_MEMORY) {
            return Err(BadContract::new(
                format!("`limits.memory` is {memory}, in which not even herma's own probes can run"),
                format!("expected at least {LEAST_MEMORY}"),
            ));
        }
        Ok(Self { terms, brief: brief.to_owned() })
    }

    /// Checks the values of the contract's environment; `bytes` is the text that it was read from.
    pub fn check_environment(&self, bytes: &[u8], rules: DefinitionRules<'_>) -> Result<(), BadContract> {
        let Some(definition) = &self.terms.environment else { return Ok(()) };
        let front = yaml::text(bytes, "a contract", MAX_BYTES).and_then(split);
        let places = front.and_then(|(front, _)| yaml::read::<Environment>(front, PAGE));
        definition.check(&places.unwrap_or_default().environment, rules)
    }
}

/// Front matter with its opening line, so that line numbers are those of the file, and the brief.
pub(super) fn split(text: &str) -> Result<(&str, &str), BadContract> {
    let is_fence = |line: &str| line.trim_end_matches(['\n', '\r']) == "---";
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if !is_fence(first) {
        return Err(BadContract::new(
            "the file does not start with front matter",
            "expected `---` alone on the first line; `herma contract new` writes a contract to start from",
        )
        .at(1, 1));
    }
    let mut end = first.len();
    for line in lines {
        if is_fence(line) {
            return Ok((&text[..end], &text[end + line.len()..]));
        }
        end += line.len();
    }
    let line = text.lines().count() as u64;
    Err(BadContract::new("the front matter is not closed", "expected `---` alone on a line before the brief")
        .at(line, 1))
}
