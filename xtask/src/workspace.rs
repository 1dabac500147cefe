//! The workspace as `cargo metadata` describes it.

use std::path::PathBuf;

use serde::Deserialize;

use crate::command::{TaskError, output};

/// Directories of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    pub(crate) target_directory: PathBuf,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn read() -> Result<Self, TaskError> {
        let args = ["metadata", "--format-version", "1", "--no-deps", "--locked"];
        Ok(serde_json::from_slice(&output("cargo", &args)?)?)
    }
}
