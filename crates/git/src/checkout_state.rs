//! Detects changes to the files of a checkout that herma wrote.

mod directories;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use herma_core::RepoPath;
use herma_core::report::Mode;
use rustix::fs::{FileType, OFlags, fstat, statfs};

use self::directories::Directories;
use crate::beneath::{open, open_root};
use crate::object::ObjectFormat;
use crate::parallel;
use crate::stamp::Stamp;
use crate::tree_entry::TreeEntry;
use crate::walk::holds;

/// File systems, by magic number, that update the change time also for writes through a shared mapping. tmpfs does
/// not, so elsewhere every file is read.
const SETS_CHANGE_TIME: [u64; 4] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // Btrfs
    0xf2f5_2010, // F2FS
];

/// The files and directories of a checkout as they were laid out.
#[derive(Debug)]
pub struct CheckoutState {
    root: PathBuf,
    format: ObjectFormat,
    files: Vec<LaidOut>,
    directories: Directories,
}

#[derive(Debug)]
struct LaidOut {
    expected: TreeEntry,
    /// `None` if the stamp cannot show a change, so that the content must be read.
    stamp: Option<Stamp>,
    /// The permission bits; None for a submodule.
    mode: Option<u32>,
    bytes: Option<u64>,
}

impl CheckoutState {
    /// Records the checkout of `tree` below `root`, before anything but herma can write there.
    #[must_use]
    pub fn record(root: PathBuf, format: ObjectFormat, tree: Vec<TreeEntry>) -> Self {
        let directories = Directories::record(&root, &tree);
        let stamps = stamps(&root, &tree);
        let newest = stamps.iter().flatten().map(Stamp::changed).max().filter(|_| sets_change_time(&root));
        let files = tree
            .into_iter()
            .zip(stamps)
            .map(|(expected, stamp)| {
                let (mode, bytes) = (stamp.map(|stamp| stamp.mode()), stamp.map(|stamp| stamp.bytes()));
                // A later change gets at least the newest change time, so only a file that has that one already could be
                // changed within the same tick of the clock and keep its stamp.
                let stamp = stamp.filter(|stamp| Some(stamp.changed()) < newest);
                LaidOut { expected, stamp, mode, bytes }
            })
            .collect();
        Self { root, format, files, directories }
    }

    /// The directory of the checkout.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every path of the tree that is not as it was laid out: files by content, kind and permission bits, directories by
    /// permission bits and ACLs. A file that cannot be read counts as changed. Files that the tree does not have are not
    /// looked at.
    #[must_use]
    pub fn changed(&self) -> Vec<&RepoPath> {
        // First, because opening a file can give herma back the permission to the directories above it.
        let mut changed = self.directories.changed(&self.root);
        let Ok(root_dir) = open_root(&self.root) else {
            return self.files.iter().map(|file| &file.expected.path).collect();
        };
        let is_changed =
            |file: &LaidOut| Ok::<_, std::convert::Infallible>(!self.is_as_laid_out(&root_dir, file));
        let Ok(differs) = parallel::map(&self.files, is_changed);
        let files = self.files.iter().zip(differs).filter(|(_, differs)| *differs);
        changed.extend(files.map(|(file, _)| &file.expected.path));
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    fn is_as_laid_out(&self, root_dir: &OwnedFd, file: &LaidOut) -> bool {
        let LaidOut { expected, stamp, mode, bytes } = file;
        if expected.entry.mode == Mode::Submodule {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY;
            return open(root_dir.as_fd(), expected.path.as_bytes(), flags).is_ok();
        }
        let now = stamp_of(root_dir.as_fd(), &expected.path);
        (stamp.is_some() && now == *stamp)
            || (now.map(|now| now.mode()) == *mode
                && holds(root_dir.as_fd(), &self.root, self.format, expected, *bytes))
    }
}

/// The stamp of every entry.
fn stamps(root: &Path, tree: &[TreeEntry]) -> Vec<Option<Stamp>> {
    let Ok(root_dir) = open_root(root) else { return vec![None; tree.len()] };
    let stamp =
        |entry: &TreeEntry| Ok::<_, std::convert::Infallible>(stamp_of(root_dir.as_fd(), &entry.path));
    let Ok(stamps) = parallel::map(tree, stamp);
    stamps
}

/// Whether the stamps of this file system show every change.
fn sets_change_time(root: &Path) -> bool {
    let magic = statfs(root).ok().and_then(|found| u64::try_from(found.f_type).ok());
    magic.is_some_and(|magic| SETS_CHANGE_TIME.contains(&magic))
}

/// The stamp of a regular file or a symlink.
fn stamp_of(root_dir: BorrowedFd<'_>, path: &RepoPath) -> Option<Stamp> {
    let fd = open(root_dir, path.as_bytes(), OFlags::PATH | OFlags::NOFOLLOW).ok()?;
    let stat = fstat(fd).ok()?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    matches!(kind, FileType::RegularFile | FileType::Symlink).then(|| Stamp::of(&stat))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::time::SystemTime;

    use herma_core::report::Entry;

    use super::*;
    use crate::object::blob_id;

    const FORMAT: ObjectFormat = ObjectFormat::Sha1;

    fn entry(path: &str, mode: Mode, content: &str) -> TreeEntry {
        let id = blob_id(FORMAT, content.len() as u64, content.as_bytes()).unwrap();
        TreeEntry { path: RepoPath::new(path).unwrap(), entry: Entry { mode, id } }
    }

    /// A checkout of one entry of each kind. `settled` is older than the newest file, so that its stamp is enough.
    fn checkout(parent: &str) -> (tempfile::TempDir, CheckoutState) {
        let dir = tempfile::tempdir_in(parent).unwrap();
        let root = dir.path().to_owned();
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir(root.join("module")).unwrap();
        fs::write(root.join("settled"), "one").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(30));
        fs::write(root.join("src/file"), "two").unwrap();
        symlink("settled", root.join("link")).unwrap();
        let tree = vec![
            entry("link", Mode::Symlink, "settled"),
            entry("module", Mode::Submodule, ""),
            entry("settled", Mode::File, "one"),
            entry("src/file", Mode::File, "two"),
        ];
        let state = CheckoutState::record(root, FORMAT, tree);
        (dir, state)
    }

    fn changed(state: &CheckoutState) -> Vec<String> {
        state.changed().into_iter().map(RepoPath::to_string).collect()
    }

    #[test]
    fn every_kind_of_change_to_a_tracked_path_is_found() {
        type Mutation = fn(&Path);
        let changes: &[(&str, &[&str], Mutation)] = &[
            ("nothing", &[], |_| {}),
            ("a new file", &[], |root| fs::write(root.join("src/new"), "").unwrap()),
            ("a file in a submodule", &[], |root| fs::write(root.join("module/new"), "").unwrap()),
            ("the same content, written again", &[], |root| fs::write(root.join("settled"), "one").unwrap()),
            ("other content of the same size", &["settled"], |root| {
                fs::write(root.join("settled"), "uno").unwrap();
            }),
            ("other content in the newest file", &["src/file"], |root| {
                fs::write(root.join("src/file"), "due").unwrap();
            }),
            ("other content and the old time", &["settled"], |root| {
                let path = root.join("settled");
                let old: SystemTime = fs::metadata(&path).unwrap().modified().unwrap();
                fs::write(&path, "uno").unwrap();
                File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
            }),
            ("another file in its place", &["settled"], |root| {
                fs::write(root.join("other"), "uno").unwrap();
                fs::rename(root.join("other"), root.join("settled")).unwrap();
            }),
            ("the executable bit", &["settled"], |root| {
                fs::set_permissions(root.join("settled"), fs::Permissions::from_mode(0o755)).unwrap();
            }),
            ("a file that its owner cannot read", &["settled"], |root| {
                fs::set_permissions(root.join("settled"), fs::Permissions::from_mode(0o200)).unwrap();
            }),
            ("the newest file, not readable", &["src/file"], |root| {
                fs::set_permissions(root.join("src/file"), fs::Permissions::from_mode(0o0)).unwrap();
            }),
            ("a directory without permissions", &["src"], |root| {
                fs::set_permissions(root.join("src"), fs::Permissions::from_mode(0o0)).unwrap();
            }),
            ("a directory that cannot be listed", &["src"], |root| {
                fs::set_permissions(root.join("src"), fs::Permissions::from_mode(0o300)).unwrap();
            }),
            ("a submodule that cannot be listed", &["module"], |root| {
                fs::set_permissions(root.join("module"), fs::Permissions::from_mode(0o300)).unwrap();
            }),
            ("a directory with the sticky bit", &["src"], |root| {
                fs::set_permissions(root.join("src"), fs::Permissions::from_mode(0o1755)).unwrap();
            }),
            ("a root that cannot be listed", &["link", "module", "settled", "src"], |root| {
                fs::set_permissions(root, fs::Permissions::from_mode(0o300)).unwrap();
            }),
            ("another mode and back again", &[], |root| {
                let mode = fs::metadata(root.join("src")).unwrap().permissions();
                fs::set_permissions(root.join("src"), fs::Permissions::from_mode(0o0)).unwrap();
                fs::set_permissions(root.join("src"), mode).unwrap();
            }),
            ("a removed file", &["settled"], |root| fs::remove_file(root.join("settled")).unwrap()),
            ("a link to another target", &["link"], |root| {
                fs::remove_file(root.join("link")).unwrap();
                symlink("src/file", root.join("link")).unwrap();
            }),
            ("a file in place of a link", &["link"], |root| {
                fs::remove_file(root.join("link")).unwrap();
                fs::write(root.join("link"), "settled").unwrap();
            }),
            ("a link in place of a directory", &["src/file"], |root| {
                fs::rename(root.join("src"), root.join("was")).unwrap();
                symlink("was", root.join("src")).unwrap();
            }),
            ("a directory in place of a file", &["settled"], |root| {
                fs::remove_file(root.join("settled")).unwrap();
                fs::create_dir(root.join("settled")).unwrap();
            }),
            ("a removed submodule", &["module"], |root| fs::remove_dir(root.join("module")).unwrap()),
            ("everything gone", &["link", "module", "settled", "src/file"], |root| {
                fs::remove_dir_all(root).unwrap();
            }),
        ];
        for parent in ["/tmp", "/dev/shm"] {
            for (what, expected, change) in changes {
                let (dir, state) = checkout(parent);
                change(dir.path());
                assert_eq!(changed(&state), *expected, "{what} below {parent}");
            }
        }
    }

    /// A write through a shared mapping leaves the change time of a file in tmpfs as it was.
    #[test]
    fn a_stamp_is_believed_only_where_every_write_sets_the_change_time() {
        const TMPFS: u64 = 0x0102_1994;
        let (dir, state) = checkout("/dev/shm");
        assert_eq!(u64::try_from(statfs(dir.path()).unwrap().f_type), Ok(TMPFS), "this test needs a tmpfs");
        assert!(state.files.iter().all(|file| file.stamp.is_none()), "{state:#?}");
    }
}
