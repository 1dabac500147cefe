//! The programs of the host that fetch packages, and the environment that they are asked in.

use std::ffi::OsString;
use std::path::PathBuf;

/// Where npm, node and Python are found, and the home that holds their configuration.
#[derive(Clone, Debug)]
pub struct HostTools {
    /// The search path.
    pub search_path: OsString,
    /// The home of the user who runs herma.
    pub user_home: PathBuf,
}
