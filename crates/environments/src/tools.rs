//! Finds the tools of an environment on this machine, and says what of them is mounted.

mod candidates;
mod credentials;
mod error;
mod find;
mod query;
mod table;
mod version;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use herma_core::Digest;
use herma_destination::Mount;

pub use credentials::{CREDENTIAL_PATHS, exposes_credentials};
pub use error::ToolError;
pub use find::{find, find_all};
pub use table::{Layout, ManagerPlace, TOOLS, ToolRow};

/// The variables by which package managers and version managers are configured.
pub const CLIENT_VARIABLES: &[&str] = &[
    "ASDF_DATA_DIR",
    "BUN_INSTALL",
    "CARGO_HOME",
    "COMPOSER_HOME",
    "DENO_INSTALL",
    "DOTNET_ROOT",
    "FNM_DIR",
    "GOENV",
    "GONOPROXY",
    "GONOSUMCHECK",
    "GONOSUMDB",
    "GOPATH",
    "GOPRIVATE",
    "GOPROXY",
    "GOROOT",
    "GOSUMDB",
    "JAVA_HOME",
    "MISE_DATA_DIR",
    "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_USERCONFIG",
    "NVM_DIR",
    "PIPX_HOME",
    "PIP_CONFIG_FILE",
    "PIP_EXTRA_INDEX_URL",
    "PIP_INDEX_URL",
    "POETRY_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "SDKMAN_DIR",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_INSTALL_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "VOLTA_HOME",
    "XDG_CONFIG_HOME",
    "npm_config_registry",
    "npm_config_userconfig",
];

/// The machine as the operator sees it: values, never this process's own environment.
#[derive(Clone, Default)]
pub struct HostEnvironment {
    /// `PATH`.
    pub search_path: OsString,
    /// The operator's home.
    pub home: PathBuf,
    /// Other variables, such as `JAVA_HOME` and `NVM_DIR`.
    pub variables: BTreeMap<String, String>,
    /// Files and directories that no tool may show, beside [`CREDENTIAL_PATHS`]: herma's own home.
    pub never_mounted: Vec<PathBuf>,
}

impl fmt::Debug for HostEnvironment {
    /// Names variables without their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { search_path, home, variables, never_mounted } = self;
        f.debug_struct("HostEnvironment")
            .field("search_path", search_path)
            .field("home", home)
            .field("variables", &variables.keys())
            .field("never_mounted", never_mounted)
            .finish()
    }
}

/// A tool that the operator added.
#[derive(Clone, PartialEq, Eq)]
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

impl fmt::Debug for OperatorTool {
    /// Names variables without their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, path, mounts, env } = self;
        f.debug_struct("OperatorTool")
            .field("name", name)
            .field("path", path)
            .field("mounts", mounts)
            .field("env", &env.keys())
            .finish()
    }
}

/// A tool that was found.
#[derive(Clone, PartialEq, Eq)]
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

impl fmt::Debug for FoundTool {
    /// Names variables without their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, version, program, digest, mounts, search_path, env } = self;
        let names: Vec<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("FoundTool")
            .field("name", name)
            .field("version", version)
            .field("program", program)
            .field("digest", digest)
            .field("mounts", mounts)
            .field("search_path", search_path)
            .field("env", &names)
            .finish()
    }
}
