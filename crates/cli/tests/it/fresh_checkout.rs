//! What verification runs is the result's own code. Where it has been, nothing is believed, and nothing of herma's writes.

use std::fs;

use herma_model::Blocker;
use herma_model::report::VerificationStatus;

use crate::kit::{Finished, Herma, fix_and};

/// A result that does not work, with these steps besides.
fn broken_and(steps: &[&str]) -> String {
    let steps: String = steps.iter().flat_map(|step| ["  ", step, "\n"]).collect();
    format!("steps:\n  - write: {{ path: slugify.sh, text: \"slugify() {{ echo broken; }}\\n\" }}\n{steps}")
}

/// A script that makes of the checkout what passes, and the shell that a step of the engine writes it with.
const MEND: &str = r#"printf '%s\n' 'slugify() { printf "%s" "$1" | tr A-Z a-z | tr -cs a-z0-9 - | sed "s/^-//; s/-$//"; }' > slugify.sh"#;

fn write(path: &str, text: &str) -> String {
    format!("- write: {{ path: {path}, text: {text:?} }}")
}

fn assert_leans(run: &Finished) {
    run.assert_only(Blocker::VerificationFailed);
    let report = &run.report;
    assert_eq!(report.verification[0].status, VerificationStatus::Passed, "{report:#?}");
    assert_eq!(report.verification_with_baseline_tests[0].status, VerificationStatus::Failed, "{report:#?}");
}

#[test]
fn a_test_that_mends_the_result_while_it_runs_does_not_make_a_pass() {
    let test = write("tests/slugify_test.sh", MEND);
    assert_leans(&Herma::new().play(&broken_and(&[&test]), &[]));
}

#[test]
fn a_new_test_that_meddles_with_the_old_ones_does_not_make_a_pass() {
    let test = write("tests/a_test.sh", MEND);
    let verify = ("verify", r#"["for test in tests/*.sh; do sh $test || exit; done"]"#);
    assert_leans(&Herma::new().play(&broken_and(&[&test]), &[verify]));
}

#[test]
fn a_new_test_beside_the_old_ones_is_welcome() {
    let test = write("tests/more_test.sh", ". ./slugify.sh\n[ \"$(slugify A)\" = a ]\n");
    let verify = ("verify", r#"["for test in tests/*.sh; do sh $test || exit; done"]"#);
    let run = Herma::new().play(&fix_and(&[&test]), &[verify]);
    run.assert_pass();
    assert_eq!(run.report.verification_with_baseline_tests.len(), 1);
}

#[test]
fn a_command_that_changes_tests_for_the_next_one_has_failed() {
    let verify = ("verify", r#"["sh ./slugify.sh", "sh tests/slugify_test.sh"]"#);
    for meddle in [
        "echo exit 0 > tests/slugify_test.sh",
        "mv tests was; mkdir tests; echo exit 0 > tests/slugify_test.sh",
    ] {
        let result = format!("- append: {{ path: slugify.sh, text: {meddle:?} }}");
        let run = Herma::new().play(&broken_and(&[&result]), &[verify]);
        run.assert_only(Blocker::VerificationFailed);
        let first = &run.report.verification[0];
        assert_eq!(first.status, VerificationStatus::Failed, "{first:#?}");
        assert!(first.reason.as_ref().unwrap().starts_with("it changed the test tests/"), "{first:#?}");
    }
}

#[test]
fn what_a_command_builds_is_there_for_the_next_one() {
    let verify = (
        "verify",
        r#"["mkdir tests/out && echo built > tests/out/it", "test -f tests/out/it", "sh tests/slugify_test.sh"]"#,
    );
    Herma::new().play(&fix_and(&[]), &[verify]).assert_pass();
}

/// The result's own code lays a link to somewhere else where its tests were.
#[test]
fn nothing_is_removed_or_written_behind_a_link_in_the_checkout() {
    let herma = Herma::new();
    let outside = herma.file("outside/slugify_test.sh", "not the agent's\n");
    let link = format!(
        "[ -L tests ] || {{ mv tests was; ln -s '{}' tests; }}\n",
        outside.parent().unwrap().display()
    );
    let result = format!("- append: {{ path: slugify.sh, text: {link:?} }}");
    let test = "- append: { path: tests/slugify_test.sh, text: \"# more\\n\" }";
    let run = herma.play(&fix_and(&[&result, test]), &[]);
    assert_eq!(fs::read_to_string(outside).unwrap(), "not the agent's\n");
    run.assert_pass();
}
