//! Ids and times of answers, derived from the script and the turn: the same request gets the same bytes.

use herma_core::Digest;

/// When the first turn of every script was answered: the beginning of 2026, in seconds.
const BEGINNING: u64 = 1_767_225_600;

/// The seed of the ids of one answer.
#[derive(Clone, Debug)]
pub(super) struct Ids {
    seed: Digest,
    answered: u64,
}

impl Ids {
    /// For the answer of `script` to a conversation with `answered` turns; `side` for one beside it.
    pub(super) fn new(script: &Digest, answered: usize, side: bool) -> Self {
        let seed = Digest::of(format!("{} {answered} {side}", script.hex()).as_bytes());
        Self { seed, answered: answered as u64 }
    }

    /// The name of the `n`th thing of this kind.
    pub(super) fn id(&self, prefix: &str, n: usize) -> String {
        let hex = Digest::of(format!("{} {prefix} {n}", self.seed.hex()).as_bytes()).hex();
        format!("{prefix}{}", &hex[..24])
    }

    /// When it was answered, in seconds.
    pub(super) fn created(&self) -> u64 {
        BEGINNING.saturating_add(self.answered)
    }

    /// In place of a provider's signature over a text.
    pub(super) fn signature(&self, text: &str) -> String {
        Digest::of(format!("{} {text}", self.seed.hex()).as_bytes()).hex()
    }
}
