//! Gitignore-style globs, with the shapes refused that the library reads in another way than git does.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// A pattern of the contract that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` cannot be used as a path pattern: {why}")]
pub struct BadPattern {
    /// As the contract says it.
    pub pattern: String,
    /// The problem, and the correct form.
    pub why: String,
}

/// Whether letters of either case match each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LetterCase {
    Exact,
    Any,
}

/// The kind of a path in the tree: a pattern that ends with `/` matches directories only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathKind {
    Directory,
    Leaf,
}

/// A compiled list of patterns.
#[derive(Clone, Debug)]
pub(crate) struct Globs {
    compiled: Gitignore,
    /// The original patterns, if patterns and paths are compared in lower case.
    spelled: Option<Vec<String>>,
}

impl Globs {
    pub(crate) fn compile<'a>(
        patterns: impl IntoIterator<Item = &'a str>,
        case: LetterCase,
    ) -> Result<Self, BadPattern> {
        let patterns: Vec<&str> = patterns.into_iter().collect();
        // The library has no quick way for letters of either case, and every run waits for this. Small letters on both sides
        // are the same, but for a class, where `[Z-a]` is more than letters.
        let small = case == LetterCase::Any && !patterns.iter().any(|pattern| pattern.contains('['));
        // An empty root: paths are relative to the repository already.
        let mut builder = GitignoreBuilder::new("");
        builder.allow_unclosed_class(false);
        builder.case_insensitive(case == LetterCase::Any && !small).map_err(|e| bad("", e.to_string()))?;
        for pattern in &patterns {
            let mut line = harden(pattern)?;
            if small {
                line.make_ascii_lowercase();
            }
            builder.add_line(None, &line).map_err(|e| bad(pattern, e.to_string()))?;
        }
        let compiled = builder.build().map_err(|e| bad("", e.to_string()))?;
        Ok(Self { compiled, spelled: small.then(|| patterns.into_iter().map(str::to_owned).collect()) })
    }

    /// The pattern that matches this very path, regardless of the directories above it.
    pub(crate) fn hit(&self, path: &[u8], kind: PathKind) -> Option<&str> {
        let Some(spelled) = &self.spelled else { return self.find(path, kind) };
        let path = path.to_ascii_lowercase();
        let small = self.find(&path, kind)?;
        Some(spelled.iter().find(|pattern| pattern.eq_ignore_ascii_case(small)).map_or(small, String::as_str))
    }

    fn find(&self, path: &[u8], kind: PathKind) -> Option<&str> {
        match self.compiled.matched(OsStr::from_bytes(path), kind == PathKind::Directory) {
            Match::Ignore(glob) => Some(glob.original()),
            Match::None | Match::Whitelist(_) => None,
        }
    }

    /// The pattern that matches this path or a directory above it.
    pub(crate) fn covers(&self, path: &[u8], kind: PathKind) -> Option<&str> {
        prefixes(path, kind).find_map(|(prefix, kind)| self.hit(prefix, kind))
    }
}

/// The directories above a path from the root down, then the path itself. The root is left out: the library's own
/// walk includes it, and then `*/` matches a top-level file.
pub(crate) fn prefixes(path: &[u8], leaf: PathKind) -> impl Iterator<Item = (&[u8], PathKind)> {
    let slashes = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
    slashes.map(|at| (&path[..at], PathKind::Directory)).chain([(path, leaf)])
}

fn bad(pattern: &str, why: impl Into<String>) -> BadPattern {
    BadPattern { pattern: pattern.to_owned(), why: why.into() }
}

/// The pattern as the library has to read it so that it means what git means by it.
fn harden(pattern: &str) -> Result<String, BadPattern> {
    if pattern.contains("***") {
        return Err(bad(pattern, "it has three stars in a row; write `*` or `**`"));
    }
    let mut hard = String::with_capacity(pattern.len() + 4);
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        hard.push(c);
        match c {
            '\\' => match rest.next() {
                Some('/') => return Err(bad(pattern, "it has a backslash before a `/`; leave it out")),
                escaped => hard.extend(escaped),
            },
            '[' => rest = class(rest.as_str(), &mut hard).map_err(|why| bad(pattern, why))?.chars(),
            _ => {}
        }
    }
    // A class that names `/` gives the pattern a slash, and with one it would no longer match at any depth.
    if hard != pattern && !pattern.trim_end_matches('/').contains('/') {
        hard.insert_str(0, "**/");
    }
    Ok(hard)
}

/// Copies a class after its `[` and gives what follows it. The library lets a class match `/`; git never does.
fn class<'a>(text: &'a str, hard: &mut String) -> Result<&'a str, &'static str> {
    let negated = text.starts_with(['!', '^']);
    let members = &text[usize::from(negated)..];
    // A `]` right at the start is a member.
    let skip = usize::from(members.starts_with(']'));
    let end = skip + members[skip..].find(']').ok_or("a `[` is not closed")?;
    let (members, after) = (&members[..end], &members[end + 1..]);
    if !members.is_ascii() || members.contains(['\\', '/', '[']) {
        return Err("a class holds plain ASCII characters; write one pattern for each name instead");
    }
    let spans_slash = members.as_bytes().windows(3).any(|w| w[1] == b'-' && (w[0]..=w[2]).contains(&b'/'));
    if spans_slash {
        return Err("a range in a class runs over `/`; name the characters one by one");
    }
    if negated {
        if members.starts_with([']', '-']) {
            return Err("a class with `!` starts with `]` or `-`; write one pattern for each name instead");
        }
        hard.push_str("!/");
    }
    hard.push_str(members);
    hard.push(']');
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(pattern: &str, path: &str) -> bool {
        let globs = Globs::compile([pattern], LetterCase::Exact).unwrap();
        globs.covers(path.as_bytes(), PathKind::Leaf).is_some()
    }

    #[test]
    fn a_class_never_matches_a_slash() {
        assert!(covers("/a[!b]c", "axc"));
        assert!(!covers("/a[!b]c", "a/c"));
        assert!(!covers("/a[^b]c", "a/c"));
        for pattern in ["a[+-9]b", "a[]/]b", "a[\\]]b", "a[[:alpha:]]b", "a[!-b]c", "[ä]"] {
            assert!(Globs::compile([pattern], LetterCase::Exact).is_err(), "{pattern}");
        }
    }

    #[test]
    fn letters_of_either_case_match_and_the_pattern_is_reported_as_written() {
        let hit = |pattern: &str, path: &str| {
            let globs = Globs::compile([pattern, "other"], LetterCase::Any).unwrap();
            globs.hit(path.as_bytes(), PathKind::Leaf).map(str::to_owned)
        };
        for path in ["Jenkinsfile", "ci/JENKINSFILE", "jenkinsfile"] {
            assert_eq!(hit("Jenkinsfile", path).as_deref(), Some("Jenkinsfile"), "{path}");
        }
        assert_eq!(hit("/Src/*.PEM", "sRC/a.Pem").as_deref(), Some("/Src/*.PEM"));
        // A class is more than its letters.
        for path in ["_x", "Zx", "zx", "AX"] {
            assert!(hit("[Z-a]x", path).is_some(), "{path}");
        }
        // The caller folds letters beyond ASCII.
        assert_eq!(hit("\u{e9}", "\u{c9}"), None);
    }

    #[test]
    fn directories_only_leaves_files_at_the_root_alone() {
        for pattern in ["*/", "/*/", "**/"] {
            assert!(covers(pattern, "a/b"), "{pattern}");
            assert!(!covers(pattern, "a"), "{pattern}");
        }
    }

    #[test]
    fn names_are_bytes() {
        let globs = Globs::compile(["src/**/*.c"], LetterCase::Exact).unwrap();
        assert!(globs.covers(b"src/\xff\n/\xfe.c", PathKind::Leaf).is_some());
    }

    #[test]
    fn patterns_that_match_nothing_are_refused() {
        for pattern in ["a***", "\\/a", "a\\/b", "[]", "[a"] {
            let error = Globs::compile([pattern], LetterCase::Exact).unwrap_err();
            assert_eq!(error.pattern, pattern);
        }
    }
}
