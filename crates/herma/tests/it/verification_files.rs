//! A result that changes what verification does is shown, and verified with these files as they were.

use herma_core::Blocker;
use herma_core::report::VerificationStatus;

use crate::kit::{Finished, Herma, ON_REPOSITORY, Repository, fix_and};

/// A run on a repository of the fixture with these files besides, of which everything may change.
fn play(
    herma: &Herma,
    fixture: &str,
    files: &[(&str, &str)],
    script: &str,
    terms: &[(&str, &str)],
) -> Finished {
    let repository = Repository::of_fixture(herma, fixture);
    for (path, text) in files {
        let path = repository.dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    if !files.is_empty() {
        repository.commit("more files");
    }
    let everything = [("allowed_paths", "[\"**\"]")];
    herma.play(script, &[&ON_REPOSITORY[..], &everything[..], terms].concat())
}

fn write(path: &str, text: &str) -> String {
    format!("- write: {{ path: {path}, text: {text:?} }}")
}

/// It passed as the engine left it, and not with what decides as it was.
fn assert_reverted(run: &Finished, path: &str) {
    run.assert_only(Blocker::VerificationFailed);
    let report = &run.report;
    assert_eq!(report.verification[0].status, VerificationStatus::Passed, "{report:#?}");
    assert_eq!(report.verification_with_baseline_tests[0].status, VerificationStatus::Failed, "{report:#?}");
    let detail = &report.blockers[0].detail;
    assert!(detail.contains("`tests_may_change: true` in the contract would allow it"), "{detail}");
    let listed: Vec<String> = report
        .changed_verification_files
        .iter()
        .chain(&report.changed_tests)
        .map(ToString::to_string)
        .collect();
    assert_eq!(listed, [path]);
}

const MAKEFILE: (&str, &str) = ("Makefile", "test:\n\tsh tests/slugify_test.sh\n");
const MAKE: (&str, &str) = ("verify", "[make test]");

#[test]
fn a_makefile_whose_test_does_nothing_does_not_make_a_pass() {
    let script = format!("steps:\n  {}\n", write("Makefile", "test:\n\t@true\n"));
    let run = play(&Herma::new(), "string-slugify", &[MAKEFILE], &script, &[MAKE]);
    assert_reverted(&run, "Makefile");
    assert!(run.report.blockers[0].detail.contains("(Makefile)"), "{:#?}", run.report.blockers);
}

#[test]
fn a_module_in_the_place_of_the_test_runner_does_not_make_a_pass() {
    let terms = [("verify", "[python3 -m unittest -q]"), ("toolchains", "[python]")];
    for path in ["unittest.py", "unittest/__main__.py", "traceback.py"] {
        let module = write(path, "import os\nos._exit(0)\n");
        let init = write("unittest/__init__.py", "");
        let package = if path.contains('/') { format!("  {init}\n") } else { String::new() };
        let script = format!("steps:\n{package}  {module}\n");
        let run = play(&Herma::new(), "python-totals", &[], &script, &terms);
        run.assert_only(Blocker::VerificationFailed);
        assert_eq!(
            run.report.verification[0].status,
            VerificationStatus::Passed,
            "{path}: {:#?}",
            run.report
        );
        assert!(run.report.changed_verification_files.iter().any(|file| file.to_string() == path), "{path}");
    }
}

#[test]
fn a_conftest_outside_of_the_tests_does_not_make_a_pass() {
    let command = "[\"python3 -c 'import conftest, unittest, test_totals; unittest.main(test_totals)'\"]";
    let terms = [("verify", command), ("toolchains", "[python]")];
    let script = format!("steps:\n  {}\n", write("conftest.py", "import os\nos._exit(0)\n"));
    let run = play(&Herma::new(), "python-totals", &[("conftest.py", "")], &script, &terms);
    assert_reverted(&run, "conftest.py");
}

#[test]
fn a_script_that_a_command_runs_does_not_make_a_pass() {
    let check = ("ci/check.sh", "sh tests/slugify_test.sh\n");
    let script = format!("steps:\n  {}\n", write("ci/check.sh", "exit 0\n"));
    let run = play(&Herma::new(), "string-slugify", &[check], &script, &[("verify", "[sh ci/check.sh]")]);
    assert_reverted(&run, "ci/check.sh");
}

#[test]
fn a_change_that_the_work_does_not_lean_on_passes_and_is_shown() {
    let herma = Herma::new();
    let more = "- append: { path: Makefile, text: \"# more\\n\" }";
    let run = play(&herma, "string-slugify", &[MAKEFILE], &fix_and(&[more]), &[MAKE]);
    run.assert_pass();
    assert_eq!(run.report.verification_with_baseline_tests.len(), 1);
    assert_eq!(run.report.changed_verification_files[0].to_string(), "Makefile");
    let page = run.bundle.text("report.md");
    assert!(
        page.contains(
            "Files that the engine changed and that decide what verification does:\n\n- `Makefile`"
        ),
        "{page}"
    );
    let shown = herma.run(&["show", "last", "--full"]);
    assert!(shown.stdout.contains("decide what verification does:\n\n- `Makefile`"), "{shown:#?}");
    assert_eq!(herma.run(&["verify", "last"]).code, Some(0));
}

#[test]
fn tests_may_change_covers_what_decides_on_them() {
    let script = format!("steps:\n  {}\n", write("Makefile", "test:\n\t@true\n"));
    let terms = [MAKE, ("tests_may_change", "true")];
    let run = play(&Herma::new(), "string-slugify", &[MAKEFILE], &script, &terms);
    run.assert_pass();
    assert_eq!(run.report.changed_verification_files[0].to_string(), "Makefile");
    assert_eq!(run.report.verification_with_baseline_tests, []);
}
