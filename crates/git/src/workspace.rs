//! The agent's own repository: one parentless commit, no remotes, no hooks, no alternates, nothing shared.

use std::path::Path;

use crate::error::GitError;
use crate::git_dir::{Baseline, GitDir, skeleton};

/// Makes `.git` in a workspace whose files are laid out, so that the agent can diff and commit as it is used to.
///
/// The objects are copied into a pack of its own: a hard link or an alternate would let an agent write to, or read
/// more than, what it was given. What the agent does to this directory is never read back.
pub fn make_agent_repository(
    git_dir: &GitDir,
    baseline: &Baseline,
    workspace: &Path,
    scratch_paths: &[&str],
) -> Result<(), GitError> {
    let own = workspace.join(".git");
    skeleton(&own, git_dir.format(), false)?;
    let exclude: String = scratch_paths.iter().flat_map(|path| [path, "\n"]).collect();
    for (name, content) in [("refs/heads/main", format!("{}\n", baseline.commit)), ("info/exclude", exclude)]
    {
        let path = own.join(name);
        std::fs::write(&path, content).map_err(GitError::file("write", path))?;
    }
    let pack = own.join("objects/pack/pack");
    let args = ["pack-objects", "--quiet", "--revs", "--window=0", "--delta-base-offset"];
    git_dir
        .git()
        .call(git_dir.dir(), args)
        .arg(&pack)
        .stdin(format!("{}\n", baseline.commit).into_bytes())
        .checked()?;
    git_dir
        .git()
        .call(git_dir.dir(), ["read-tree", &baseline.tree])
        .env("GIT_INDEX_FILE", own.join("index"))
        .checked()?;
    Ok(())
}
