//! Scripts that people write, for the engine `fake` and for the scripted upstream: from a file's bytes to a script, or to
//! an error that points at the line.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_saphyr::{DuplicateKeyPolicy, Error as YamlError, Options};

use crate::yaml::{nearest, without_place};

/// The largest script: room for a few files in it.
pub const MAX_BYTES: usize = 8 << 20;

/// The parts of messages that depend on the kind of script.
#[derive(Clone, Copy, Debug)]
pub struct ScriptWords {
    /// The advice if an entry of a list has a second key.
    pub one_key: &'static str,
    /// The expected first key of the file.
    pub begins_with: &'static str,
}

/// Why a file is not a script, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadScript {
    /// The line and the column, from 1, where they are known.
    pub place: Option<(u64, u64)>,
    /// The problem, and the expected content.
    pub problem: String,
}

impl fmt::Display for BadScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for BadScript {}

/// Reads a script from a file's bytes.
pub fn parse<T: DeserializeOwned>(bytes: &[u8], words: ScriptWords) -> Result<T, BadScript> {
    let bad = |place, problem| BadScript { place, problem };
    if bytes.len() > MAX_BYTES {
        let problem = format!("the file has {} bytes; expected at most {MAX_BYTES}", bytes.len());
        return Err(bad(None, problem));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let lines: Vec<&[u8]> = bytes[..e.valid_up_to()].split(|b| *b == b'\n').collect();
        let column = 1 + lines.last().map_or(0, |line| line.len());
        bad(Some((lines.len() as u64, column as u64)), "the file is not UTF-8".to_owned())
    })?;
    serde_saphyr::from_str_with_options(text, options()).map_err(|e| {
        let place = e.location().map(|place| (place.line(), place.column())).filter(|(line, _)| *line > 0);
        bad(place, explain(&e, words))
    })
}

fn options() -> Options {
    let budget = serde_saphyr::budget! {
        max_aliases: 0,
        max_anchors: 0,
        max_depth: 32,
        max_documents: 1,
        max_total_scalar_bytes: MAX_BYTES,
    };
    serde_saphyr::options! {
        budget: budget,
        duplicate_keys: DuplicateKeyPolicy::Error,
        strict_booleans: true,
        with_snippet: false,
    }
}

/// The parser's error in our words: what was found, and the nearest thing that is known.
fn explain(error: &YamlError, words: ScriptWords) -> String {
    match error.without_snippet() {
        YamlError::SerdeUnknownField { field, expected, .. } => {
            format!("unknown key `{field}`; {}", instead(field, expected))
        }
        YamlError::SerdeUnknownVariant { variant, expected, .. } => {
            format!("`{variant}` is not known here; {}", instead(variant, expected))
        }
        YamlError::SerdeMissingField { field, .. } => format!("`{field}` is missing"),
        YamlError::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{key}` occurs twice")
        }
        YamlError::ExpectedMappingEndAfterEnumVariantValue { .. } => words.one_key.to_owned(),
        YamlError::InvalidScalar { ty: "u8", .. } => up_to(u8::MAX.into()),
        YamlError::InvalidScalar { ty: "u16", .. } => up_to(u16::MAX.into()),
        YamlError::InvalidScalar { ty: "u32", .. } => up_to(u32::MAX),
        YamlError::InvalidScalar { ty: "u64" | "usize", .. } => "expected a whole number".to_owned(),
        YamlError::InvalidBooleanStrict { .. } => "expected `true` or `false`".to_owned(),
        YamlError::Unexpected { expected: "sequence start", .. } => {
            "expected a list, like `[first, second]`".to_owned()
        }
        YamlError::Unexpected { expected: "mapping start", .. } => {
            "expected keys and values, like `{ key: value }`".to_owned()
        }
        YamlError::Eof { .. } => format!("the file ends here; expected {}", words.begins_with),
        YamlError::Budget { breach, .. } => {
            format!(
                "the script is too complex ({breach:?}); expected one document without anchors and aliases"
            )
        }
        other => without_place(other),
    }
}

fn up_to(most: u32) -> String {
    format!("expected a whole number from 0 to {most}")
}

fn instead(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("expected one of: {}", known.join(", ")),
    }
}
