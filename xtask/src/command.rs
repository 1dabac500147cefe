//! Runs cargo and git.
#![allow(clippy::disallowed_types, reason = "developer tools start cargo and git; they are no part of herma")]

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Command;

/// A task could not be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    /// A program could not be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The reason.
        source: io::Error,
    },
    /// A program failed.
    #[error("{program} failed: {stderr}")]
    Failed {
        /// The program.
        program: String,
        /// Its standard error, where it was not inherited.
        stderr: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// cargo's metadata could not be parsed.
    #[error("cannot parse the metadata of the workspace: {0}")]
    Metadata(#[from] serde_json::Error),
    /// The language rules could not be read.
    #[error("xtask/language.toml: {0}")]
    Rules(String),
    /// The output could not be printed.
    #[error("cannot print: {0}")]
    Print(#[from] io::Error),
}

impl TaskError {
    /// Names the file of an error.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::File { path, source }
    }
}

/// Runs a program with the terminal of this one. The exit code is its own.
pub(crate) fn status(program: &OsStr, args: &[&OsStr]) -> Result<u8, TaskError> {
    let status = Command::new(program).args(args).status().map_err(start(program))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

/// Runs a program and returns its standard output.
pub(crate) fn output(program: &str, args: &[&str]) -> Result<Vec<u8>, TaskError> {
    let output = Command::new(program).args(args).output().map_err(start(OsStr::new(program)))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(TaskError::Failed { program: format!("{program} {}", args.join(" ")), stderr })
}

fn start(program: &OsStr) -> impl FnOnce(io::Error) -> TaskError {
    let program = program.to_string_lossy().into_owned();
    move |source| TaskError::Start { program, source }
}
