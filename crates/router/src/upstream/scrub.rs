//! Redacts the key and the URL of an upstream from its responses.

use herma_core::secret::Secret;
use memchr::memmem::Finder;

use super::base_url::BaseUrl;

/// The replacement.
const REMOVED: &[u8] = b"[removed by herma]";

/// Shorter strings are not redacted: placeholder keys and the path `/v1` would be found everywhere.
const SHORTEST: usize = 6;

/// The strings to redact.
#[derive(Debug)]
pub(super) struct Scrub {
    /// Case-sensitive.
    exact: Vec<Secret<Finder<'static>>>,
    /// Case-insensitive; in lower case here.
    folded: Vec<Secret<Finder<'static>>>,
}

impl Scrub {
    /// For this key, and for every form of the URL, where it is the operator's own.
    pub(super) fn new(key: Option<&str>, base_url: Option<&BaseUrl>) -> Self {
        let known_by = base_url.map(|base_url| {
            let (authority, base) = (base_url.authority(), base_url.base());
            let whole = format!("{authority}{base}").to_ascii_lowercase();
            let parts =
                [authority, base_url.host(), base, base_url.unversioned()].map(str::to_ascii_lowercase);
            [format!("https://{whole}"), format!("http://{whole}"), whole].into_iter().chain(parts)
        });
        Self { exact: needles(key.map(str::to_owned)), folded: needles(known_by.into_iter().flatten()) }
    }

    /// Whether the text has one of them.
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        let has = |needles: &[Secret<Finder<'static>>], text: &[u8]| {
            needles.iter().any(|needle| needle.expose().find(text).is_some())
        };
        text.len() >= SHORTEST
            && (has(&self.exact, text)
                || !self.folded.is_empty() && has(&self.folded, &text.to_ascii_lowercase()))
    }

    /// The body without them; `None` if it has none of them.
    pub(super) fn apply(&self, body: &[u8]) -> Option<Vec<u8>> {
        if body.len() < SHORTEST {
            return None;
        }
        let mut found = places(&self.exact, body);
        if !self.folded.is_empty() {
            found.extend(places(&self.folded, &body.to_ascii_lowercase()));
        }
        if found.is_empty() {
            return None;
        }
        found.sort_unstable();
        let mut out = Vec::with_capacity(body.len() + REMOVED.len());
        let mut kept = 0;
        for (start, end) in found {
            // Overlapping matches become one.
            if start >= kept {
                out.extend_from_slice(&body[kept..start]);
                out.extend_from_slice(REMOVED);
            }
            kept = kept.max(end);
        }
        out.extend_from_slice(&body[kept..]);
        Some(out)
    }
}

/// Each text, plain and JSON-escaped.
fn needles(texts: impl IntoIterator<Item = String>) -> Vec<Secret<Finder<'static>>> {
    let escaped = |text: &str| text.contains('/').then(|| text.replace('/', "\\/"));
    let both = |text: String| [escaped(&text), Some(text)].into_iter().flatten();
    let long = |text: &String| text.len() >= SHORTEST;
    let finder = |text: String| Secret::new(Finder::new(&text).into_owned());
    texts.into_iter().filter(long).flat_map(both).map(finder).collect()
}

fn places(needles: &[Secret<Finder<'static>>], body: &[u8]) -> Vec<(usize, usize)> {
    let each = |finder: &'_ Secret<Finder<'static>>| {
        let finder = finder.expose();
        finder.find_iter(body).map(|at| (at, at + finder.needle().len())).collect::<Vec<_>>()
    };
    needles.iter().flat_map(each).collect()
}
