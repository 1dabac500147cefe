//! The agent's own repository: one parentless commit, or the history that the contract gives it; no remotes, no hooks, no
//! alternates, nothing shared.

use std::collections::BTreeMap;
use std::path::Path;

use herma_core::{Digest, RepoPath};

use crate::checkout::BIG_FILE;
use crate::error::GitError;
use crate::git_dir::{Baseline, GitDir, skeleton};
use crate::history::BaseHistory;
use crate::index::{Shown, index};
use crate::tree_entry::TreeEntry;
use crate::walk::describe_below;

/// The files that decide how git behaves in a repository: settings, programs that it runs, and further object
/// stores. A commit changes none of them.
const CONTROL: &[&str] = &[
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/gitdir",
    ".git/hooks",
    ".git/info/attributes",
    ".git/info/exclude",
    ".git/info/grafts",
    ".git/modules",
    ".git/objects/info/alternates",
    ".git/objects/info/http-alternates",
];

/// The control files of the agent's repository at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlFiles(BTreeMap<RepoPath, Digest>);

impl ControlFiles {
    /// Reads them without following symlinks. A `.git` that is no directory any more counts as changed.
    pub fn read(workspace: &Path) -> Result<Self, GitError> {
        let mut files = BTreeMap::new();
        for path in CONTROL {
            files.extend(describe_below(workspace, path)?);
        }
        Ok(Self(files))
    }

    /// The files that were added, changed or removed since `before`.
    #[must_use]
    pub fn changed_since(&self, before: &Self) -> Vec<RepoPath> {
        let mut paths: Vec<RepoPath> = before.0.keys().chain(self.0.keys()).cloned().collect();
        paths.sort();
        paths.dedup();
        paths.retain(|path| before.0.get(path) != self.0.get(path));
        paths
    }
}

/// The commit that an agent's repository has checked out.
#[derive(Clone, Copy, Debug)]
pub enum AgentHead<'a> {
    /// One parentless commit.
    Baseline(&'a Baseline),
    /// The base commit with its history.
    Base(&'a BaseHistory),
}

/// Makes `.git` in a workspace whose files are laid out, so that the agent can diff and commit as it is used to.
///
/// The objects are copied into a pack of its own: a hard link or an alternate would let an agent write to, or read
/// more than, what it was given. Directories that are `hidden` from it do not look as if somebody had removed them.
/// herma never reads back the agent's changes to this directory.
pub fn make_agent_repository(
    git_dir: &GitDir,
    head: AgentHead<'_>,
    entries: &[TreeEntry],
    workspace: &Path,
    scratch_paths: &[&str],
    hidden: &[&str],
) -> Result<(), GitError> {
    let own = workspace.join(".git");
    skeleton(&own, git_dir.format(), false)?;
    let commit = match head {
        AgentHead::Baseline(baseline) => {
            let args =
                ["-c", BIG_FILE, "pack-objects", "--quiet", "--revs", "--window=0", "--delta-base-offset"];
            let pack = own.join("objects/pack/pack");
            let stdin = format!("{}\n", baseline.commit).into_bytes();
            git_dir.git().call(git_dir.dir(), args).arg(&pack).stdin(stdin).checked()?;
            &baseline.commit
        }
        AgentHead::Base(history) => {
            history.write(&own)?;
            history.commit()
        }
    };
    let exclude: String = scratch_paths.iter().flat_map(|path| [path, "\n"]).collect();
    for (name, content) in [("refs/heads/main", format!("{commit}\n")), ("info/exclude", exclude)] {
        let path = own.join(name);
        std::fs::write(&path, content).map_err(GitError::file("write", path))?;
    }
    let file = own.join("index");
    let shown = |entry: &TreeEntry| match entry {
        entry if hidden.iter().any(|dir| entry.is_below(dir)) => Shown::Hidden,
        entry => git_dir.content.shown(entry),
    };
    std::fs::write(&file, index(git_dir.format(), entries, &shown)).map_err(GitError::file("write", file))
}
