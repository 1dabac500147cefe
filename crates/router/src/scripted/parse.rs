//! From a script's bytes to a script, or to an error that points at the line.

use std::fmt;

use serde_saphyr::{DuplicateKeyPolicy, Error as YamlError, Options};

use super::script::Script;

/// The largest script: room for a few files in it.
pub const MAX_BYTES: usize = 8 << 20;

/// Why a file is not a script, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadScript {
    /// The line and the column, from 1, where they are known.
    pub place: Option<(u64, u64)>,
    /// What was found, and what was expected.
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

impl Script {
    /// Reads a script from a file's bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadScript> {
        let bad = |problem: String| BadScript { place: None, problem };
        if bytes.len() > MAX_BYTES {
            return Err(bad(format!("the file has {} bytes; expected at most {MAX_BYTES}", bytes.len())));
        }
        let text = std::str::from_utf8(bytes).map_err(|e| {
            let before = &bytes[..e.valid_up_to()];
            let lines: Vec<&[u8]> = before.split(|b| *b == b'\n').collect();
            let column = 1 + lines.last().map_or(0, |line| line.len());
            BadScript {
                place: Some((lines.len() as u64, column as u64)),
                problem: "the file is not UTF-8".to_owned(),
            }
        })?;
        serde_saphyr::from_str_with_options(text, options()).map_err(|e| explain(&e))
    }
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

/// Turns the parser's error into ours: what was found, where, and the nearest thing that is known.
fn explain(error: &YamlError) -> BadScript {
    let problem = match error.without_snippet() {
        YamlError::SerdeUnknownField { field, expected, .. } => {
            format!("unknown key `{field}`; {}", instead(field, expected))
        }
        YamlError::SerdeUnknownVariant { variant, expected, .. } => {
            format!("`{variant}` is not known here; {}", instead(variant, expected))
        }
        YamlError::SerdeMissingField { field, .. } => format!("`{field}` is missing"),
        YamlError::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{key}` stands there twice")
        }
        YamlError::ExpectedMappingEndAfterEnumVariantValue { .. } => {
            "a call has one key; put further ones into `calls: [...]`".to_owned()
        }
        YamlError::InvalidScalar { ty: "u16", .. } => "expected a whole number up to 65535".to_owned(),
        YamlError::InvalidScalar { ty: "u32" | "u64" | "usize", .. } => "expected a whole number".to_owned(),
        YamlError::InvalidBooleanStrict { .. } => "expected `true` or `false`".to_owned(),
        YamlError::Unexpected { expected: "sequence start", .. } => {
            "expected a list, like `[first, second]`".to_owned()
        }
        YamlError::Unexpected { expected: "mapping start", .. } => {
            "expected keys and values, like `{ key: value }`".to_owned()
        }
        YamlError::Eof { .. } => {
            "the file ends here; expected `name:` and `turns:` with a list of turns".to_owned()
        }
        YamlError::Budget { breach, .. } => {
            format!(
                "the script is too complex ({breach:?}); expected one document without anchors and aliases"
            )
        }
        other => {
            let text = other.to_string();
            // The parser appends the place, which we say ourselves.
            text.split(" at line ").next().unwrap_or(&text).to_owned()
        }
    };
    let place = error.location().map(|place| (place.line(), place.column())).filter(|(line, _)| *line > 0);
    BadScript { place, problem }
}

fn instead(word: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min();
    match nearest {
        Some((_, near)) => format!("did you mean `{near}`?"),
        None => format!("expected one of: {}", known.join(", ")),
    }
}
