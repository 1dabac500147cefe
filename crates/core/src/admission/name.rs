//! The names of the things that admissions permit.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AdmissionKind;
use crate::checked_text::{check_name, checked_text};
use crate::engine::EngineName;

/// The longest name of a file without its ending.
const MAX_STEM: usize = 200;

checked_text!(
    /// The name that contracts call an admitted target by.
    TargetName,
    |text| check_name(text, "a target's name")
);

checked_text!(
    /// The name of who serves a model.
    ProviderName,
    |text| check_name(text, "a provider's name")
);

checked_text!(
    /// The exact name of a model, as its provider spells it.
    ModelName,
    |text| {
        let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':' | b'/' | b'@' | b'+');
        if !text.is_empty() && text.len() <= 128 && text.bytes().all(letter) && stem(text).len() <= MAX_STEM - 64 {
            return Ok(());
        }
        let shown: String = text.chars().take(64).collect();
        Err(format!("`{shown}` is not a model's name: 1 to 128 letters, digits, `.`, `_`, `-`, `:`, `/`, `@` and `+`"))
    }
);

/// A model by its provider and its exact name, written `provider/model`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ModelRef {
    /// The provider that serves it.
    pub provider: ProviderName,
    /// Its exact name.
    pub model: ModelName,
}

impl FromStr for ModelRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (provider, model) =
            text.split_once('/').ok_or("a model is named PROVIDER/MODEL, like `openai/gpt-5`")?;
        Ok(Self { provider: provider.parse()?, model: model.parse()? })
    }
}

impl TryFrom<String> for ModelRef {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ModelRef> for String {
    fn from(model: ModelRef) -> Self {
        model.to_string()
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// The thing that an admission permits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdmissionId {
    /// An engine.
    Engine(EngineName),
    /// A model.
    Model(ModelRef),
    /// A target.
    Target(TargetName),
}

impl AdmissionId {
    /// The thing of this kind with this name.
    pub fn parse(kind: AdmissionKind, name: &str) -> Result<Self, String> {
        match kind {
            AdmissionKind::Engine => name.parse().map(Self::Engine),
            AdmissionKind::Model => name.parse().map(Self::Model),
            AdmissionKind::Target => name.parse().map(Self::Target),
        }
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> AdmissionKind {
        match self {
            Self::Engine(_) => AdmissionKind::Engine,
            Self::Model(_) => AdmissionKind::Model,
            Self::Target(_) => AdmissionKind::Target,
        }
    }

    /// Its name among those of its kind.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Engine(name) => name.to_string(),
            Self::Model(name) => name.to_string(),
            Self::Target(name) => name.to_string(),
        }
    }

    /// The thing that a file of this name, without its extension, admits.
    #[must_use]
    pub fn from_file_stem(kind: AdmissionKind, stem: &str) -> Option<Self> {
        let mut name = String::new();
        let mut rest = stem.chars();
        while let Some(c) = rest.next() {
            match c {
                '+' => name.push('/'),
                '%' => {
                    let code: String = rest.by_ref().take(2).collect();
                    name.push(char::from(u8::from_str_radix(&code, 16).ok()?));
                }
                other => name.push(other),
            }
        }
        // Only the one spelling is taken, so that no two files are about the same.
        Self::parse(kind, &name).ok().filter(|id| id.file_stem() == stem)
    }

    /// The name of its file without the ending. Two names never share a file.
    #[must_use]
    pub fn file_stem(&self) -> String {
        stem(&self.name())
    }
}

impl fmt::Display for AdmissionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind(), self.name())
    }
}

/// `/` becomes `+`, and what a file's name cannot hold, or could be taken for something else, is written by its
/// code.
fn stem(name: &str) -> String {
    let mut stem = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'/' => stem.push('+'),
            b'.' if at > 0 => stem.push('.'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => stem.push(char::from(byte)),
            other => {
                let _ = write!(stem, "%{other:02x}");
            }
        }
    }
    stem
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn models_have_readable_files() {
        let stem = |name| AdmissionId::parse(AdmissionKind::Model, name).unwrap().file_stem();
        assert_eq!(stem("openai/gpt-5"), "openai+gpt-5");
        assert_eq!(stem("router/meta/llama:8b"), "router+meta+llama%3a8b");
        assert_eq!(stem("a/b+c"), "a+b%2bc");
    }

    #[test]
    fn an_invalid_name_is_refused() {
        for name in ["", "gpt", "/gpt", "openai/", "OpenAI/gpt", "openai/a b", "../x/y", "o/\u{e9}"] {
            assert!(name.parse::<ModelRef>().is_err(), "{name}");
        }
        for name in ["", ".", "..", "../a", "a/b", "A", "-a", "a b"] {
            assert!(name.parse::<TargetName>().is_err(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn two_names_never_share_a_file(a in "[a-z][a-z0-9.]{0,3}/[a-zA-Z0-9._:/@+-]{1,6}", b in "[a-z][a-z0-9.]{0,3}/[a-zA-Z0-9._:/@+-]{1,6}") {
            let id = |name: &str| AdmissionId::parse(AdmissionKind::Model, name).unwrap();
            prop_assert_eq!(a == b, id(&a).file_stem() == id(&b).file_stem());
            prop_assert!(!id(&a).file_stem().contains('/'));
            prop_assert_eq!(AdmissionId::from_file_stem(AdmissionKind::Model, &id(&a).file_stem()), Some(id(&a)));
        }

        #[test]
        fn any_file_name_is_taken_or_passed_over(stem in "[a-z%+.0-9A-F\\u{e9}-]{0,12}") {
            for kind in AdmissionKind::ALL {
                if let Some(id) = AdmissionId::from_file_stem(kind, &stem) {
                    prop_assert_eq!(id.file_stem(), stem.clone());
                }
            }
        }
    }
}
