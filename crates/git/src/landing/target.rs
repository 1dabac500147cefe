//! Calls of git in the target, and errors that do not show where it lies.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use herma_destination::tool::{Call, ToolError};

use crate::error::GitError;
use crate::source::SourceRepo;

/// What is added where git writes to the target: no log of the ref, and durable before git says that it is done.
const WRITING: [&str; 6] =
    ["-c", "core.logAllRefUpdates=false", "-c", "core.fsync=all", "-c", "core.fsyncMethod=fsync"];

impl SourceRepo {
    /// A call that reads from the target's git directory.
    pub(super) fn reading<I, S>(&self, args: I) -> Call<'_>
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

    /// Where the target keeps its packs.
    pub(super) fn pack_dir(&self) -> PathBuf {
        self.common_dir.join("objects/pack")
    }

    /// The error with the target's path taken out of git's words, so that what follows the path can be shown. Whatever
    /// other path is in them is taken out when the error is shown.
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
