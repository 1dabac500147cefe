//! Fuzzes `herma_testkit::fuzz::usage`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| herma_testkit::fuzz::usage(input));
