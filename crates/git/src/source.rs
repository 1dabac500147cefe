//! A local repository as a target: opened, read, and proven unchanged.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use herma_core::{Digest, RepoPath};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::checkout::BIG_FILE;
use crate::error::GitError;
use crate::git::Git;
use crate::git_dir::{Baseline, GitDir, is_id};
use crate::lfs_status::{WorkTree, without_unchanged};
use crate::object::{ObjectFormat, blob_id};
use crate::parallel;
use crate::plain::{NotPlain, is_plain};
use crate::regular;
use crate::stamp::Stamp;

/// A local repository, found.
#[derive(Clone, Debug)]
pub struct SourceRepo {
    pub(crate) git: Git,
    pub(crate) root: PathBuf,
    pub(crate) git_dir: PathBuf,
    pub(crate) common_dir: PathBuf,
    /// The requested base: a name, a revision, or `HEAD`.
    pub(crate) base: String,
    pub(crate) base_commit: String,
    pub(crate) base_tree: String,
    /// The files read at the last capture, so that the next reads only those that may have changed.
    looked: Arc<Mutex<Looked>>,
}

/// The stamp and content id of each file, by its path.
type Looked = HashMap<Vec<u8>, (Stamp, Vec<u8>)>;

/// The state that must be the same before and after a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceState {
    /// Digest over `HEAD`.
    pub head: Digest,
    /// Digest over every ref, packed or not.
    pub refs: Digest,
    /// Digest over the index file.
    pub index: Digest,
    /// Digest over `git status`.
    pub status: Digest,
    /// Digest over kind, mode and content of every file that git does not ignore.
    pub work_tree: Digest,
    /// Whether no tracked file outside of `.herma/` has an uncommitted change. A run starts from a commit, so that untracked files
    /// and herma's own directory are no part of it.
    pub clean: bool,
    /// The entries of `git status` that say otherwise.
    #[serde(default)]
    pub listed: StatusSummary,
}

/// A summary of `git status` for messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusSummary {
    /// The first paths.
    pub first: Vec<RepoPath>,
    /// The number of all paths.
    pub count: usize,
}

/// herma runs no filter of Git LFS, whose settings may be the target's own; it compares pointers with files itself.
const NO_LFS_FILTER: [&str; 4] =
    ["filter.lfs.clean=", "filter.lfs.smudge=", "filter.lfs.process=", "filter.lfs.required=false"];

/// The number of paths that are kept.
const FIRST: usize = 5;

/// How `git status --porcelain=v1` begins the line of an untracked file.
const UNTRACKED: &[u8] = b"?? ";
/// herma's own directory in a repository.
const OWN_DIRECTORY: &[u8] = b".herma/";

impl StatusSummary {
    /// Parses `git status --porcelain=v1 -z --no-renames`: two letters, a space and a path.
    fn of(status: &[u8]) -> Self {
        let lines = || status.split(|b| *b == 0).filter(|line| !line.starts_with(UNTRACKED));
        let paths =
            || lines().filter_map(|line| line.get(3..)).filter(|path| !path.starts_with(OWN_DIRECTORY));
        Self { first: paths().filter_map(RepoPath::new).take(FIRST).collect(), count: paths().count() }
    }
}

impl SourceState {
    /// Whether it is clean and `git status` lists the same as before: what was untracked may stay, and nothing may be added.
    #[must_use]
    pub fn clean_since(&self, before: &Self) -> bool {
        self.clean && self.status == before.status
    }

    /// The differences, in words.
    #[must_use]
    pub fn differences(&self, after: &Self) -> Vec<&'static str> {
        [
            ("HEAD", self.head != after.head),
            ("refs", self.refs != after.refs),
            ("index", self.index != after.index),
            ("status", self.status != after.status),
            ("work tree", self.work_tree != after.work_tree),
        ]
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect()
    }
}

impl SourceRepo {
    /// Opens the repository with the top directory `root` at `base`, or at its HEAD. `name` is the contract's name
    /// for it: errors never show the path.
    pub fn open(git: &Git, root: &Path, name: &str, base: Option<&str>) -> Result<Self, GitError> {
        let none = |reason: String| GitError::NotARepository { name: name.to_owned(), reason };
        let base = base.unwrap_or("HEAD");
        let root = root.canonicalize().map_err(|e| none(e.to_string()))?;
        regular::check_openable(&root)?;
        let ask = |revisions: &[String]| {
            let args = ["rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"];
            git.call_in(&root, args).args(revisions).checked()
        };
        // A contract's base cannot start with a dash, so it is never parsed as an option.
        let output = match ask(&[format!("{base}^{{commit}}"), format!("{base}^{{tree}}")]) {
            Ok(output) => output,
            Err(_) if ask(&[]).is_ok() => return Err(GitError::NoSuchBase { base: base.to_owned() }),
            Err(_) => return Err(none("git does not find one there".to_owned())),
        };
        let lines: Vec<&[u8]> = output.stdout.split(|b| *b == b'\n').collect();
        let [top, git_dir, common_dir, commit, tree, ..] = lines[..] else {
            return Err(GitError::unexpected("rev-parse", &output.stdout));
        };
        let path = |bytes| Path::new(OsStr::from_bytes(bytes));
        let id = |bytes| String::from_utf8_lossy(bytes).into_owned();
        if path(top) != root {
            return Err(none("it is inside another repository".to_owned()));
        }
        let (base_commit, base_tree) = (id(commit), id(tree));
        if !is_id(&base_commit) || !is_id(&base_tree) {
            return Err(GitError::unexpected("rev-parse", &output.stdout));
        }
        let (git_dir, common_dir) = (path(git_dir).to_owned(), root.join(path(common_dir)));
        let (base, looked) = (base.to_owned(), Arc::default());
        Ok(Self { git: git.clone(), root, git_dir, common_dir, base, base_commit, base_tree, looked })
    }

    /// Its path. Messages and evidence use its name instead.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Checks that it is entirely at `root`, through no link.
    pub fn is_at(&self, root: &Path) -> Result<(), NotPlain> {
        is_plain(root)?;
        let own = root.join(".git");
        // The repository may have been replaced since it was opened.
        if self.root == root && self.git_dir == own && self.common_dir == own {
            Ok(())
        } else {
            Err(NotPlain::Elsewhere)
        }
    }

    /// The commit that a run on this repository starts from.
    #[must_use]
    pub fn base_commit(&self) -> &str {
        &self.base_commit
    }

    /// The paths whose entry in the index is not that of the base: what a person has staged.
    pub fn staged(&self) -> Result<Vec<RepoPath>, GitError> {
        regular::check_openable(&self.root)?;
        let args = ["diff-index", "--cached", "--name-only", "--no-renames", "-z", "--ignore-submodules=all"];
        let call = self.git.call_in(&self.root, args).arg(&self.base_commit).arg("--");
        let output = call.checked().map_err(|e| self.unplaced(e.into()))?;
        let names = output.stdout.split(|b| *b == 0).filter(|name| !name.is_empty());
        names
            .map(|name| RepoPath::new(name).ok_or_else(|| GitError::unexpected("diff-index", name)))
            .collect()
    }

    /// The paths of the files of the base.
    pub fn paths_at_base(&self) -> Result<Vec<RepoPath>, GitError> {
        regular::check_openable(&self.root)?;
        let args = ["ls-tree", "-r", "-z", "--name-only", "--full-tree"];
        let call = self.git.call(&self.git_dir, args).arg(&self.base_commit);
        let output = call.checked().map_err(|e| self.unplaced(e.into()))?;
        let names = output.stdout.split(|b| *b == 0).filter(|name| !name.is_empty());
        names.map(|name| RepoPath::new(name).ok_or_else(|| GitError::unexpected("ls-tree", name))).collect()
    }

    /// herma's own git directory for a run on this repository, with the base as one parentless commit. It reads
    /// this repository's objects and writes none there.
    pub fn make_git_dir(&self, dir: &Path) -> Result<(GitDir, Baseline), GitError> {
        let objects = self.common_dir.join("objects");
        let git_dir = GitDir::create(&self.git, dir, ObjectFormat::of_id(&self.base_commit), Some(&objects))?;
        let baseline = git_dir.adopt(&self.base_tree).map_err(|e| self.unplaced(e))?;
        Ok((git_dir, baseline))
    }

    /// The same for the tree of an earlier run, whatever the repository at `inside` has checked out now. `None` if
    /// it does not have that tree.
    pub fn earlier_baseline(
        git: &Git,
        inside: &Path,
        tree: &str,
        dir: &Path,
    ) -> Result<Option<(GitDir, Baseline)>, GitError> {
        let objects = git.common_dir(inside)?.join("objects");
        if !is_id(tree) {
            return Ok(None);
        }
        let git_dir = GitDir::create(git, dir, ObjectFormat::of_id(tree), Some(&objects))?;
        if !git_dir.has_tree(tree) {
            return Ok(None);
        }
        let baseline = git_dir.adopt(tree)?;
        Ok(Some((git_dir, baseline)))
    }

    /// Captures the state that must be the same after the run.
    pub fn capture(&self) -> Result<SourceState, GitError> {
        // git runs below, and would block on a FIFO.
        regular::check_openable(&self.root)?;
        self.take_down().map_err(|e| self.unplaced(e))
    }

    fn take_down(&self) -> Result<SourceState, GitError> {
        std::thread::scope(|scope| {
            let status = scope.spawn(|| self.status());
            let work_tree = self.work_tree();
            let status = match status.join() {
                Ok(status) => status?,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            let mut refs = Sha256::new();
            for name in ["packed-refs", "refs", "reftable"] {
                digest_files(&self.common_dir.join(name), &mut refs)?;
            }
            let listed = StatusSummary::of(&status);
            Ok(SourceState {
                head: digest_of_file(&self.git_dir.join("HEAD"))?,
                refs: Digest::from_bytes(refs.finalize().into()),
                index: digest_of_file(&self.git_dir.join("index"))?,
                status: Digest::of(&status),
                work_tree: work_tree?,
                clean: listed.count == 0,
                listed,
            })
        })
    }

    pub(crate) fn status(&self) -> Result<Vec<u8>, GitError> {
        // git would map a smaller file into memory to hash it.
        let settings = NO_LFS_FILTER.iter().chain([&BIG_FILE]).flat_map(|setting| ["-c", setting]);
        let args = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"];
        let status = self.git.call_in(&self.root, settings.chain(args)).checked()?.stdout;
        let place = WorkTree { git: &self.git, root: &self.root, common_dir: &self.common_dir };
        without_unchanged(place, status)
    }

    /// The digest of every file that is tracked or untracked. Ignored files are left out: a run cannot land in a
    /// build directory.
    fn work_tree(&self) -> Result<Digest, GitError> {
        let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let output = self.git.call_in(&self.root, args).checked()?;
        let mut names: Vec<&[u8]> = output.stdout.split(|b| *b == 0).filter(|n| !n.is_empty()).collect();
        names.sort_unstable();
        names.dedup();
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&self.root, flags, Mode::empty())
            .map_err(|e| GitError::file("open", "the repository")(e.into()))?;
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let described = parallel::map(&names, |name| Self::describe(&root, name, looked.get(*name)))?;
        let mut hash = Sha256::new();
        for (_, line) in &described {
            hash.update(line);
        }
        let settled =
            |(stamp, line): (Option<Stamp>, Vec<u8>)| Some((stamp.filter(Stamp::is_settled)?, line));
        *looked = names
            .iter()
            .zip(described)
            .filter_map(|(name, described)| Some((name.to_vec(), settled(described)?)))
            .collect();
        Ok(Digest::from_bytes(hash.finalize().into()))
    }

    /// `<kind or mode> <content's name> <path>\0`, and for a regular file its stamp.
    fn describe(
        root: &OwnedFd,
        name: &[u8],
        before: Option<&(Stamp, Vec<u8>)>,
    ) -> Result<(Option<Stamp>, Vec<u8>), GitError> {
        let fail = || GitError::file("read", RepoPath::new(name).map_or_else(String::new, |p| p.to_string()));
        if let Some((stamp, line)) = before
            && let Ok(stat) = rustix::fs::statat(root, name, AtFlags::SYMLINK_NOFOLLOW)
            && Stamp::of(&stat) == *stamp
        {
            return Ok((Some(*stamp), line.clone()));
        }
        let mut stamp = None;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let content = match rustix::fs::openat(root, name, flags, Mode::empty()) {
            Ok(fd) => {
                let stat = rustix::fs::fstat(&fd).map_err(|e| fail()(e.into()))?;
                if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                    stamp = Some(Stamp::of(&stat));
                    let size = u64::try_from(stat.st_size).unwrap_or(0);
                    let id = blob_id(ObjectFormat::Sha256, size, File::from(fd)).map_err(fail())?;
                    format!("{:o} {id}", stat.st_mode)
                } else {
                    format!("other {:o}", stat.st_mode)
                }
            }
            Err(Errno::LOOP) => {
                let target = rustix::fs::readlinkat(root, name, Vec::new()).map_err(|e| fail()(e.into()))?;
                format!("link {}", Digest::of(target.as_bytes()))
            }
            Err(Errno::NOENT | Errno::NOTDIR) => "missing -".to_owned(),
            // A socket cannot be opened.
            Err(Errno::NXIO) => "other -".to_owned(),
            Err(e) => return Err(fail()(e.into())),
        };
        Ok((stamp, [content.as_bytes(), b" ", name, b"\0"].concat()))
    }
}

/// The digest of a file; a missing file counts as empty.
fn digest_of_file(path: &Path) -> Result<Digest, GitError> {
    Ok(regular::digest(path)?.unwrap_or_else(|| Digest::of(b"")))
}

/// Hashes a file, or every file below a directory in name order.
fn digest_files(path: &Path, hash: &mut Sha256) -> Result<(), GitError> {
    let fail = || GitError::file("read", path);
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(fail()(e)),
        Ok(meta) if meta.is_dir() => {
            let entries: Result<Vec<_>, _> =
                std::fs::read_dir(path).map_err(fail())?.map(|entry| entry.map(|e| e.path())).collect();
            let mut entries = entries.map_err(fail())?;
            entries.sort();
            for entry in entries {
                digest_files(&entry, hash)?;
            }
        }
        Ok(meta) if meta.is_symlink() => {
            let target = std::fs::read_link(path).map_err(fail())?;
            hash.update([path.as_os_str().as_bytes(), b"\0", target.as_os_str().as_bytes(), b"\0"].concat());
        }
        Ok(_) => {
            hash.update([path.as_os_str().as_bytes(), b"\0"].concat());
            hash.update(digest_of_file(path)?.as_bytes());
        }
    }
    Ok(())
}
