//! The preparation without the target: the commit, and the pack that carries it.

use std::path::{Path, PathBuf};

use herma_core::RunId;

use super::{Landing, REFS};
use crate::error::GitError;
use crate::git_dir::{GitDir, is_id, one_id};
use crate::source::SourceRepo;

/// The directory of a landing's pack in herma's own git directory.
pub(super) fn waiting_packs(git_dir: &GitDir) -> PathBuf {
    git_dir.dir().join("landing")
}

impl SourceRepo {
    /// Creates, in herma's own git directory, the commit to land and the pack of the objects that the base lacks.
    /// The target is only read. The same tree, base, run and title give the same commit.
    pub fn prepare_landing(
        &self,
        git_dir: &GitDir,
        result_tree: &str,
        run: RunId,
        title: &str,
    ) -> Result<Landing, GitError> {
        if !is_id(result_tree) {
            return Err(GitError::unexpected("landing", result_tree.as_bytes()));
        }
        let prepare = || {
            let commit = git_dir.commit_on(&self.base_commit, result_tree, &message(title, run))?;
            Ok(Landing {
                reference: format!("{REFS}/{run}"),
                base: self.base_commit.clone(),
                base_ref: self.base_ref()?,
                tree: result_tree.to_owned(),
                pack: self.pack(git_dir, &commit, result_tree)?,
                commit,
            })
        };
        prepare().map_err(|e| self.unplaced(e))
    }

    /// Packs the commit and the objects that its tree has and the base's tree lacks. git checks every object and
    /// link of the pack, so that the target's own `git fsck` stays clean.
    pub(super) fn pack(&self, git_dir: &GitDir, commit: &str, tree: &str) -> Result<String, GitError> {
        let waiting = waiting_packs(git_dir);
        std::fs::create_dir_all(&waiting).map_err(GitError::file("make", &waiting))?;
        let call = |args: &[&str]| git_dir.git().call(git_dir.dir(), args.iter().copied());
        let without_base = format!("^{}", self.base_tree);
        let mut objects =
            call(&["rev-list", "--objects", "--no-object-names", tree, &without_base]).checked()?.stdout;
        objects.extend_from_slice(commit.as_bytes());
        objects.push(b'\n');
        let settings = ["-c", "pack.writeReverseIndex=false", "-c", "pack.indexVersion=2"];
        let packed = call(&settings)
            .args(["pack-objects", "--quiet", "--window=0", "--no-reuse-delta"])
            .arg(waiting.join("pack"))
            .stdin(objects)
            .checked()?;
        let name = format!("pack-{}", one_id("pack-objects", &packed.stdout)?);
        let file: &Path = &waiting.join(format!("{name}.pack"));
        call(&settings).args(["index-pack", "--strict"]).arg(file).checked()?;
        Ok(name)
    }
}

/// The title on one line, so that no part of it is a trailer, and the run.
fn message(title: &str, run: RunId) -> String {
    let line: String = title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = match line.trim() {
        "" => "herma",
        line => line,
    };
    format!("{line}\n\nHerma-Run: {run}\n")
}
