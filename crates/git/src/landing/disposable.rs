//! A throw-away repository, made for one run.

use std::path::Path;

use crate::agent_repository::{AgentHead, make_agent_repository};
use crate::checkout::lay_out;
use crate::error::GitError;
use crate::git::Git;
use crate::git_dir::{Baseline, GitDir};
use crate::source::SourceRepo;

/// Makes, in the new directory `dir`, an ordinary repository with the baseline as its one commit, checked out on
/// `main`. It has no remotes, hooks or alternates, and a run can land in it as in any other target.
pub fn make_disposable(
    git: &Git,
    dir: &Path,
    git_dir: &GitDir,
    baseline: &Baseline,
) -> Result<SourceRepo, GitError> {
    // Files that are no blobs of the tree would look like changes there.
    let git_dir = &git_dir.without_content();
    std::fs::create_dir(dir).map_err(GitError::file("make", dir))?;
    let entries = git_dir.entries(&baseline.tree)?;
    lay_out(git_dir, &entries, &[dir])?;
    make_agent_repository(git_dir, AgentHead::Baseline(baseline), &entries, dir, &[], &[])?;
    SourceRepo::open(git, dir, "the disposable repository", None)
}
