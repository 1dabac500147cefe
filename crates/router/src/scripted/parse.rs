//! From a script's bytes to a script.

use herma_core::script::{self, ScriptWords};

pub use herma_core::script::{BadScript, MAX_BYTES};

use super::script::Script;

const WORDS: ScriptWords = ScriptWords {
    one_key: "a call has one key; put further ones into `calls: [...]`",
    begins_with: "`name:` and `turns:` with a list of turns",
};

impl Script {
    /// Reads a script from a file's bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadScript> {
        script::parse(bytes, WORDS)
    }
}
