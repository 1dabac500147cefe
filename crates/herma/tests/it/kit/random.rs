//! Random numbers by a seed that a failure can name, and how many rounds are played with them.

use std::hash::{BuildHasher as _, Hasher as _};

/// A small generator (xorshift), so that a seed says everything.
pub(crate) struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    pub(crate) fn new() -> Self {
        let chosen = || std::hash::RandomState::new().build_hasher().finish();
        let seed = number("SOAK_SEED").unwrap_or_else(chosen) | 1;
        Self { seed, state: seed }
    }

    /// Its seed.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % end
    }
}

/// So many rounds, or as many as `SOAK_ROUNDS` says.
pub(crate) fn rounds(otherwise: u64) -> u64 {
    number("SOAK_ROUNDS").unwrap_or(otherwise)
}

#[allow(clippy::disallowed_methods, reason = "a longer test is asked for by hand")]
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}
