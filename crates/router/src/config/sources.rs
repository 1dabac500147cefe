//! Where secrets lie. The configuration names the place; the value is read when the router starts.

use std::path::PathBuf;

use herma_core::secret::Secret;

use super::document::{Keys, Noted, Read, Value};
use super::names::looks_like_a_key;
use super::url::check_url;

const EXPECTED: &str = "expected where it lies: `{ env = \"NAME\" }`, `{ file = \"PATH\" }` or \
                        `{ keyring = { service = \"SERVICE\", user = \"USER\" } }`";

/// Where a key or a token lies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeySource {
    /// A variable of the router's environment.
    Environment(String),
    /// A file that only its owner reads.
    File(PathBuf),
    /// The keyring of the system.
    Keyring {
        /// Under which service.
        service: String,
        /// Under which user.
        user: String,
    },
}

/// Where the URL of an upstream lies. An endpoint is as secret as a key.
#[derive(Clone, Debug)]
pub enum UrlSource {
    /// In the configuration itself.
    Literal(Secret<String>),
    /// A variable of the router's environment.
    Environment(String),
    /// A file that only its owner reads.
    File(PathBuf),
}

/// A key or a token.
pub(super) fn key(value: &Value<'_, '_>) -> Read<KeySource> {
    if value.as_text().is_some() {
        return value.refuse(
            "is written into the file, where everybody who reads the file has it",
            format!("{EXPECTED}; and take it out of use if others could read it"),
        );
    }
    let mut keys = value.keys("where it lies, like `{ env = \"NAME\" }`")?;
    let source = one_of(value, &mut keys, true);
    keys.done_unshown();
    source
}

/// The URL of an upstream.
pub(super) fn url(value: &Value<'_, '_>, plain_http: bool) -> Read<UrlSource> {
    if let Some(text) = value.as_text() {
        return match check_url(text, plain_http) {
            Ok(url) => Ok(UrlSource::Literal(Secret::new(url))),
            Err(bad) => value.refuse(bad.problem, bad.expected),
        };
    }
    let mut keys = value.keys("a URL, or where it lies: `{ env = \"NAME\" }` or `{ file = \"PATH\" }`")?;
    let source = one_of(value, &mut keys, false);
    keys.done_unshown();
    match source? {
        KeySource::Environment(name) => Ok(UrlSource::Environment(name)),
        KeySource::File(path) => Ok(UrlSource::File(path)),
        KeySource::Keyring { .. } => Err(Noted), // Never: it was not asked for, so it is an unknown key.
    }
}

/// The one place that is named.
fn one_of<'r, 't>(value: &Value<'r, 't>, keys: &mut Keys<'r, 't>, keyring: bool) -> Read<KeySource> {
    let env = keys.get("env");
    let file = keys.get("file");
    let ring = if keyring { keys.get("keyring") } else { None };
    match (env, file, ring) {
        (Some(name), None, None) => variable(&name).map(KeySource::Environment),
        (None, Some(path), None) => file_of(&path).map(KeySource::File),
        (None, None, Some(ring)) => in_keyring(&ring),
        (None, None, None) if keys.len() > 0 => Err(Noted), // As an unknown key, when they are done.
        (None, None, None) => value.refuse("names no place", EXPECTED),
        _ => value.refuse("names more than one place", EXPECTED),
    }
}

fn variable(value: &Value<'_, '_>) -> Read<String> {
    let name = value.text("the name of a variable")?;
    let letter = |b: u8| b.is_ascii_uppercase() || b == b'_';
    let sound = name.len() <= 64
        && name.bytes().next().is_some_and(letter)
        && name.bytes().all(|b| letter(b) || b.is_ascii_digit())
        && !looks_like_a_key(name);
    if sound {
        return Ok(name.to_owned());
    }
    value.refuse(
        "is not the name of a variable",
        "expected the name, in capital letters, digits and `_`, and not what the variable holds",
    )
}

fn file_of(value: &Value<'_, '_>) -> Read<PathBuf> {
    let path = value.file_path()?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if looks_like_a_key(name) {
        return value.refuse("looks like a key", "expected the path of the file that holds it");
    }
    Ok(path)
}

fn in_keyring(value: &Value<'_, '_>) -> Read<KeySource> {
    let mut keys = value.keys("`{ service = \"SERVICE\", user = \"USER\" }`")?;
    let service = keys.need("service", "`service = \"SERVICE\"`").and_then(|value| label(&value));
    let user = keys.need("user", "`user = \"USER\"`").and_then(|value| label(&value));
    keys.done_unshown();
    Ok(KeySource::Keyring { service: service?, user: user? })
}

fn label(value: &Value<'_, '_>) -> Read<String> {
    let text = value.text("a text")?;
    let sound = !text.is_empty()
        && text.len() <= 128
        && !text.chars().any(char::is_control)
        && !looks_like_a_key(text);
    if sound {
        Ok(text.to_owned())
    } else {
        value.refuse("is no label of a keyring", "expected its name there")
    }
}
