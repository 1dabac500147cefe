//! The problems of a configuration. No message holds a value of the file: only keys, names and places.

use std::fmt;
use std::path::{Path, PathBuf};

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The line and the column, from 1, where they are known.
    pub place: Option<(u64, u64)>,
    /// The problem.
    pub problem: String,
    /// The expected value, or the next step; empty if the problem says it already.
    pub expected: String,
}

impl Problem {
    pub(super) fn new(problem: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { place: None, problem: problem.into(), expected: expected.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.problem)?;
        if self.expected.is_empty() { Ok(()) } else { write!(f, "; {}", self.expected) }
    }
}

/// The problems of a configuration, in the order of the file. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadConfig {
    file: PathBuf,
    problems: Vec<Problem>,
}

impl BadConfig {
    pub(super) fn new(file: &Path, mut problems: Vec<Problem>) -> Self {
        problems.sort();
        problems.dedup();
        Self { file: file.to_owned(), problems }
    }

    pub(super) fn one(file: &Path, problem: Problem) -> Self {
        Self::new(file, vec![problem])
    }

    /// Which file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Its problems.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for BadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            let newline = if at == 0 { "" } else { "\n" };
            write!(f, "{newline}{}: {problem}", self.file.display())?;
        }
        Ok(())
    }
}

impl std::error::Error for BadConfig {}
