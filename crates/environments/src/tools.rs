//! Finds the tools of an environment on this machine, and says what of them is mounted.

mod candidates;
mod credentials;
mod error;
mod find;
mod table;
mod version;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use herma_core::Digest;
use herma_destination::Mount;

pub use credentials::{CREDENTIAL_PATHS, exposes_credentials};
pub use error::ToolError;
pub use find::{find, find_all};
pub use table::{Layout, ManagerPlace, TOOLS, ToolRow};

/// The machine as the operator sees it: values, never this process's own environment.
#[derive(Clone, Debug, Default)]
pub struct HostEnvironment {
    /// `PATH`.
    pub search_path: OsString,
    /// The operator's home.
    pub home: PathBuf,
    /// Other variables, such as `JAVA_HOME` and `NVM_DIR`.
    pub variables: BTreeMap<String, String>,
}

/// A tool that the operator added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorTool {
    /// Its name in definitions.
    pub name: String,
    /// Its program.
    pub path: PathBuf,
    /// Other files and directories to mount, at the same paths.
    pub mounts: Vec<PathBuf>,
    /// Its variables.
    pub env: BTreeMap<String, String>,
}

/// A tool that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundTool {
    /// Its name in definitions.
    pub name: String,
    /// Its version, as it reports it.
    pub version: String,
    /// The real path of its program.
    pub program: PathBuf,
    /// The digest of that file.
    pub digest: Digest,
    /// The mounts that it needs; none if it is part of the system, which every sandbox shows.
    pub mounts: Vec<Mount>,
    /// The directories inside that come first in `PATH`.
    pub search_path: Vec<PathBuf>,
    /// Its variables.
    pub env: Vec<(String, String)>,
}
