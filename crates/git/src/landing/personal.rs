//! A branch that a person has herma make in their own repository: one commit, with the person's own git identity.

use herma_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::{HEADS, LandError, LandState, Landing, REFS, Unlanded};
use crate::error::GitError;
use crate::git_dir::{GitDir, is_id};
use crate::identity::Identity;
use crate::source::SourceRepo;

/// A branch with one commit. Complete before the repository is touched, so that a later process can tell what was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PersonalBranch(Landing);

impl PersonalBranch {
    /// The full name of the branch.
    #[must_use]
    pub fn reference(&self) -> &str {
        &self.0.reference
    }

    /// Its name without `refs/heads/`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.reference.strip_prefix(HEADS).map_or("", |name| name.trim_start_matches('/'))
    }

    /// The commit that it points to.
    #[must_use]
    pub fn commit(&self) -> &str {
        &self.0.commit
    }

    /// Names become part of paths and of git's input, so values read from disk are checked before. The branches of landings are
    /// not a person's.
    fn check(&self) -> Result<(), GitError> {
        let reference = self.reference();
        let sound = reference.starts_with("refs/heads/")
            && reference != REFS
            && !reference.starts_with("refs/heads/herma/")
            && !reference.bytes().any(|b| b.is_ascii_whitespace() || b.is_ascii_control())
            && !reference.split('/').any(|part| part.is_empty() || part.starts_with('.'));
        if sound { self.0.check_ids() } else { Err(self.0.unexpected()) }
    }
}

impl SourceRepo {
    /// Whether git permits a branch of this name, and it is none of the names that herma uses for landings.
    #[must_use]
    pub fn is_branch_name(&self, name: &str) -> bool {
        let reference = format!("{HEADS}/{name}");
        let of_herma = reference == REFS || reference.starts_with("refs/heads/herma/");
        let shaped = !name.is_empty() && !name.starts_with('-') && name != "HEAD" && !of_herma;
        shaped && self.reading(["check-ref-format", &reference]).checked().is_ok()
    }

    /// Creates, in herma's own git directory, the commit on this repository's HEAD and the pack of the objects that HEAD lacks. The
    /// repository is only read.
    pub fn prepare_branch(
        &self,
        git_dir: &GitDir,
        (name, tree): (&str, &str),
        (author, at): (&Identity, Timestamp),
        message: &str,
    ) -> Result<PersonalBranch, GitError> {
        if !is_id(tree) {
            return Err(GitError::unexpected("branch", tree.as_bytes()));
        }
        let prepare = || {
            let commit = git_dir.commit_as(&self.base_commit, tree, message, (author, at.as_second()))?;
            let branch = PersonalBranch(Landing {
                reference: format!("{HEADS}/{name}"),
                base: self.base_commit.clone(),
                base_ref: self.base_ref()?,
                tree: tree.to_owned(),
                pack: self.pack(git_dir, &commit, tree)?,
                commit,
            });
            branch.check()?;
            Ok(branch)
        };
        prepare().map_err(|e| self.unplaced(e))
    }

    /// Copies the objects into the repository and creates the branch, if HEAD has not moved and no branch of that name exists.
    pub fn make_branch(&self, git_dir: &GitDir, branch: &PersonalBranch) -> Result<(), LandError> {
        branch.check()?;
        self.land_checked(git_dir, &branch.0)
    }

    /// The commit that the branch points to.
    pub fn branch_state(&self, branch: &PersonalBranch) -> Result<LandState, GitError> {
        branch.check()?;
        self.landed(&branch.0)
    }

    /// Deletes the branch if it still points to its commit, and the objects if nothing depends on them. An interrupted or repeated
    /// deletion can be repeated.
    pub fn delete_branch(&self, branch: &PersonalBranch) -> Result<Unlanded, GitError> {
        branch.check()?;
        self.take_back(&branch.0).map_err(|e| self.unplaced(e))
    }
}
