//! Fuzzes what reads the output of the engine `pi`.

use herma_engines::pi;

/// Any output is read without harm, what is kept of it is bounded, and only an object that says so is a result.
pub fn pi_output(input: &[u8]) {
    super::agent_output(&mut pi::PiReader::default(), input);
}
