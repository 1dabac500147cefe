//! From a script's bytes to a script.

use herma_core::script::{self, ScriptWords};

pub use herma_core::script::{BadScript, MAX_BYTES};

use super::script::Script;

const WORDS: ScriptWords = ScriptWords {
    one_key: "a step has one key; begin the next step with `-`",
    begins_with: "`steps:` and a list of steps",
};

impl Script {
    /// Reads a script from a file's bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadScript> {
        script::parse(bytes, WORDS)
    }
}
