//! Fuzzes what reads the output of the engine `claude`.

use herma_engines::claude;

/// Any output is read without harm, what is kept of it is bounded, and only an object that says so is a result.
pub fn claude_output(input: &[u8]) {
    super::agent_output(&mut claude::ClaudeReader, input);
}
