//! The name and email that a person has configured for git.

use std::path::Path;

use crate::error::GitError;
use crate::git::Git;

/// The author of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The configured `user.name`.
    pub name: String,
    /// The configured `user.email`.
    pub email: String,
}

impl Git {
    /// The identity that git would use for this user in the repository at `inside`; none where name or email is not configured, or
    /// cannot be part of a commit.
    pub fn identity(&self, inside: &Path, user_home: &Path) -> Result<Option<Identity>, GitError> {
        let value = |key: &str| -> Result<Option<String>, GitError> {
            let output = self.config_of(inside, user_home).args(["--get", key]).output()?;
            // Exit code 1 means that the key is not set.
            match output.status.code() {
                Some(0) => Ok(plain(&output.stdout)),
                Some(1) => Ok(None),
                _ => Err(GitError::unexpected("config", &output.stderr)),
            }
        };
        Ok(value("user.name")?.zip(value("user.email")?).map(|(name, email)| Identity { name, email }))
    }
}

/// The line, if a commit can have it as a name: git drops some characters, and a line break would start another header.
fn plain(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?.trim();
    let sound = !text.is_empty() && !text.chars().any(|c| c.is_control() || matches!(c, '<' | '>'));
    sound.then(|| text.to_owned())
}
