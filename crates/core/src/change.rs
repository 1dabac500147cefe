//! The changes of an engine, as git records them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::RepoPath;

/// One changed path. A rename is a deletion and an addition, because both ends are judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangedFile {
    /// Where.
    pub path: RepoPath,
    /// Its old entry; none if it was added.
    pub old: Option<Entry>,
    /// Its new entry; none if it was deleted.
    pub new: Option<Entry>,
}

/// The entry of a path in a git tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Kind and permissions.
    pub mode: Mode,
    /// The blob's name, or for a submodule the commit's.
    pub id: String,
}

/// The modes that git records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Mode {
    /// A regular file.
    #[serde(rename = "100644")]
    File,
    /// A regular file that can be executed.
    #[serde(rename = "100755")]
    Executable,
    /// A symbolic link.
    #[serde(rename = "120000")]
    Symlink,
    /// A submodule.
    #[serde(rename = "160000")]
    Submodule,
}

impl Mode {
    /// The six octal digits.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Submodule => "160000",
        }
    }

    /// The mode of these digits. The old group-writable mode is read as a regular file, as git itself does.
    #[must_use]
    pub fn parse(digits: &str) -> Option<Self> {
        match digits {
            "100644" | "100664" => Some(Self::File),
            "100755" => Some(Self::Executable),
            "120000" => Some(Self::Symlink),
            "160000" => Some(Self::Submodule),
            _ => None,
        }
    }
}
