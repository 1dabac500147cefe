//! Fuzzes what reads the output of the engine `codex`.

use herma_engines::codex;

/// Any output is read without harm, what is kept of it is bounded, and only an object that says so is a result.
pub fn codex_output(input: &[u8]) {
    super::agent_output(&mut codex::CodexReader::default(), input);
}
