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

    /// The error without the target's path: reports and messages know a target by its name only.
    pub(super) fn unplaced(&self, error: GitError) -> GitError {
        let places = [&self.git_dir, &self.common_dir, &self.root];
        match error {
            GitError::Tool(ToolError::Failed { what, status, said }) => {
                let said = places.iter().fold(said, |said, place| match place.to_str() {
                    Some(place) => said.replace(place, "the target"),
                    None => said,
                });
                ToolError::Failed { what, status, said }.into()
            }
            GitError::File { doing, path, cause } => {
                let inside = places.iter().find_map(|place| path.strip_prefix(place).ok());
                let path = inside.map_or(path.clone(), |inside| PathBuf::from("the target's").join(inside));
                GitError::File { doing, path, cause }
            }
            other => other,
        }
    }
}
