//! The sources of secrets. The configuration names the source; the value is read when the router starts.

use std::fmt;
use std::path::{Path, PathBuf};

use herma_core::secret::Secret;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::names::looks_like_a_key;
use super::table::{Table, TableType};
use super::url::check_url;
use super::values::{FilePath, Flaw, text};

/// The suggestion for a secret.
pub(super) const EXPECTED: &str = "expected its source: `{ env = \"NAME\" }`, `{ file = \"PATH\" }` or \
                                   `{ keyring = { service = \"SERVICE\", user = \"USER\" } }`";

/// The source of a key or a token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeySource {
    /// A variable of the router's environment.
    Environment(String),
    /// A file that only its owner reads.
    File(PathBuf),
    /// The keyring of the system.
    Keyring {
        /// The service.
        service: String,
        /// The user.
        user: String,
    },
}

/// The source of an upstream's URL. An endpoint is as secret as a key.
#[derive(Clone, Debug)]
pub enum UrlSource {
    /// The configuration itself.
    Literal(Secret<String>),
    /// A variable of the router's environment.
    Environment(String),
    /// A file that only its owner reads.
    File(PathBuf),
}

/// The source of a key or a token, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SourceTable {
    env: Option<Variable>,
    file: Option<FilePath>,
    keyring: Option<Table<KeyringTable>>,
}

impl TableType for SourceTable {
    const EXPECTING: &'static str = "its source, like `{ env = \"NAME\" }`";
}

/// An item of the system's keyring.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyringTable {
    service: Label,
    user: Label,
}

impl TableType for KeyringTable {
    const EXPECTING: &'static str = "`{ service = \"SERVICE\", user = \"USER\" }`";
}

/// A URL, or its source.
pub(super) enum UrlValue {
    Literal(Secret<String>),
    Source(UrlTable),
}

/// The source of a URL, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UrlTable {
    env: Option<Variable>,
    file: Option<FilePath>,
}

/// The name of an environment variable.
struct Variable(String);

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "the name of a variable", |name| {
            let letter = |b: u8| b.is_ascii_uppercase() || b == b'_';
            let is_valid = name.len() <= 64
                && name.bytes().next().is_some_and(letter)
                && name.bytes().all(|b| letter(b) || b.is_ascii_digit())
                && !looks_like_a_key(name);
            if is_valid {
                return Ok(Self(name.to_owned()));
            }
            let expected = "expected its name, in capital letters, digits and `_`, and not its value";
            Err(Flaw::new("is not the name of a variable", expected))
        })
    }
}

/// A label of an item in the keyring.
struct Label(String);

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "a text", |text| {
            let is_valid = !text.is_empty()
                && text.len() <= 128
                && !text.chars().any(char::is_control)
                && !looks_like_a_key(text);
            if is_valid {
                return Ok(Self(text.to_owned()));
            }
            Err(Flaw::new("is no label of a keyring", "expected its name there"))
        })
    }
}

impl<'de> Deserialize<'de> for UrlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UrlVisitor)
    }
}

struct UrlVisitor;

impl<'de> Visitor<'de> for UrlVisitor {
    type Value = UrlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a URL, or its source: `{ env = \"NAME\" }` or `{ file = \"PATH\" }`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<UrlValue, E> {
        Ok(UrlValue::Literal(Secret::new(text.to_owned())))
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<UrlValue, M::Error> {
        UrlTable::deserialize(MapAccessDeserializer::new(map)).map(UrlValue::Source)
    }
}

impl SourceTable {
    /// The one source that is named.
    pub(super) fn resolve(&self, base: &Path) -> Result<KeySource, Flaw> {
        match (&self.env, &self.file, &self.keyring) {
            (Some(name), None, None) => Ok(KeySource::Environment(name.0.clone())),
            (None, Some(file), None) => secret_file(file, base).map(KeySource::File),
            (None, None, Some(item)) => {
                Ok(KeySource::Keyring { service: item.service.0.clone(), user: item.user.0.clone() })
            }
            (None, None, None) => Err(Flaw::new("names no source", EXPECTED)),
            _ => Err(Flaw::new("names more than one source", EXPECTED)),
        }
    }
}

impl UrlValue {
    /// The one source that is named, or a URL to which keys may be sent.
    pub(super) fn resolve(&self, plain_http: bool, base: &Path) -> Result<UrlSource, Flaw> {
        const EXPECTED: &str = "expected its source: `{ env = \"NAME\" }` or `{ file = \"PATH\" }`";
        match self {
            Self::Literal(url) => match check_url(url.expose(), plain_http) {
                Ok(url) => Ok(UrlSource::Literal(Secret::new(url))),
                Err(bad) => Err(Flaw::new(bad.problem, bad.expected)),
            },
            Self::Source(UrlTable { env: Some(name), file: None }) => {
                Ok(UrlSource::Environment(name.0.clone()))
            }
            Self::Source(UrlTable { env: None, file: Some(file) }) => {
                secret_file(file, base).map(UrlSource::File)
            }
            Self::Source(UrlTable { env: None, file: None }) => Err(Flaw::new("names no source", EXPECTED)),
            Self::Source(_) => Err(Flaw::new("names more than one source", EXPECTED)),
        }
    }
}

fn secret_file(file: &FilePath, base: &Path) -> Result<PathBuf, Flaw> {
    let path = file.from(base);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if looks_like_a_key(name) {
        return Err(Flaw::new(
            "names a file that looks like a key",
            "expected the path of the file that holds it",
        ));
    }
    Ok(path)
}
