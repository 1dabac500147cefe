//! Names, and how messages show them.

use herma_core::admission::ModelName;
use herma_core::visible::visible_line;

/// Prefixes of the keys of providers and services. A text with such a prefix is never shown, and is no name.
const STARTS_OF_KEYS: &[&str] = &[
    "AIza",
    "AKIA",
    "ASIA",
    "Bearer ",
    "eyJ",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "gsk_",
    "hf_",
    "pk-",
    "sk-",
    "sk_",
    "xai-",
    "xoxb-",
    "xoxp-",
];

/// The longest name that is shown in full.
const MOST_SHOWN: usize = 64;

/// Whether a text could be a key that got into the wrong place.
pub(super) fn looks_like_a_key(text: &str) -> bool {
    let starts = |start: &&str| text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    let random = text.len() >= 24
        && text.bytes().all(|b| b.is_ascii_alphanumeric())
        && text.bytes().any(|b| b.is_ascii_digit())
        && text.bytes().any(|b| b.is_ascii_alphabetic());
    STARTS_OF_KEYS.iter().any(starts) || random
}

/// A name as messages show it.
pub(super) fn shown(name: &str) -> String {
    if looks_like_a_key(name) || name.contains("://") {
        return "(not shown, it may be secret)".to_owned();
    }
    let start: String = name.chars().take(MOST_SHOWN).collect();
    let more = if start.len() < name.len() { "…" } else { "" };
    format!("`{}{more}`", visible_line(&start))
}

/// A name as a part of a path of keys.
pub(super) fn as_key(name: &str) -> String {
    let bare = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if looks_like_a_key(name) || name.contains("://") {
        "…".to_owned()
    } else if !name.is_empty() && name.len() <= MOST_SHOWN && name.bytes().all(bare) {
        name.to_owned()
    } else {
        format!("\"{}\"", shown(name).trim_matches('`'))
    }
}

/// Why a text is no name of an upstream, a client or an engine. Audit, metrics and paths contain such names.
pub(super) fn name_problem(text: &str) -> Option<&'static str> {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let sound = text.len() <= 64
        && text.bytes().next().is_some_and(letter)
        && text.bytes().all(|b| letter(b) || matches!(b, b'.' | b'_' | b'-'));
    match sound {
        false => Some(
            "expected 1 to 64 lower-case letters, digits, `.`, `_` and `-`, starting with a letter or a digit",
        ),
        true if looks_like_a_key(text) => Some("it looks like a key: expected a name that anybody may see"),
        true => None,
    }
}

/// Why a text is no name of a model.
pub(super) fn model_name_problem(text: &str) -> Option<&'static str> {
    if text.parse::<ModelName>().is_err() {
        return Some("expected 1 to 128 letters, digits, `.`, `_`, `-`, `:`, `/`, `@` and `+`");
    }
    looks_like_a_key(text).then_some("it looks like a key: expected a name that anybody may see")
}

/// A suggestion for an unknown word.
pub(super) fn instead(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => String::new(),
        None => format!("expected one of: {}", known.join(", ")),
    }
}

fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4 && *distance < candidate.len())
        .min()
        .map(|(_, candidate)| candidate)
}
