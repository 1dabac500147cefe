//! Fuzzes `herma_testkit::fuzz::acp_output`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| herma_testkit::fuzz::acp_output(input));
