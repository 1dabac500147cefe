//! Fuzzes what reads the output of the engine `hermes`.

use herma_engines::hermes;

/// Any output is read without harm, what is kept of it is bounded, and only an object that says so is a result.
pub fn hermes_output(input: &[u8]) {
    super::agent_output(&mut hermes::HermesReader, input);
}
