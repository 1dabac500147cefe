//! Fuzzes what reads the output of the engine `opencode`.

use herma_engines::opencode;

/// Any output is read without harm, what is kept of it is bounded, and only an object that says so is a result.
pub fn opencode_output(input: &[u8]) {
    super::agent_output(&mut opencode::OpenCodeReader::default(), input);
}
