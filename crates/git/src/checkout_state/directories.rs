//! Permission bits and ACLs of the directories of a checkout: one that a test runner cannot list hides its tests.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::path::Path;

use herma_core::RepoPath;
use herma_core::report::Mode;
use rustix::fs::{OFlags, fstat, lstat};

use crate::beneath::{open, open_root};
use crate::tree_entry::TreeEntry;

/// The POSIX ACLs of a directory: its own, and the one that new files in it get.
const ACLS: [&str; 2] = ["system.posix_acl_access", "system.posix_acl_default"];

/// The directories of a checkout as they were laid out.
#[derive(Debug)]
pub(super) struct Directories {
    root_mode: Option<u32>,
    /// Parents come before what is below them.
    below: Vec<(RepoPath, Option<Access>)>,
    /// The entries of the root itself, which stand for it in a list of paths: it has no path of its own.
    in_root: Vec<RepoPath>,
}

impl Directories {
    pub(super) fn record(root: &Path, tree: &[TreeEntry]) -> Self {
        let mut paths = BTreeSet::new();
        let mut in_root = BTreeSet::new();
        for TreeEntry { path, entry } in tree {
            if entry.mode == Mode::Submodule {
                paths.insert(path.clone());
            }
            in_root.extend(path.components().next().and_then(RepoPath::new));
            let mut parent = path.parent();
            while let Some(directory) = parent {
                parent = directory.parent();
                if !paths.insert(directory) {
                    break;
                }
            }
        }
        let root_dir = open_root(root).ok();
        let with_access = |path: RepoPath| {
            let access = root_dir.as_ref().and_then(|root_dir| Access::at(root_dir.as_fd(), &path));
            (path, access)
        };
        let below = paths.into_iter().map(with_access).collect();
        Self { root_mode: mode(root), below, in_root: in_root.into_iter().collect() }
    }

    /// Every directory whose permissions are not as they were laid out. One that is not there is not named: its files are.
    pub(super) fn changed(&self, root: &Path) -> Vec<&RepoPath> {
        // Opening the root gives herma its permissions back.
        let root_mode = mode(root);
        let Ok(root_dir) = open_root(root) else { return Vec::new() };
        if root_mode != self.root_mode {
            return self.in_root.iter().collect();
        }
        let differs = |(path, access): &&(RepoPath, Option<Access>)| {
            Access::at(root_dir.as_fd(), path).is_some_and(|now| Some(now) != *access)
        };
        self.below.iter().filter(differs).map(|(path, _)| path).collect()
    }
}

fn mode(root: &Path) -> Option<u32> {
    lstat(root).ok().map(|stat| stat.st_mode)
}

/// The permission bits and ACLs of a directory. The owner is not compared: no process inside a destination can change it.
#[derive(Debug, PartialEq, Eq)]
struct Access {
    mode: u32,
    acls: [Option<Vec<u8>>; 2],
}

impl Access {
    /// None where no directory is at the path.
    fn at(root_dir: BorrowedFd<'_>, path: &RepoPath) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY;
        let directory = open(root_dir, path.as_bytes(), flags).ok()?;
        let mode = fstat(&directory).ok()?.st_mode;
        // fgetxattr refuses a descriptor opened with O_PATH; its link in /proc names the same directory.
        let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
        Some(Self { mode, acls: ACLS.map(|name| acl(&link, name)) })
    }
}

/// The ACL, or none where the directory has none or its file system knows none.
fn acl(directory: &str, name: &str) -> Option<Vec<u8>> {
    let size = rustix::fs::getxattr_query(directory, name).ok()?;
    let mut value = vec![0; size];
    let read = rustix::fs::getxattr(directory, name, &mut value[..]).ok()?;
    value.truncate(read);
    Some(value)
}
