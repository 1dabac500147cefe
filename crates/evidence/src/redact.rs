//! Takes secrets out of text before it is written.

mod record;
mod stream;

use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use herma_core::secret::Secret;

pub use stream::Stream;

use crate::secrets::{LOOKAHEAD, Matcher};

/// Replaces a value that herma itself knows to be secret.
const KNOWN: &str = "known_secret";
/// The prefix of every redaction marker.
const MARK: &str = "[redacted:";
/// Replaces a line that still looks like a secret after redaction.
const UNCLEAR: &str = "unclear";
/// A value that is shorter would be found everywhere.
const MIN_KNOWN_BYTES: usize = 6;

/// Takes secrets out of text: by the rules, and the values that herma itself knows. Clones share the values.
#[derive(Clone)]
pub struct Redactor {
    rules: &'static Matcher,
    known: Option<Arc<AhoCorasick>>,
}

/// A part of a text to be replaced.
struct Replace {
    start: usize,
    end: usize,
    rule: &'static str,
}

impl Redactor {
    /// A redactor for the rules and these values. A value of several lines counts line by line.
    pub fn new(known: impl IntoIterator<Item = Secret<String>>) -> Self {
        let mut needles: Vec<Vec<u8>> = Vec::new();
        for secret in known {
            for line in secret.expose().lines().map(str::trim).filter(|line| line.len() >= MIN_KNOWN_BYTES) {
                let escaped = serde_json::to_string(line).unwrap_or_default();
                let escaped = escaped.trim_matches('"');
                for form in [line, escaped] {
                    needles.push(form.as_bytes()[..form.len().min(LOOKAHEAD)].to_vec());
                }
            }
        }
        needles.sort_unstable();
        needles.dedup();
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&needles);
        // A set that is too large to compile cannot come from a few keys of one run.
        let known = search.ok().filter(|_| !needles.is_empty()).map(Arc::new);
        Self { rules: Matcher::shared(), known }
    }

    /// The text without its secrets.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut stream = Stream::new(self.clone());
        stream.push(text.as_bytes(), &mut |piece| clean.push_str(piece));
        stream.finish(&mut |piece| clean.push_str(piece));
        clean
    }

    /// Whether any secret would be taken out of the text.
    #[must_use]
    pub fn finds_secret(&self, text: &[u8]) -> bool {
        self.first_secret(text).is_some()
    }

    /// The kind of the first secret that would be taken out of the text.
    #[must_use]
    pub fn first_secret(&self, text: &[u8]) -> Option<&'static str> {
        let mut first = None;
        self.rules.find(text, 0, text.len(), |found| {
            first = Some(found.rule);
            false
        });
        first.or_else(|| self.known.as_ref().filter(|known| known.is_match(text)).map(|_| KNOWN))
    }

    /// The replacements in `text` that start before `until`, in order and without overlap.
    fn replacements(&self, text: &str, until: usize) -> Vec<Replace> {
        let bytes = text.as_bytes();
        let mut parts = Vec::new();
        self.rules.find(bytes, 0, until, |found| {
            parts.push(Replace { start: found.secret, end: found.end, rule: found.rule });
            true
        });
        if let Some(known) = &self.known {
            let hits = known.find_iter(bytes).take_while(|hit| hit.start() < until);
            parts.extend(hits.map(|hit| Replace { start: hit.start(), end: hit.end(), rule: KNOWN }));
        }
        parts.sort_by_key(|part| (part.start, part.end));
        let mut apart: Vec<Replace> = Vec::with_capacity(parts.len());
        for mut part in parts {
            if apart.last().is_some_and(|last| part.end <= last.end) {
                continue;
            }
            // The rest of a word that starts with a secret belongs to it, however long it is.
            part.end += bytes[part.end..].iter().take_while(|b| continues_word(**b)).count();
            match apart.last_mut() {
                Some(last) if part.start <= last.end => last.end = part.end,
                _ => apart.push(part),
            }
        }
        apart
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redactor")
    }
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new([])
    }
}

fn continues_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=')
}

fn mark(rule: &str) -> String {
    format!("{MARK}{rule}]")
}

/// Whether something may have been taken out of the text.
pub(crate) fn is_redacted(text: &[u8]) -> bool {
    text.windows(MARK.len()).any(|part| part == MARK.as_bytes())
}
