//! Fuzzes `herma_testkit::fuzz::router_script`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| herma_testkit::fuzz::router_script(input));
