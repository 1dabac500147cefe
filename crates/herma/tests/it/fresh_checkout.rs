//! Verification runs the result's own code: nothing that this code could touch is trusted, and herma writes nothing there.

use std::fs;

use herma_core::Blocker;
use herma_core::report::VerificationStatus;

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

/// The first command changed exactly these tracked files, and no command ran after it.
fn assert_changed(run: &Finished, paths: &[&str]) {
    run.assert_only(Blocker::VerificationChangedFiles);
    let report = &run.report;
    let [first] = &report.verification[..] else { panic!("one command should have run: {report:#?}") };
    assert_eq!(first.status, VerificationStatus::ChangedFiles, "{report:#?}");
    let changed = first.changed_files.as_ref().unwrap();
    let named: Vec<String> = changed.first.iter().map(ToString::to_string).collect();
    assert_eq!(named, paths, "{report:#?}");
    assert_eq!(changed.count, paths.len() as u64);
    assert_eq!(report.verification_with_baseline_tests, []);
}

#[test]
fn a_test_that_repairs_the_result_while_it_runs_does_not_make_a_pass() {
    let test = write("tests/slugify_test.sh", MEND);
    assert_changed(&Herma::new().play(&broken_and(&[&test]), &[]), &["slugify.sh"]);
}

#[test]
fn a_new_test_that_changes_the_old_ones_does_not_make_a_pass() {
    let test = write("tests/a_test.sh", MEND);
    let verify = ("verify", r#"["for test in tests/*.sh; do sh $test || exit; done"]"#);
    assert_changed(&Herma::new().play(&broken_and(&[&test]), &[verify]), &["slugify.sh"]);
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
    for (meddle, changed) in [
        ("echo exit 0 > tests/slugify_test.sh", &["tests/slugify_test.sh"][..]),
        (
            "mv tests was; mkdir tests; echo exit 0 > tests/slugify_test.sh",
            &["tests/notes.md", "tests/slugify_test.sh"],
        ),
    ] {
        let result = format!("- append: {{ path: slugify.sh, text: {meddle:?} }}");
        let run = Herma::new().play(&broken_and(&[&result]), &[verify]);
        assert_changed(&run, changed);
    }
}

/// A test directory that cannot be listed, and a file that cannot be read, hide tests without changing one.
#[test]
fn a_command_that_hides_tests_from_the_next_one_by_permissions_has_failed() {
    let find = "for test in tests/*.sh; do [ ! -r $test ] || sh $test || exit; done";
    let verify = ("verify", &*format!("[\"sh ./slugify.sh\", {find:?}]"));
    for (meddle, changed) in [
        ("chmod 0 tests", "tests"),
        ("chmod 300 tests", "tests"),
        ("chmod 200 tests/slugify_test.sh", "tests/slugify_test.sh"),
    ] {
        let result = format!("- append: {{ path: slugify.sh, text: {meddle:?} }}");
        let run = Herma::new().play(&broken_and(&[&result]), &[verify]);
        assert_changed(&run, &[changed]);
    }
}

#[test]
fn a_command_that_changes_sources_for_the_next_one_has_failed() {
    let herma = Herma::new();
    let verify = ("verify", r#"["sh ./slugify.sh", "sh tests/slugify_test.sh"]"#);
    let result = format!("- append: {{ path: slugify.sh, text: {MEND:?} }}");
    let run = herma.play(&broken_and(&[&result]), &[verify]);
    assert_changed(&run, &["slugify.sh"]);
    let detail = &run.report.blockers[0].detail;
    assert_eq!(detail, "the verification command `sh ./slugify.sh` changed 1 tracked file: slugify.sh");
    assert!(run.bundle.text("test.log").contains("[changed 1 tracked file: slugify.sh; not run: 1 more"));
    assert!(run.bundle.text("report.md").contains("`sh ./slugify.sh` changed 1 tracked file: slugify.sh."));
    let shown = herma.run(&["show", "last"]);
    assert!(shown.stdout.contains("changed 1 tracked file: slugify.sh"), "{shown:#?}");
    assert_eq!(herma.run(&["verify", "last"]).code, Some(0), "the report of a failed run verifies");
}

#[test]
fn the_last_command_leaves_tracked_files_alone_too() {
    let verify = ("verify", r#"["sh tests/slugify_test.sh", "echo '# formatted' >> slugify.sh"]"#);
    let run = Herma::new().play(&fix_and(&[]), &[verify]);
    run.assert_only(Blocker::VerificationChangedFiles);
    assert_eq!(run.report.verification[0].status, VerificationStatus::Passed);
    assert_eq!(run.report.verification[1].status, VerificationStatus::ChangedFiles);
}

/// The second verification, with the tests as they were, is compared in the same way.
#[test]
fn with_the_old_tests_a_command_leaves_tracked_files_alone_too() {
    let meddle = "grep -q more tests/slugify_test.sh || echo '# formatted' >> slugify.sh";
    let verify = ("verify", &*format!("[{:?}]", format!("sh tests/slugify_test.sh && {{ {meddle}; }}")));
    let test = "- append: { path: tests/slugify_test.sh, text: \"# more\\n\" }";
    let run = Herma::new().play(&fix_and(&[test]), &[verify]);
    run.assert_only(Blocker::VerificationChangedFiles);
    assert_eq!(run.report.verification[0].status, VerificationStatus::Passed);
    let second = &run.report.verification_with_baseline_tests[0];
    assert_eq!(second.status, VerificationStatus::ChangedFiles);
}

/// A command leaves a process in a session of its own behind, whose parent is dead. It would rewrite the source, and go on
/// doing so, after the command has ended.
pub(crate) const LEAVES_A_DAEMON: &str = r#"(setsid sh -c 'sleep 0.5; while :; do echo "slugify() { echo other; }" > slugify.sh; done' > out.log 2>&1 < /dev/null &)"#;

#[test]
fn a_process_left_by_one_command_does_not_affect_the_next() {
    for destination in ["sandbox", "host"] {
        let verify = format!("[{LEAVES_A_DAEMON:?}, \"sleep 1; sh tests/slugify_test.sh\"]");
        let run = Herma::new().play(&fix_and(&[]), &[("verify", &verify), ("destination", destination)]);
        run.assert_pass();
        // One that is quick enough is found.
        let quick = LEAVES_A_DAEMON.replace("sleep 0.5; ", "") + "; sleep 0.5";
        let verify = format!("[{quick:?}, \"sh tests/slugify_test.sh\"]");
        let run = Herma::new().play(&fix_and(&[]), &[("verify", &verify), ("destination", destination)]);
        assert_changed(&run, &["slugify.sh"]);
    }
}

#[test]
fn build_output_of_one_command_is_available_to_the_next() {
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
    assert_changed(&run, &["tests/notes.md", "tests/slugify_test.sh"]);
}
