//! Paths that look like tests. A passing test that the agent rewrote is reported as such, so a false positive is
//! cheap.

use herma_core::RepoPath;

/// Directories that hold tests.
const DIRECTORIES: &[&str] =
    &["test", "tests", "testing", "spec", "specs", "__tests__", "__snapshots__", "testdata", "e2e"];

/// Names that start the tests, or configure how they run.
const NAMES: &[&str] =
    &["conftest.py", "pytest.ini", "tox.ini", "noxfile.py", ".rspec", "phpunit.xml", "karma.conf.js"];

/// First words of a file's name, before `_`, `-` or `.`.
const FIRST: &[&str] = &["test", "tests"];

/// Last words of a file's name without its extension, after `_`, `-` or `.`.
const LAST: &[&str] = &["test", "tests", "spec", "specs"];

/// Endings of class names, as in `SlugTest.java`.
const CLASS_ENDINGS: &[&str] = &["Test", "Tests", "TestCase", "Spec"];

/// Whether a path looks like a test, or like something that decides what the tests do.
#[must_use]
pub fn looks_like_test(path: &RepoPath) -> bool {
    let text = String::from_utf8_lossy(path.as_bytes());
    let (directories, name) = text.rsplit_once('/').unwrap_or(("", &text));
    directories.split('/').any(|d| DIRECTORIES.contains(&d.to_lowercase().as_str())) || is_test_name(name)
}

fn is_test_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    let words: Vec<&str> = lower.split(['_', '-', '.']).collect();
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let lower_stem = stem.to_lowercase();
    let last = lower_stem.rsplit(['_', '-', '.']).next().unwrap_or_default();
    NAMES.contains(&lower.as_str())
        || lower.starts_with("jest.config.")
        || lower.starts_with("vitest.config.")
        || words.last() == Some(&"snap")
        || words.first().is_some_and(|word| FIRST.contains(word))
        || LAST.contains(&last)
        || CLASS_ENDINGS.iter().any(|ending| stem.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_seen() {
        for path in [
            "tests/a.py",
            "a/test/b.rs",
            "spec/slug.rb",
            "slug_test.go",
            "test_slug.py",
            "slug.test.ts",
            "test.sh",
            "conftest.py",
            "a/conftest.py",
            "src/Slug.Spec.tsx",
            "SlugTest.java",
            "SlugTests.cs",
            "src/tests.rs",
            "web/__tests__/x.js",
            "a/x.snap",
            "run-tests.sh",
            "jest.config.js",
            "Tests/A.swift",
            "slug_spec.rb",
        ] {
            assert!(looks_like_test(&RepoPath::new(path).unwrap()), "{path}");
        }
    }

    #[test]
    fn other_files_are_not() {
        for path in [
            "src/lib.rs",
            "latest.py",
            "contest/a.py",
            "strings.py",
            "attest.rs",
            "protest_song.txt",
            "inspect.c",
        ] {
            assert!(!looks_like_test(&RepoPath::new(path).unwrap()), "{path}");
        }
    }
}
