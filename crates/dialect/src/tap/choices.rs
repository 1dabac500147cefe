//! Tells early, from the first bytes of an event, that a chat chunk has a choice in it.

use memchr::memmem;

const KEY: &[u8] = b"\"choices\"";

/// How far the data of one event has been searched. The result depends on the data alone, not on its chunks.
#[derive(Debug, Default)]
pub(super) struct Choices {
    searched: usize,
    /// Behind the first place where the key stands.
    key_end: Option<usize>,
}

impl Choices {
    /// Whether the first `"choices"` in the data is a list with something in it. Once it is, it stays so with more data.
    pub(super) fn has_one(&mut self, data: &[u8]) -> bool {
        if self.key_end.is_none() {
            let from = self.searched.min(data.len());
            self.key_end = memmem::find(&data[from..], KEY).map(|at| from + at + KEY.len());
            self.searched = (data.len() + 1).saturating_sub(KEY.len());
        }
        let Some(rest) = self.key_end.and_then(|end| data.get(end..)) else { return false };
        let rest = rest.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start);
        let inside = rest.and_then(|rest| rest.strip_prefix(b"[")).map(<[u8]>::trim_ascii_start);
        inside.and_then(|inside| inside.first()).is_some_and(|first| *first != b']')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_seen_as_soon_as_it_begins() {
        for (data, at) in [
            (&br#"{"id":"x","choices":[{"delta":{}}]}"#[..], Some(22)),
            (br#"{"choices" : [ {"delta":{}}]}"#, Some(16)),
            (br#"{"choices":[],"usage":{"prompt_tokens":1}}"#, None),
            (br#"{"choices":null}"#, None),
            (br#"{"text":"\"choices\":[{"}"#, None),
        ] {
            let mut choices = Choices::default();
            let first = (0..=data.len()).find(|end| choices.has_one(&data[..*end]));
            assert_eq!(first, at, "{}", data.escape_ascii());
            assert_eq!(Choices::default().has_one(data), at.is_some());
        }
    }
}
