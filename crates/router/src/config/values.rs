//! Values that are more than a text or a number: their rules, and what to write instead. An error never shows the value: it
//! may be a secret in the wrong place.

use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use herma_core::units::{Bytes, Span, Tokens, Usd};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

use super::names::{instead, model_name_problem, name_problem, shown};
use crate::budget::LARGEST;

/// The most significant digits that a floating-point number keeps.
const MAX_FLOAT_DIGITS: usize = 15;

const TOKENS: &str = "a number of tokens, like 5000, `200k` or `2M`";

/// Why a value is refused: the problem, which follows the path of the key, and what is expected.
pub(super) struct Flaw {
    pub(super) problem: String,
    pub(super) expected: String,
}

impl Flaw {
    pub(super) fn new(problem: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { problem: problem.into(), expected: expected.into() }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem, self.expected)
    }
}

/// Which numbers may be written without quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    None,
    Whole,
    Decimal,
}

/// Parses a text, or also a number, within the visitor: so the error has the place of the value.
struct Parsed<T, F> {
    expecting: &'static str,
    numbers: Numbers,
    rule: F,
    value: PhantomData<fn() -> T>,
}

impl<T, F: FnOnce(&str) -> Result<T, Flaw>> Visitor<'_> for Parsed<T, F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.rule)(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        if self.numbers != Numbers::None {
            return self.visit_str(&number.to_string());
        }
        Err(E::invalid_type(Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        if self.numbers != Numbers::None {
            return self.visit_str(&number.to_string());
        }
        Err(E::invalid_type(Unexpected::Unsigned(number), &self))
    }

    /// The shortest decimal that is this number: it is the written one, unless that has more digits than a float keeps.
    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        if self.numbers != Numbers::Decimal {
            return Err(E::invalid_type(Unexpected::Float(number), &self));
        }
        let text = number.to_string();
        if text.bytes().filter(u8::is_ascii_digit).count() > MAX_FLOAT_DIGITS {
            return Err(E::custom(Flaw::new("has too many digits for a number", "write it in quotes")));
        }
        self.visit_str(&text)
    }
}

/// A text that `parse` accepts.
pub(super) fn text<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expecting: &'static str,
    parse: impl FnOnce(&str) -> Result<T, Flaw>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Parsed {
        expecting,
        numbers: Numbers::None,
        rule: parse,
        value: PhantomData,
    })
}

/// One of several words.
pub(super) fn word<'de, D: Deserializer<'de>, T: Copy>(
    deserializer: D,
    expecting: &'static str,
    problem: &'static str,
    words: &[(&'static str, T)],
) -> Result<T, D::Error> {
    text(deserializer, expecting, |text| {
        let known = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        known.ok_or_else(|| Flaw::new(problem, instead(text, &names)))
    })
}

/// A quantity. A number is a text too, as it is written.
fn quantity<'de, D: Deserializer<'de>, T: FromStr>(
    deserializer: D,
    numbers: Numbers,
    expecting: &'static str,
    bound: impl FnOnce(T) -> Result<u64, Flaw>,
) -> Result<u64, D::Error> {
    let parse = |text: &str| {
        let quantity =
            text.parse().map_err(|_| Flaw::new("cannot be read", format!("expected {expecting}")))?;
        bound(quantity)
    };
    deserializer.deserialize_any(Parsed { expecting, numbers, rule: parse, value: PhantomData })
}

/// An amount of US dollars, in millionths.
pub(super) fn micro_usd<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    const EXPECTING: &str = "an amount of US dollars, like `2.00`, with at most six places";
    quantity::<D, Usd>(deserializer, Numbers::Decimal, EXPECTING, |usd| countable(usd.0))
}

/// A size that is not zero, in bytes.
pub(super) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    const EXPECTING: &str = "an amount of memory, like `32MiB`";
    quantity::<D, Bytes>(deserializer, Numbers::None, EXPECTING, |bytes| positive(bytes.0))
}

/// A duration that is not zero.
pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    const EXPECTING: &str = "a length of time, like `250ms`, `90s` or `20m`";
    let milliseconds = quantity::<D, Span>(deserializer, Numbers::None, EXPECTING, |span| positive(span.0))?;
    Ok(Duration::from_millis(milliseconds))
}

/// A number of tokens, for a key that can be left out.
pub(super) fn maybe_tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    quantity::<D, Tokens>(deserializer, Numbers::Whole, TOKENS, |tokens| countable(tokens.0)).map(Some)
}

/// The same, and not zero.
pub(super) fn maybe_some_tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let bound = |tokens: Tokens| positive(tokens.0).and_then(countable);
    quantity(deserializer, Numbers::Whole, TOKENS, bound).map(Some)
}

/// An amount of US dollars in millionths, for a key that can be left out.
pub(super) fn maybe_micro_usd<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    micro_usd(deserializer).map(Some)
}

/// A number of requests, for a key that can be left out.
pub(super) fn maybe_requests<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    whole(deserializer, countable).map(Some)
}

/// A whole number within bounds.
pub(super) fn whole<'de, D: Deserializer<'de>>(
    deserializer: D,
    bound: impl FnOnce(u64) -> Result<u64, Flaw>,
) -> Result<u64, D::Error> {
    deserializer.deserialize_any(Whole(bound))
}

struct Whole<F>(F);

impl<F: FnOnce(u64) -> Result<u64, Flaw>> Visitor<'_> for Whole<F> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::custom(Flaw::new("is negative", "expected a whole number"))),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        (self.0)(number).map_err(E::custom)
    }
}

/// A number that is not zero.
pub(super) fn positive(number: u64) -> Result<u64, Flaw> {
    if number == 0 { Err(Flaw::new("is zero", "expected more than that")) } else { Ok(number) }
}

/// Budgets count up to [`LARGEST`].
fn countable(number: u64) -> Result<u64, Flaw> {
    if number > LARGEST { Err(too_large()) } else { Ok(number) }
}

pub(super) fn too_large() -> Flaw {
    Flaw::new("is too large", "expected a smaller number")
}

/// The name of an upstream, a client or an engine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(pub(super) String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "a name", |text| match name_problem(text) {
            Some(expected) => Err(Flaw::new("is not a name", expected)),
            None => Ok(Self(text.to_owned())),
        })
    }
}

/// The name of a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ModelId(pub(super) String);

impl<'de> Deserialize<'de> for ModelId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "the name of a model", |text| match model_name_problem(text) {
            Some(expected) => Err(Flaw::new(format!("is not a model's name: {}", shown(text)), expected)),
            None => Ok(Self(text.to_owned())),
        })
    }
}

/// An upstream and a model there: `upstream/model`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UpstreamModel {
    pub(super) upstream: String,
    pub(super) model: String,
}

impl UpstreamModel {
    /// As it is written.
    pub(super) fn written(&self) -> String {
        format!("{}/{}", self.upstream, self.model)
    }
}

impl<'de> Deserialize<'de> for UpstreamModel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "`upstream/model`, in quotes", |text| {
            let Some((upstream, model)) = text.split_once('/') else {
                let expected = "expected an upstream's name, `/`, and the model's name there";
                return Err(Flaw::new("is not `upstream/model`", expected));
            };
            if let Some(expected) = name_problem(upstream) {
                return Err(Flaw::new("does not start with an upstream's name", expected));
            }
            if let Some(expected) = model_name_problem(model) {
                return Err(Flaw::new("does not end with a model's name", expected));
            }
            Ok(Self { upstream: upstream.to_owned(), model: model.to_owned() })
        })
    }
}

/// A path, absolute or relative to the configuration.
#[derive(Clone, Debug)]
pub(super) struct FilePath(String);

impl FilePath {
    pub(super) fn from(&self, base: &Path) -> PathBuf {
        base.join(&self.0)
    }
}

impl<'de> Deserialize<'de> for FilePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "a path", |text| match path_problem(text) {
            Some(problem) => Err(Flaw::new(problem, "expected a path, absolute or relative to this file")),
            None => Ok(Self(text.to_owned())),
        })
    }
}

/// Why a text is not a path.
pub(super) fn path_problem(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        Some("is empty")
    } else if text.starts_with('~') {
        Some("starts with `~`, which only a shell understands")
    } else if text.chars().any(char::is_control) {
        Some("holds a control character")
    } else {
        None
    }
}
