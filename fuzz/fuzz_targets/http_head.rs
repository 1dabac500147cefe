//! Fuzzes `herma_testkit::fuzz::http_head`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| herma_testkit::fuzz::http_head(input));
