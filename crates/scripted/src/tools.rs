//! From the intent of a script to a call of a tool that the client advertises.

mod advertised;
mod arguments;
mod by_patch;
mod by_shell;
mod choose;
mod fill;
mod generic;
mod table;
mod without_patch;
mod working_directory;

pub use by_patch::FileOperation;
pub use choose::{Chosen, Input, ToolCall, choose};
pub use table::{KNOWN_TOOLS, KnownTool, PROVIDER_TOOLS, Part};

use crate::call::Call;

/// The purpose of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Intent {
    /// Run a command.
    Shell,
    /// Write a file.
    Write,
    /// Replace a text in a file.
    Edit,
    /// Apply a patch.
    Patch,
    /// Look at a file.
    Read,
    /// Look at a directory.
    List,
}

impl Intent {
    /// The intent of a call; none where the script names the tool itself.
    #[must_use]
    pub fn of(call: &Call) -> Option<Self> {
        match call {
            Call::Shell(_) => Some(Self::Shell),
            Call::Write(_) => Some(Self::Write),
            Call::Edit(_) => Some(Self::Edit),
            Call::Patch(_) => Some(Self::Patch),
            Call::Read(_) => Some(Self::Read),
            Call::List(_) => Some(Self::List),
            Call::Tool(_) => None,
        }
    }
}
