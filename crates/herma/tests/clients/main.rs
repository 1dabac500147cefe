//! The official client libraries of `OpenAI` and Anthropic, unmodified, against the real binary with `scripted` behind it.
//!
//! The cases are a table (`cases.rs`) that `python/` and `javascript/` both carry out, file by file the same. They check
//! the libraries' observations; this program checks the router's record.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]
#![allow(clippy::disallowed_types, reason = "the test starts the binary and the suites, from outside")]

mod audit;
mod cases;
mod libraries;
mod router;
mod suite;

use suite::Language;

#[test]
fn the_python_libraries_work_through_the_router() {
    carry_out(Language::Python);
}

#[test]
fn the_javascript_libraries_work_through_the_router() {
    carry_out(Language::JavaScript);
}

fn carry_out(language: Language) {
    libraries::must_be_installed();
    let router = router::start();
    let reports = suite::run(language, &router);
    let audit = router.stop();
    cases::check_reports(&reports);
    audit::check(&reports, &audit);
}
