//! YAML that people write: unknown keys are errors, and every error points at the line.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_saphyr::{DuplicateKeyPolicy, Error as YamlError, Options};

/// The document that the YAML is part of, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// The part of the file that holds the keys.
    pub(crate) part: &'static str,
    /// The page that says what they mean.
    pub(crate) docs: &'static str,
}

/// Why a text is not what it should be, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadYaml {
    /// The line, from 1, where it is known.
    pub line: Option<u64>,
    /// The column, from 1, where it is known.
    pub column: Option<u64>,
    /// The problem.
    pub problem: String,
    /// The expected content; empty if the problem says it already.
    pub expected: String,
}

impl BadYaml {
    /// A problem without a place, and the expected content.
    #[must_use]
    pub fn new(problem: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { line: None, column: None, problem: problem.into(), expected: expected.into() }
    }

    /// The error for a file that is larger than any of its kind, so that a caller need not read it first.
    #[must_use]
    pub fn too_large(what: &str, bytes: u64, most: u64) -> Self {
        Self::new(format!("the file has {bytes} bytes"), format!("expected {what} of at most {most} bytes"))
    }

    pub(crate) fn at(mut self, line: u64, column: u64) -> Self {
        (self.line, self.column) = (Some(line), Some(column));
        self
    }
}

impl fmt::Display for BadYaml {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.problem)?;
        if self.expected.is_empty() { Ok(()) } else { write!(f, "; {}", self.expected) }
    }
}

impl std::error::Error for BadYaml {}

/// The file's text: not too large, and UTF-8.
pub(crate) fn text<'a>(bytes: &'a [u8], what: &str, most: u64) -> Result<&'a str, BadYaml> {
    if bytes.len() as u64 > most {
        return Err(BadYaml::too_large(what, bytes.len() as u64, most));
    }
    std::str::from_utf8(bytes).map_err(|e| {
        let lines: Vec<&[u8]> = bytes[..e.valid_up_to()].split(|b| *b == b'\n').collect();
        let column = 1 + lines.last().map_or(0, |line| line.len());
        BadYaml::new("the file is not UTF-8", "expected UTF-8 text").at(lines.len() as u64, column as u64)
    })
}

/// Reads one value.
pub(crate) fn read<T: DeserializeOwned>(text: &str, page: Page) -> Result<T, BadYaml> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|e| explain(&e, page))
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
fn explain(error: &YamlError, page: Page) -> BadYaml {
    let bad = match error.without_snippet() {
        YamlError::SerdeUnknownField { field, expected, .. } => {
            let nearest = nearest(field, expected);
            BadYaml::new(
                format!("unknown key `{field}`"),
                match nearest {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("expected one of: {}", expected.join(", ")),
                },
            )
        }
        YamlError::SerdeUnknownVariant { variant, expected, .. } => BadYaml::new(
            format!("`{variant}` is not known here"),
            match nearest(variant, expected) {
                Some(near) => format!("did you mean `{near}`? expected one of: {}", expected.join(", ")),
                None => format!("expected one of: {}", expected.join(", ")),
            },
        ),
        YamlError::SerdeMissingField { field, .. } => BadYaml::new(
            format!("`{field}` is missing"),
            format!("add `{field}:` to {}; {} says what it means", page.part, page.docs),
        ),
        YamlError::DuplicateMappingKey { key, .. } => BadYaml::new(
            match key {
                Some(key) => format!("the key `{key}` occurs twice"),
                None => "a key occurs twice".to_owned(),
            },
            "expected each key once",
        ),
        YamlError::InvalidScalar { ty: "u8", .. } => {
            BadYaml::new("this is not a stage", "expected a whole number from 1 to 6")
        }
        YamlError::InvalidBooleanStrict { .. } => {
            BadYaml::new("this is not a yes or no", "expected `true` or `false`")
        }
        YamlError::Unexpected { expected, .. } => BadYaml::new(
            "a value of another kind stands here",
            match *expected {
                "sequence start" => "expected a list, like `[first, second]`".to_owned(),
                "mapping start" => "expected keys and values, like `{ key: value }`".to_owned(),
                other => format!("expected {other}"),
            },
        ),
        YamlError::Budget { breach, .. } => BadYaml::new(
            format!("{} is too complex ({breach:?})", page.part),
            "expected plain keys and lists, without anchors and aliases",
        ),
        // Our own words, from a value that refuses what it cannot mean.
        message @ YamlError::Message { .. } => BadYaml::new(without_place(message), ""),
        other => BadYaml::new(without_place(other), format!("expected YAML as {} describes it", page.docs)),
    };
    match error.location() {
        Some(place) if place.line() > 0 => bad.at(place.line(), place.column()),
        _ => bad,
    }
}

/// The parser's message, without the position that it appends: the caller reports the position.
pub(crate) fn without_place(error: &YamlError) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// The known word that is written almost like this one.
#[must_use]
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}
