//! Fuzzes `herma_testkit::fuzz::sse`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| herma_testkit::fuzz::sse(input));
