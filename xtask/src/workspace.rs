//! The workspace as `cargo metadata` describes it.

use std::path::PathBuf;

use serde::Deserialize;

use crate::command::{TaskError, output};

/// The packages of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
}

/// A package of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency of a package.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// None for a normal dependency.
    pub(crate) kind: Option<String>,
    /// The directory of a package that is named by path.
    pub(crate) path: Option<PathBuf>,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn read() -> Result<Self, TaskError> {
        let args = ["metadata", "--format-version", "1", "--no-deps", "--locked"];
        Ok(serde_json::from_slice(&output("cargo", &args)?)?)
    }
}
