//! No field and no comment of an admission holds a secret. Messages give its place, never its value.

use herma_core::admission::AdmissionDraft;
use herma_evidence::secrets::scan;

/// An admission contains a secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{place}: it holds a secret ({rule}); change the secret, for it may be known by now")]
pub(super) struct HoldsSecret {
    /// The line and the field.
    place: String,
    /// The rule that found it.
    rule: String,
}

/// Refuses a file that holds a secret. This is the first check, because the messages of others repeat the text.
pub(super) fn check_file(bytes: &[u8]) -> Result<(), HoldsSecret> {
    let Some(found) = scan(bytes).into_iter().next() else { return Ok(()) };
    let before = &bytes[..bytes.len().min(usize::try_from(found.offset).unwrap_or(usize::MAX))];
    let lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
    let at = before.split(|b| *b == b'\n').count() - 1;
    let key = lines.iter().take(at + 1).rev().find_map(|line| key_of(line));
    let place = match key {
        Some(key) => format!("line {}: `{key}`", at + 1),
        None => format!("line {}", at + 1),
    };
    Err(HoldsSecret { place, rule: found.rule.to_owned() })
}

/// Refuses a draft whose values are a secret, however the file spells them.
pub(super) fn check_values(draft: &AdmissionDraft) -> Result<(), HoldsSecret> {
    for field in draft.fields() {
        for text in field.texts() {
            if let Some(found) = scan(text.as_bytes()).first() {
                return Err(HoldsSecret { place: format!("`{}`", field.key), rule: found.rule.to_owned() });
            }
        }
    }
    Ok(())
}

/// The key that a line begins with; a line of a list, or of a text, has none.
fn key_of(line: &[u8]) -> Option<&str> {
    let (key, _) = std::str::from_utf8(line).ok()?.split_once(':')?;
    let is_key = !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    // Nothing as long as a secret is repeated.
    (is_key && key.len() <= 32).then_some(key)
}
