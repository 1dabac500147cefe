//! The keys of the objects that the reader looks into: each at most once, and none that only looks like a known one.

use std::borrow::Cow;
use std::collections::HashSet;

use smallvec::SmallVec;

use crate::reaches_out;

/// The keys that decide something, besides those that make the upstream reach out. Some servers read keys without
/// regard to case, so `Model` is no unknown key.
const KNOWN: &[&str] = &[
    "arguments",
    "audio_url",
    "best_of",
    "call_id",
    "content",
    "environment",
    "execution",
    "file",
    "file_data",
    "file_id",
    "file_url",
    "function",
    "functions",
    "image_url",
    "include_usage",
    "input",
    "input_schema",
    "instructions",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "messages",
    "model",
    "n",
    "n_predict",
    "name",
    "output",
    "parameters",
    "prompt",
    "role",
    "source",
    "store",
    "stream",
    "stream_options",
    "system",
    "text",
    "tool_calls",
    "tools",
    "type",
    "url",
    "video_url",
];

/// Objects with more keys than this are looked up by hash.
const FEW: usize = 32;

/// The keys of all objects that the reader is in, the innermost last. One list serves them all.
#[derive(Debug, Default)]
pub(super) struct Keys<'a>(SmallVec<[Cow<'a, str>; 16]>);

/// One object that the reader is in.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    start: usize,
    more: Option<HashSet<Cow<'a, str>>>,
}

impl<'a> Keys<'a> {
    pub(super) fn open(&self) -> Scope<'a> {
        Scope { start: self.0.len(), more: None }
    }

    /// Whether the key is new in the innermost object.
    pub(super) fn add(&mut self, scope: &mut Scope<'a>, key: Cow<'a, str>) -> bool {
        let few = &self.0[scope.start..];
        if few.contains(&key) {
            return false;
        }
        if few.len() < FEW {
            self.0.push(key);
            return true;
        }
        scope.more.get_or_insert_default().insert(key)
    }

    pub(super) fn close(&mut self, scope: &Scope<'a>) {
        self.0.truncate(scope.start);
    }
}

/// The known key that a key can be taken for without being it.
pub(super) fn lookalike(key: &str) -> Option<&'static str> {
    if key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_') {
        return None;
    }
    // Both ways, because some letters have only one: U+017F is an s in upper case only.
    let folded = key.to_uppercase().to_lowercase();
    let reaching = reaches_out::KEYS.iter().map(|(key, _)| key);
    KNOWN.iter().chain(reaching).find(|known| **known == folded).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_fold_to_known_keys_are_found() {
        for (key, known) in [
            ("Model", "model"),
            ("MODEL", "model"),
            ("mc\u{70}_\u{17f}ervers", "mcp_servers"),
            ("max_to\u{212a}ens", "max_tokens"),
        ] {
            assert_eq!(lookalike(key), Some(known), "{key}");
        }
        for key in ["model", "models", "x-model", "Custom", "mödel"] {
            assert_eq!(lookalike(key), None, "{key}");
        }
    }

    #[test]
    fn a_key_is_new_once_however_many_there_are() {
        let mut keys = Keys::default();
        let mut outer = keys.open();
        for at in 0..1_000 {
            assert!(keys.add(&mut outer, Cow::Owned(at.to_string())));
            let mut inner = keys.open();
            assert!(keys.add(&mut inner, Cow::Borrowed("1")));
            assert!(!keys.add(&mut inner, Cow::Borrowed("1")));
            keys.close(&inner);
        }
        for at in 0..1_000 {
            assert!(!keys.add(&mut outer, Cow::Owned(at.to_string())));
        }
    }
}
