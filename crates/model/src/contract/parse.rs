//! From the file's bytes to a contract, or to an error that points at the line.

use std::fmt;

use serde_saphyr::{DuplicateKeyPolicy, Error as YamlError, Options};

use super::{Contract, Terms};

/// A contract is a page of text; what is larger is not one.
pub const MAX_BYTES: u64 = 1 << 20;

/// Why a file is not a contract, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadContract {
    /// The line, from 1, where it is known.
    pub line: Option<u64>,
    /// The column, from 1, where it is known.
    pub column: Option<u64>,
    /// What was found.
    pub problem: String,
    /// What was expected; empty where the problem says it already.
    pub expected: String,
}

impl BadContract {
    fn new(problem: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { line: None, column: None, problem: problem.into(), expected: expected.into() }
    }

    /// The error for a file that is larger than any contract, so that a caller need not read it first.
    #[must_use]
    pub fn too_large(bytes: u64) -> Self {
        Self::new(
            format!("the file has {bytes} bytes"),
            format!("expected a contract of at most {MAX_BYTES} bytes"),
        )
    }

    fn at(mut self, line: u64, column: u64) -> Self {
        (self.line, self.column) = (Some(line), Some(column));
        self
    }
}

impl fmt::Display for BadContract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.problem)?;
        if self.expected.is_empty() { Ok(()) } else { write!(f, "; {}", self.expected) }
    }
}

impl std::error::Error for BadContract {}

impl Contract {
    /// Reads a contract from a file's bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadContract> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(BadContract::too_large(bytes.len() as u64));
        }
        let text = std::str::from_utf8(bytes).map_err(|e| {
            let lines: Vec<&[u8]> = bytes[..e.valid_up_to()].split(|b| *b == b'\n').collect();
            let column = 1 + lines.last().map_or(0, |line| line.len());
            BadContract::new("the file is not UTF-8", "expected UTF-8 text")
                .at(lines.len() as u64, column as u64)
        })?;
        let (front, brief) = split(text)?;
        let terms: Terms = serde_saphyr::from_str_with_options(front, options()).map_err(|e| explain(&e))?;
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
        Ok(Self { terms, brief: brief.to_owned() })
    }
}

/// Front matter with its opening line, so that line numbers are those of the file, and the brief.
fn split(text: &str) -> Result<(&str, &str), BadContract> {
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

fn options() -> Options {
    let budget = serde_saphyr::budget! {
        max_events: 20_000,
        max_aliases: 0,
        max_anchors: 0,
        max_depth: 16,
        max_nodes: 10_000,
        max_documents: 1,
    };
    serde_saphyr::options! {
        budget: budget,
        duplicate_keys: DuplicateKeyPolicy::Error,
        strict_booleans: true,
        with_snippet: false,
    }
}

/// Turns the parser's error into ours: what was found, what was expected, and the nearest known key.
fn explain(error: &YamlError) -> BadContract {
    let bad = match error.without_snippet() {
        YamlError::SerdeUnknownField { field, expected, .. } => {
            let nearest = nearest(field, expected);
            BadContract::new(
                format!("unknown key `{field}`"),
                match nearest {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("expected one of: {}", expected.join(", ")),
                },
            )
        }
        YamlError::SerdeUnknownVariant { variant, expected, .. } => BadContract::new(
            format!("`{variant}` is not known here"),
            match nearest(variant, expected) {
                Some(near) => format!("did you mean `{near}`? expected one of: {}", expected.join(", ")),
                None => format!("expected one of: {}", expected.join(", ")),
            },
        ),
        YamlError::SerdeMissingField { field, .. } => BadContract::new(
            format!("`{field}` is missing"),
            format!("add `{field}:` to the front matter; docs/contract.md says what it means"),
        ),
        YamlError::DuplicateMappingKey { key, .. } => BadContract::new(
            match key {
                Some(key) => format!("the key `{key}` stands there twice"),
                None => "a key stands there twice".to_owned(),
            },
            "expected each key once",
        ),
        YamlError::InvalidScalar { ty: "u8", .. } => {
            BadContract::new("this is not a stage", "expected a whole number from 1 to 6")
        }
        YamlError::InvalidBooleanStrict { .. } => {
            BadContract::new("this is not a yes or no", "expected `true` or `false`")
        }
        YamlError::Unexpected { expected, .. } => BadContract::new(
            "a value of another kind stands here",
            match *expected {
                "sequence start" => "expected a list, like `[first, second]`".to_owned(),
                "mapping start" => "expected keys and values, like `{ key: value }`".to_owned(),
                other => format!("expected {other}"),
            },
        ),
        YamlError::Budget { breach, .. } => BadContract::new(
            format!("the front matter is too complex ({breach:?})"),
            "expected plain keys and lists, without anchors and aliases",
        ),
        // Our own words, from a value that refuses what it cannot mean.
        message @ YamlError::Message { .. } => BadContract::new(without_place(message), ""),
        other => BadContract::new(without_place(other), "expected YAML as docs/contract.md describes it"),
    };
    match error.location() {
        Some(place) if place.line() > 0 => bad.at(place.line(), place.column()),
        _ => bad,
    }
}

/// The parser appends the place, which we say ourselves.
fn without_place(error: &YamlError) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}
