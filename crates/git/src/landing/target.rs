//! Calls of git in the target, and errors without its path.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use herma_destination::tool::{ToolError, ToolInvocation};

use crate::error::GitError;
use crate::source::SourceRepo;

/// The settings for writes to the target: no reflog, and durable before git reports success.
const WRITING: [&str; 6] =
    ["-c", "core.logAllRefUpdates=false", "-c", "core.fsync=all", "-c", "core.fsyncMethod=fsync"];

impl SourceRepo {
    /// A call that reads from the target's git directory.
    pub(super) fn reading<I, S>(&self, args: I) -> ToolInvocation<'_>
    where
        I: IntoIterator<Item = S>,
        S: Into<OsString>,
    {
        self.git.call(&self.git_dir, args)
    }

    /// One ref transaction in the target, seen from `git_dir`.
    pub(super) fn transaction(&self, git_dir: &Path, commands: &[String]) -> Result<(), GitError> {
        let stdin = format!("start\n{}\nprepare\ncommit\n", commands.join("\n"));
        let call = self.git.call(git_dir, WRITING).args(["update-ref", "--stdin"]);
        call.stdin(stdin).checked()?;
        Ok(())
    }

    /// The directory of the target's packs.
    pub(super) fn pack_dir(&self) -> PathBuf {
        self.common_dir.join("objects/pack")
    }

    /// Removes the target's path from git's message, so that the rest of the path can be shown. Other absolute
    /// paths are removed on display.
    pub(crate) fn unplaced(&self, error: GitError) -> GitError {
        let places = [&self.git_dir, &self.common_dir, &self.root];
        match error {
            GitError::Tool(ToolError::Failed { what, status, said }) => {
                let said = places
                    .iter()
                    .fold(said, |said, place| said.replace(place.to_string_lossy().as_ref(), "the target"));
                ToolError::Failed { what, status, said }.into()
            }
            other => other,
        }
    }
}
