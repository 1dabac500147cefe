//! Fuzzes `herma_testkit::fuzz::case_output`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| herma_testkit::fuzz::case_output(input));
