//! The preflight distinguishes commands that cannot run from commands that fail.

use herma_core::Digest;
use herma_core::environment::ExpectBefore;
use herma_destination::Exit;
use herma_environments::key::LayerKey;
use herma_environments::preflight::{
    BaseResult, BaseRun, PreflightCache, PreflightKey, PreflightProblem, check, judge,
};

fn run(command: &str, code: i32, said: &str) -> BaseResult {
    let last_lines: Vec<String> = said.lines().map(ToOwned::to_owned).collect();
    let exit = Some(Exit { code: Some(code), signal: None });
    judge(&BaseRun { command, exit, exceeded: None, last_lines: &last_lines })
}

#[test]
fn a_command_that_cannot_run_names_what_is_missing() {
    for (command, code, said, reason) in [
        ("npm test", 127, "> mocha\n\nsh: 1: mocha: not found", "the program `mocha` is missing"),
        ("npm test", 1, "sh: 1: xo: not found\nnpm error Lifecycle script `test` failed", "`xo`"),
        ("go test ./...", 127, "sh: 1: go: not found", "`go`"),
        ("./run", 126, "sh: 1: ./run: Permission denied", "`./run` cannot be executed"),
        ("python3 -m pytest", 1, "/usr/bin/python3: No module named pytest", "the Python module `pytest`"),
        ("pytest", 2, "E   ModuleNotFoundError: No module named 'freezegun'\n1 error in 0.1s", "`freezegun`"),
        ("pytest", 2, "!!!! Interrupted: 3 errors during collection !!!!", "could not collect"),
        ("pytest -q", 5, "no tests ran in 0.01s", "found no test"),
        ("pytest", 4, "pytest: error: unrecognized arguments: --cov", "`--cov`"),
        ("node a.js", 1, "Error: Cannot find module 'ms'", "the Node module `ms`"),
        ("cargo test --offline", 101, "error: no matching package named `serde` found", "the crate `serde`"),
        ("go test ./...", 1, "x.go:3:8: no required module provides package a.b/c; to add it:", "`a.b/c`"),
        ("mvn -o test", 1, "[ERROR] Cannot access central (https://x) in offline mode and", "Maven"),
    ] {
        let BaseResult::Unrunnable { reason: found, fix, .. } = run(command, code, said) else {
            panic!("{command}: {said}");
        };
        assert!(found.contains(reason) && !fix.is_empty(), "{said}: {found}");
    }
}

#[test]
fn a_failing_test_is_no_missing_part() {
    for (command, code, said) in [
        ("pytest", 1, "FAILED tests/test_a.py::test_b - AssertionError: file not found\n1 failed in 0.1s"),
        ("npm test", 1, "  1 failing\n  AssertionError: expected 404 not found"),
        ("cargo test", 101, "test result: FAILED. 3 passed; 1 failed"),
        ("make check", 2, "make: *** [check] Error 1"),
    ] {
        assert!(matches!(run(command, code, said), BaseResult::Failed { .. }), "{said}");
    }
    assert!(matches!(run("true", 0, "No module named x"), BaseResult::Passed { .. }));
    let endless = judge(&BaseRun { command: "make", exit: None, exceeded: None, last_lines: &[] });
    assert!(matches!(endless, BaseResult::Unrunnable { .. }));
}

#[test]
fn a_reason_shows_no_character_that_controls_a_terminal() {
    let BaseResult::Unrunnable { reason, .. } =
        run("npm test", 1, "Cannot find module '\u{1b}]0;x\u{7}\u{202e}'")
    else {
        panic!("it can run");
    };
    assert!(reason.contains("\\u{1b}]0;x\\u{7}\\u{202e}"), "{reason}");
    let failed = BaseResult::Failed { command: "a\u{1b}b".to_owned(), exit_code: Some(1) };
    let problem = check(&[failed], ExpectBefore::Pass).unwrap_err().to_string();
    assert!(problem.contains("a\\u{1b}b"), "{problem}");
}

#[test]
fn the_base_must_do_what_the_contract_expects() {
    let (passes, fails) = (run("a", 0, ""), run("b", 1, ""));
    let both = [passes.clone(), fails.clone()];
    assert_eq!(check(&both, ExpectBefore::Any), Ok(()));
    assert_eq!(check(&both, ExpectBefore::Fail), Ok(()));
    let refused = check(&both, ExpectBefore::Pass).unwrap_err();
    assert!(refused.to_string().contains("`b`"), "{refused}");
    assert_eq!(check(std::slice::from_ref(&passes), ExpectBefore::Pass), Ok(()));
    assert!(matches!(check(&[passes], ExpectBefore::Fail), Err(PreflightProblem::Unexpected { .. })));
    let missing = run("c", 127, "sh: 1: c: not found");
    for expected in [ExpectBefore::Any, ExpectBefore::Pass, ExpectBefore::Fail] {
        let problem = check(&[fails.clone(), missing.clone()], expected).unwrap_err();
        assert!(matches!(problem, PreflightProblem::Unrunnable { .. }));
    }
}

#[test]
fn results_are_kept_for_the_same_environment_base_and_commands() {
    let dir = tempfile::tempdir().unwrap();
    let cache = PreflightCache::open(&dir.path().join("preflight")).unwrap();
    let commands = ["a".to_owned()];
    let environment = LayerKey::from_name(&"0".repeat(64));
    let key = PreflightKey {
        environment,
        base_tree: "1234",
        history: None,
        content: None,
        commands: &commands,
        destination: "sandbox",
    };
    assert_eq!(cache.find(&key), None);
    let results = vec![run("a", 1, "")];
    cache.keep(&key, &results).unwrap();
    assert_eq!(cache.find(&key), Some(results));
    assert_eq!(cache.find(&PreflightKey { environment: None, ..key }), None);
    assert_eq!(cache.find(&PreflightKey { base_tree: "5678", ..key }), None);
    assert_eq!(cache.find(&PreflightKey { commands: &[], ..key }), None);
    assert_eq!(cache.find(&PreflightKey { content: Some(Digest::of(b"lfs")), ..key }), None);
    assert_eq!(cache.find(&PreflightKey { history: Some(Digest::of(b"tags")), ..key }), None);
    let other = PreflightKey { destination: "docker", ..key };
    cache.keep(&other, &[run("a", 127, "")]).unwrap();
    assert_eq!(cache.find(&other), None, "a missing program may be there the next time");
}
