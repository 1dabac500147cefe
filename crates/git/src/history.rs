//! The history that a contract gives to workspaces and checkouts: the commits of the base up to a depth and the tags that point to
//! them, in a pack of their own.

mod commits;
mod repository;
mod tags;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_core::Digest;
use herma_core::environment::{History, HistoryRecord};
use sha2::{Digest as _, Sha256};

use self::commits::{Walked, walk};
use self::tags::Tag;
use crate::checkout::BIG_FILE;
use crate::error::GitError;
use crate::git::Git;
use crate::git_dir::{Baseline, CheckoutContent, GitDir, is_id, one_id};
use crate::object::ObjectFormat;
use crate::source::SourceRepo;

pub use self::repository::{CheckoutRepository, CommitOnBase};

/// The largest list of the commits at which a shallow clone ends.
const MAX_SHALLOW_BYTES: u64 = 64 << 20;

/// The history of a base, in a git directory of its own that no process but herma's can reach.
#[derive(Clone, Debug)]
pub struct BaseHistory {
    commit: String,
    /// The time of the base commit. A commit on top of it has the same one, so that equal results have equal ids.
    seconds: u64,
    /// The commits whose parents are not part of it.
    boundary: Vec<String>,
    tags: Vec<Tag>,
    dir: GitDir,
    /// The files of checkouts that are no blobs of the tree.
    content: Arc<CheckoutContent>,
    /// The pack, without its extension.
    pack: PathBuf,
}

impl SourceRepo {
    /// Packs the history of the base below `git_dir`: no other branch, no reflog, no stash. `None` if none is wanted.
    pub fn history(&self, git_dir: &GitDir, wanted: History) -> Result<Option<BaseHistory>, GitError> {
        let depth = match wanted {
            History::None => return Ok(None),
            History::Full => u32::MAX,
            History::Depth(commits) => commits,
        };
        let made = self.shallow().and_then(|shallow| {
            let walked = if wanted == History::Full && shallow.is_empty() {
                None
            } else {
                Some(walk(&self.git, &self.common_dir, &self.base_commit, depth, &shallow)?)
            };
            let tags = tags::pointing_into(self, walked.as_ref().map(|walked| &walked.commits))?;
            let boundary = walked.map_or_else(Vec::new, Walked::into_boundary);
            let history = Baseline { commit: self.base_commit.clone(), tree: self.base_tree.clone() };
            BaseHistory::pack(git_dir, &self.common_dir.join("objects"), history, boundary, tags)
        });
        made.map(Some).map_err(|e| self.unplaced(e))
    }

    /// The commits at which the repository's own history ends, where it is a shallow clone.
    fn shallow(&self) -> Result<BTreeSet<String>, GitError> {
        let path = self.common_dir.join("shallow");
        let fail = |cause| GitError::file("read", &path)(cause);
        let text = match std::fs::symlink_metadata(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            Ok(meta) if meta.is_file() && meta.len() <= MAX_SHALLOW_BYTES => std::fs::read_to_string(&path),
            Ok(_) => Err(io::Error::other("it is not a regular file, or too large")),
            Err(e) => Err(e),
        };
        Ok(text.map_err(fail)?.lines().filter(|line| is_id(line)).map(str::to_owned).collect())
    }
}

impl BaseHistory {
    /// The history of a base that has none but itself, such as a fixture.
    pub fn of_baseline(git_dir: &GitDir, baseline: &Baseline) -> Result<Self, GitError> {
        let objects = git_dir.dir().join("objects");
        Self::pack(git_dir, &objects, baseline.clone(), Vec::new(), Vec::new())
    }

    fn pack(
        git_dir: &GitDir,
        objects: &Path,
        Baseline { commit, .. }: Baseline,
        boundary: Vec<String>,
        tags: Vec<Tag>,
    ) -> Result<Self, GitError> {
        let git: &Git = git_dir.git();
        let dir = git_dir.dir().join("history");
        let dir = GitDir::create(git, &dir, ObjectFormat::of_id(&commit), Some(objects))?;
        // git takes the commits of this list for parentless.
        write_shallow(dir.dir(), &boundary)?;
        let seconds = commits::time(git, dir.dir(), &commit)?;
        let roots = std::iter::once(&commit).chain(tags.iter().map(|tag| &tag.id));
        let roots: String = roots.flat_map(|id| [id, "\n"]).collect();
        let pack = pack_objects(&dir, &["--revs"], roots, &dir.dir().join("objects/pack/pack"))?;
        let content = Arc::clone(&git_dir.content);
        Ok(Self { commit, seconds, boundary, tags, dir, content, pack })
    }

    /// The commit that the history ends with.
    #[must_use]
    pub fn commit(&self) -> &str {
        &self.commit
    }

    /// The digest over everything that git can tell about it: commit, depth and tags.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hash = Sha256::new();
        hash.update(format!("{}\n", self.commit));
        for commit in &self.boundary {
            hash.update(format!("shallow {commit}\n"));
        }
        for tag in &self.tags {
            hash.update([tag.id.as_bytes(), b" ", tag.name.as_bytes(), b"\n"].concat());
        }
        Digest::from_bytes(hash.finalize().into())
    }

    /// The history as evidence names it.
    #[must_use]
    pub fn record(&self) -> HistoryRecord {
        HistoryRecord {
            commit: self.commit.clone(),
            is_shallow: !self.boundary.is_empty(),
            tags: self.tags.len(),
            digest: self.digest(),
        }
    }
}

fn write_shallow(git_dir: &Path, boundary: &[String]) -> Result<(), GitError> {
    if boundary.is_empty() {
        return Ok(());
    }
    let path = git_dir.join("shallow");
    let lines: String = boundary.iter().flat_map(|id| [id, "\n"]).collect();
    std::fs::write(&path, lines).map_err(GitError::file("write", path))
}

/// Packs what `stdin` names. Returns the path of the pack without its extension.
fn pack_objects(dir: &GitDir, options: &[&str], stdin: String, prefix: &Path) -> Result<PathBuf, GitError> {
    let args = ["-c", BIG_FILE, "pack-objects", "--quiet", "--window=0", "--delta-base-offset"];
    let packed =
        dir.git().call(dir.dir(), args).args(options).arg(prefix).stdin(stdin.into_bytes()).checked()?;
    let id = one_id("pack-objects", &packed.stdout)?;
    let name = prefix.file_name().unwrap_or_default().to_string_lossy();
    Ok(prefix.with_file_name(format!("{name}-{id}")))
}
