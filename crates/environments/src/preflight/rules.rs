//! Messages of test runners when tests cannot run: a table of texts, each with the reason and the fix.

use herma_core::visible::visible_line;

/// A text by which a missing part is known.
struct Rule {
    /// The text before the name of what is missing.
    before: &'static str,
    /// The text after the name; empty for the end of the line.
    after: &'static str,
    /// The reason; `{}` is the name.
    reason: &'static str,
    fix: &'static str,
}

const ADD_PACKAGE: &str = "add the package to the environment's `fetch` and `setup`";
const FETCH_AGAIN: &str = "add it to the environment's `fetch`: verification has no network";

/// The first that fits a line counts, from the last line up.
const RULES: &[Rule] = &[
    Rule {
        before: "No module named '",
        after: "'",
        reason: "the Python module `{}` is missing",
        fix: ADD_PACKAGE,
    },
    Rule {
        before: "No module named ",
        after: "",
        reason: "the Python module `{}` is missing",
        fix: ADD_PACKAGE,
    },
    Rule {
        before: "Cannot find module '",
        after: "'",
        reason: "the Node module `{}` is missing",
        fix: ADD_PACKAGE,
    },
    Rule {
        before: "Cannot find package '",
        after: "'",
        reason: "the Node package `{}` is missing",
        fix: ADD_PACKAGE,
    },
    Rule {
        before: "no matching package named `",
        after: "`",
        reason: "the crate `{}` was not fetched",
        fix: FETCH_AGAIN,
    },
    Rule {
        before: "failed to get `",
        after: "`",
        reason: "the crate `{}` was not fetched",
        fix: FETCH_AGAIN,
    },
    Rule {
        before: "failed to download `",
        after: "`",
        reason: "the crate `{}` was not fetched",
        fix: FETCH_AGAIN,
    },
    Rule {
        before: "no required module provides package ",
        after: ";",
        reason: "the Go package `{}` was not fetched",
        fix: FETCH_AGAIN,
    },
    Rule {
        before: "missing go.sum entry for module providing package ",
        after: ";",
        reason: "the Go package `{}` has no entry in go.sum",
        fix: "run `go mod tidy` and commit go.sum",
    },
    Rule {
        before: "module lookup disabled by GOPROXY=",
        after: "",
        reason: "a Go module was not fetched",
        fix: FETCH_AGAIN,
    },
    Rule {
        before: "Cannot access ",
        after: " in offline mode",
        reason: "Maven did not fetch from {} what it needs",
        fix: FETCH_AGAIN,
    },
    Rule {
        before: "unrecognized arguments: ",
        after: "",
        reason: "pytest does not know the option `{}`",
        fix: "add the pytest plugin that has it to the environment's `fetch` and `setup`",
    },
    Rule {
        before: "errors during collection",
        after: "",
        reason: "pytest could not collect the tests",
        fix: "read the log: a package or a file of the tests is missing",
    },
    Rule {
        before: "error during collection",
        after: "",
        reason: "pytest could not collect the tests",
        fix: "read the log: a package or a file of the tests is missing",
    },
];

/// pytest's exit code if there are no tests.
const NO_TESTS_COLLECTED: i32 = 5;

/// Why a command could not run, and what to do; none if it ran and failed.
pub(super) fn reason(command: &str, code: Option<i32>, lines: &[String]) -> Option<(String, &'static str)> {
    // Programs of the repository wrote the lines, and the reason is for a terminal.
    reason_in(command, code, lines).map(|(reason, fix)| (visible_line(&reason), fix))
}

fn reason_in(command: &str, code: Option<i32>, lines: &[String]) -> Option<(String, &'static str)> {
    const ADD_TOOL: &str = "add it to `tools`, or the package that has it to the environment's `fetch`";
    match code {
        Some(127) => {
            let name = lines.iter().rev().find_map(|line| missing_program(line));
            return Some((
                format!("the program `{}` is missing", name.unwrap_or(first_word(command))),
                ADD_TOOL,
            ));
        }
        Some(126) => {
            return Some((
                format!("`{}` cannot be executed", first_word(command)),
                "make it executable in the repository",
            ));
        }
        Some(NO_TESTS_COLLECTED) if command.contains("pytest") => {
            return Some((
                "pytest found no test".to_owned(),
                "name the directory of the tests in the command",
            ));
        }
        _ => {}
    }
    if let Some(name) = lines.iter().rev().find_map(|line| missing_program(line)) {
        return Some((format!("the program `{name}` is missing"), ADD_TOOL));
    }
    lines.iter().rev().find_map(|line| RULES.iter().find_map(|rule| rule.apply(line)))
}

impl Rule {
    fn apply(&self, line: &str) -> Option<(String, &'static str)> {
        let (_, rest) = line.split_once(self.before)?;
        let name = if self.after.is_empty() { rest } else { rest.split_once(self.after)?.0 };
        Some((self.reason.replace("{}", name.trim()), self.fix))
    }
}

/// The program in a shell's message: `sh: 1: mocha: not found`, `bash: line 1: go: command not found`.
fn missing_program(line: &str) -> Option<&str> {
    let before = line.strip_suffix(": not found").or_else(|| line.strip_suffix(": command not found"))?;
    let name = before.rsplit(": ").next()?;
    let is_shell = line.starts_with("sh: ") || line.starts_with("bash: ") || line.starts_with("/bin/sh: ");
    (is_shell && !name.contains(' ')).then_some(name)
}

fn first_word(command: &str) -> &str {
    command.split_whitespace().next().unwrap_or(command)
}
