//! Changed files that influence verification.

use herma_core::report::{ChangedFile, Entry, Mode};
use herma_rules::VerificationFiles;
use herma_rules::forbidden_paths::{built_in, groups};
use herma_rules::looks_like_test;
use herma_rules::verification_files::{DECIDING, PYTHON_LIBRARY, PYTHON_ROOTS, PYTHON_RUNNERS, SHADOWS};
use proptest::prelude::*;

use crate::facts::path;

fn entry() -> Entry {
    Entry { mode: Mode::File, id: "0".repeat(40) }
}

fn edited(at: &str) -> ChangedFile {
    ChangedFile { path: path(at), old: Some(entry()), new: Some(entry()) }
}

fn added(at: &str) -> ChangedFile {
    ChangedFile { path: path(at), old: None, new: Some(entry()) }
}

/// Whether the change is verified a second time as it was, with commands that name no file.
fn reverted(change: &ChangedFile) -> bool {
    looks_like_test(&change.path) || VerificationFiles::of(&["make test".to_owned()]).decides(change)
}

/// A path that a pattern of a table matches.
fn example(pattern: &str) -> String {
    let name = pattern.trim_start_matches("**/").replace('*', "x");
    name.strip_suffix('/').map_or(name.clone(), |directory| format!("{directory}/file"))
}

#[test]
fn every_entry_decides_at_any_depth_and_in_any_case() {
    for pattern in DECIDING.iter().flat_map(|group| group.patterns) {
        let name = example(pattern);
        for at in [name.clone(), format!("deep/er/{name}"), name.to_uppercase(), name.to_lowercase()] {
            assert!(reverted(&edited(&at)) && reverted(&added(&at)), "{pattern}: {at}");
        }
    }
}

#[test]
fn a_lifted_path_that_verification_reads_decides_too() {
    for path in built_in() {
        let at = example(path.pattern);
        let decides = reverted(&edited(&at));
        assert!(decides || !path.decides_verification, "{at}");
    }
    assert!(reverted(&edited("Cargo.lock")) && reverted(&edited("node_modules/.bin/jest")));
    assert!(reverted(&edited(".cargo/config.toml")) && reverted(&edited(".mvn/extensions.xml")));
    assert!(!reverted(&edited("CLAUDE.md")) && !reverted(&edited(".github/workflows/ci.yml")));
}

#[test]
fn every_entry_has_a_tool_a_reason_and_a_source_and_is_there_once() {
    let mut seen = std::collections::BTreeSet::new();
    for group in DECIDING {
        assert!(
            !group.tool.is_empty() && !group.why.is_empty() && group.source.starts_with("https://"),
            "{group:?}"
        );
        for pattern in group.patterns {
            assert!(seen.insert(pattern.to_ascii_lowercase()), "{pattern}");
        }
    }
    let forbidden = groups().iter().flat_map(|group| group.patterns);
    for pattern in forbidden {
        assert!(!seen.contains(&pattern.to_ascii_lowercase()), "{pattern} is in both tables");
    }
}

#[test]
fn a_new_module_in_the_place_of_a_runner_decides_and_an_old_one_does_not() {
    let names = || PYTHON_RUNNERS.split_whitespace().chain(PYTHON_LIBRARY.split_whitespace());
    for name in names() {
        for root in PYTHON_ROOTS {
            for at in [
                format!("{root}{name}.py"),
                format!("{root}{name}/__init__.py"),
                format!("{root}{name}.abi3.so"),
            ] {
                assert!(reverted(&added(&at)), "{at}");
            }
        }
    }
    for end in SHADOWS.iter().flat_map(|(_, ends)| ends.iter()) {
        let at = example(end);
        assert!(
            reverted(&added(&at)) && reverted(&added(&format!("src/main/java/{at}").to_uppercase())),
            "{at}"
        );
    }
    for at in ["unittest.py", "src/logging.py", "src/main/java/org/junit/Assert.java"] {
        assert!(!reverted(&edited(at)), "{at}");
    }
}

#[test]
fn ordinary_files_do_not_decide() {
    for at in [
        "src/lib.rs",
        "app/logging.py",
        "mypkg/types.py",
        "docs/make.md",
        "totals.py",
        "build/output.txt",
        "src/build.ts",
        "README.md",
        "unittest.md",
        "src/builder.rs",
        "packages/a/index.js",
        "makefile_parser.py",
        "configure.md",
        "project/readme.txt",
    ] {
        assert!(!reverted(&added(at)) && !reverted(&edited(at)), "{at}");
    }
}

#[test]
fn a_script_that_a_command_runs_decides() {
    let files =
        VerificationFiles::of(&["cd web && sh ci/check.sh".to_owned(), "grep -q x notes.txt".to_owned()]);
    assert!(files.decides(&edited("web/ci/check.sh")));
    assert!(!files.decides(&edited("web/ci/other.sh")));
    assert!(!files.decides(&edited("notes.txt")));
}

proptest! {
    #[test]
    fn the_case_of_letters_changes_nothing(
        pattern in proptest::sample::select(DECIDING.iter().flat_map(|group| group.patterns).copied().collect::<Vec<_>>()),
        upper in proptest::collection::vec(any::<bool>(), 64),
    ) {
        let letters = example(pattern);
        let letters = letters.chars().zip(upper.iter().cycle());
        let at: String = letters.map(|(c, upper)| if *upper { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }).collect();
        prop_assert!(reverted(&edited(&at)), "{}", at);
    }
}
