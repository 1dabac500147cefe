//! The digest of an installed tree: every file, link and directory by name, kind and content.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use herma_core::Digest;
use herma_files::open_regular;
use sha2::{Digest as _, Sha256};

use crate::digest::{FileState, of_file};
use crate::memory;

/// The largest tree: an agent with its dependencies has some ten thousand files.
const MAX_ENTRIES: usize = 1_000_000;
/// The number of reading threads.
const READERS: usize = 2;

/// A tree and its digest. Files are read again only if the state of one has changed.
#[derive(Debug)]
pub(crate) struct TreeDigest {
    root: PathBuf,
    /// The file that shares computed digests between processes.
    memory: Option<PathBuf>,
    /// Locked during the computation, so that a second caller waits instead of reading everything again.
    taken: Mutex<Option<(Vec<InstalledEntry>, Digest)>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct InstalledEntry {
    /// Relative to the root.
    path: PathBuf,
    kind: InstalledKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum InstalledKind {
    Directory,
    Link(PathBuf),
    File { executable: bool, state: FileState },
}

impl TreeDigest {
    /// The tree below `root`.
    fn of(root: PathBuf) -> Self {
        Self { root, memory: None, taken: Mutex::new(None) }
    }

    /// The tree of an agent in herma's home: hundreds of megabytes, unchanged for years. Its digest is cached
    /// beside it while no file changes. A user who can change the cache can write herma's home, and could admit the
    /// agent with a key of their own.
    pub(crate) fn of_agent(root: PathBuf) -> Self {
        let memory = root.with_extension("digest");
        Self { memory: Some(memory), ..Self::of(root) }
    }

    /// The root of the tree.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The digest of the tree as it is now.
    pub(crate) fn take(&self) -> io::Result<Digest> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let before = list(&self.root)?;
        match &*taken {
            Some((known, digest)) if *known == before => return Ok(*digest),
            _ => *taken = None,
        }
        let digest = match self.memory.as_ref().and_then(|memory| memory::recall(memory, &print_of(&before)))
        {
            Some(digest) => digest,
            None => self.read(&before)?,
        };
        *taken = Some((before, digest));
        Ok(digest)
    }

    fn read(&self, before: &[InstalledEntry]) -> io::Result<Digest> {
        let contents = read_all(&self.root, before)?;
        if list(&self.root)? != before {
            return Err(io::Error::other("it changed while it was read"));
        }
        let digest = digest_of(before, &contents);
        if let Some(memory) = &self.memory {
            let last = before.iter().filter_map(InstalledEntry::changed).max().unwrap_or_default();
            // Without a cache entry it is computed again.
            let _ = memory::keep(memory, print_of(before), digest, last);
        }
        Ok(digest)
    }
}

/// The digest of the tree below `root`, computed now.
pub fn tree_digest(root: &Path) -> io::Result<Digest> {
    TreeDigest::of(root.to_owned()).take()
}

/// Every entry below the root, by name.
fn list(root: &Path) -> io::Result<Vec<InstalledEntry>> {
    if !fs::symlink_metadata(root)?.is_dir() {
        return Err(io::Error::other("it is not a directory"));
    }
    let mut entries = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(root.join(&dir))? {
            let entry = entry?;
            let (path, meta) = (dir.join(entry.file_name()), entry.metadata()?);
            let kind = if meta.is_dir() {
                waiting.push(path.clone());
                InstalledKind::Directory
            } else if meta.is_symlink() {
                InstalledKind::Link(fs::read_link(entry.path())?)
            } else if meta.is_file() {
                InstalledKind::File {
                    executable: meta.permissions().mode() & 0o111 != 0,
                    state: FileState::of(&meta)?,
                }
            } else {
                return Err(io::Error::other(format!("{} is no file, link or directory", path.display())));
            };
            entries.push(InstalledEntry { path, kind });
            if entries.len() > MAX_ENTRIES {
                return Err(io::Error::other(format!("it holds more than {MAX_ENTRIES} files")));
            }
        }
    }
    entries.sort_unstable_by(|one, other| {
        one.path.as_os_str().as_bytes().cmp(other.path.as_os_str().as_bytes())
    });
    check_links(&entries)?;
    Ok(entries)
}

/// No link may lead out: its target would have no digest.
fn check_links(entries: &[InstalledEntry]) -> io::Result<()> {
    let links = || {
        entries.iter().filter_map(|InstalledEntry { path, kind }| match kind {
            InstalledKind::Link(target) => Some((path.as_path(), target.as_path())),
            _ => None,
        })
    };
    let places: HashSet<&Path> = links().map(|(path, _)| path).collect();
    match links().find(|(path, target)| !stays_inside(path, target, &places)) {
        Some((path, _)) => Err(io::Error::other(format!("{} leads out of it", path.display()))),
        None => Ok(()),
    }
}

/// Whether a link's target is below the root. Above a path that goes through another link the names do not tell
/// where it is, so it may not go up from there.
fn stays_inside(link: &Path, target: &Path, links: &HashSet<&Path>) -> bool {
    let mut at = link.parent().map(Path::to_owned).unwrap_or_default();
    let mut is_behind_link = false;
    for part in target.components() {
        match part {
            Component::Normal(name) => {
                at.push(name);
                is_behind_link |= links.contains(at.as_path());
            }
            Component::ParentDir if is_behind_link || !at.pop() => return false,
            Component::ParentDir | Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

/// The digest of each file, in the order of the entries; `None` for other kinds.
fn read_all(root: &Path, entries: &[InstalledEntry]) -> io::Result<Vec<Option<Digest>>> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    // The largest first: otherwise all readers would wait for the one that takes it last.
    order.sort_by_key(|at| std::cmp::Reverse(entries.get(*at).map_or(0, InstalledEntry::size)));
    let (next, found) = (AtomicUsize::new(0), Mutex::new(vec![None; entries.len()]));
    let read = || -> io::Result<()> {
        while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some(InstalledEntry { path, kind: InstalledKind::File { state, .. } }) = entries.get(at)
            else {
                continue;
            };
            let file = open_regular(&root.join(path))?;
            if FileState::of(&file.metadata()?)? != *state {
                return Err(io::Error::other("it changed while it was read"));
            }
            let digest = of_file(&file)?;
            if let Some(place) = found.lock().unwrap_or_else(PoisonError::into_inner).get_mut(at) {
                *place = Some(digest);
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(read)).collect();
        readers.into_iter().try_for_each(|reader| {
            reader.join().unwrap_or_else(|_| Err(io::Error::other("a thread that read it panicked")))
        })
    })?;
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// One line per entry: its kind, its content's digest or its target, its path. NUL, which no path contains, ends
/// each part.
fn digest_of(entries: &[InstalledEntry], contents: &[Option<Digest>]) -> Digest {
    let mut hasher = Sha256::new();
    hasher.update(b"herma.tree/v1\0");
    for (entry, content) in entries.iter().zip(contents) {
        match &entry.kind {
            InstalledKind::Directory => hasher.update(b"directory\0\0"),
            InstalledKind::Link(target) => {
                hasher.update(b"link\0");
                hasher.update(target.as_os_str().as_bytes());
                hasher.update(b"\0");
            }
            InstalledKind::File { executable, .. } => {
                hasher.update(if *executable { &b"program\0"[..] } else { b"file\0" });
                hasher.update(content.map(|digest| digest.to_string()).unwrap_or_default());
                hasher.update(b"\0");
            }
        }
        hasher.update(entry.path.as_os_str().as_bytes());
        hasher.update(b"\0");
    }
    Digest::from_bytes(hasher.finalize().into())
}

/// A fingerprint of the tree without reading its files.
fn print_of(entries: &[InstalledEntry]) -> Digest {
    let mut hasher = Sha256::new();
    for entry in entries {
        // With the file's state, which changes with its content, names, owner and mode.
        hasher.update(format!("{entry:?}\0"));
    }
    Digest::from_bytes(hasher.finalize().into())
}

impl InstalledEntry {
    /// The change time, in seconds.
    fn changed(&self) -> Option<i64> {
        match &self.kind {
            InstalledKind::File { state, .. } => Some(state.changed()),
            _ => None,
        }
    }

    fn size(&self) -> u64 {
        match &self.kind {
            InstalledKind::File { state, .. } => state.size(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("bin/deep")).unwrap();
        fs::write(dir.path().join("bin/agent"), "one").unwrap();
        fs::write(dir.path().join("package.json"), "{}").unwrap();
        symlink("bin/agent", dir.path().join("agent")).unwrap();
        dir
    }

    #[test]
    fn every_change_of_a_tree_is_another_digest() {
        let digest = |change: fn(&Path)| {
            let tree = tree();
            change(tree.path());
            tree_digest(tree.path()).unwrap()
        };
        let changes: [fn(&Path); 9] = [
            |_| {},
            |root| fs::write(root.join("bin/agent"), "two").unwrap(),
            |root| fs::write(root.join("more"), "").unwrap(),
            |root| fs::create_dir(root.join("more")).unwrap(),
            |root| fs::remove_dir(root.join("bin/deep")).unwrap(),
            |root| fs::rename(root.join("bin/agent"), root.join("bin/agent2")).unwrap(),
            |root| fs::set_permissions(root.join("bin/agent"), fs::Permissions::from_mode(0o755)).unwrap(),
            |root| {
                fs::remove_file(root.join("agent")).unwrap();
                symlink("bin/deep", root.join("agent")).unwrap();
            },
            |root| {
                fs::remove_file(root.join("agent")).unwrap();
                fs::write(root.join("agent"), "bin/agent").unwrap();
            },
        ];
        let digests: Vec<Digest> = changes.into_iter().map(digest).collect();
        for (at, one) in digests.iter().enumerate() {
            assert!(!digests[..at].contains(one), "change {at} makes no difference");
        }
        assert_eq!(digests[0], digest(|_| {}), "the same tree elsewhere");
    }

    #[test]
    fn a_tree_that_changes_is_read_again() {
        let tree = tree();
        let kept = TreeDigest::of(tree.path().to_owned());
        let before = kept.take().unwrap();
        assert_eq!(kept.take().unwrap(), before);
        fs::write(tree.path().join("bin/agent"), "two").unwrap();
        assert_ne!(kept.take().unwrap(), before);
    }

    #[test]
    fn a_cached_digest_is_used_for_the_same_tree_only() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("tree");
        fs::rename(tree().keep(), &root).unwrap();
        let take = || TreeDigest::of_agent(root.clone()).take().unwrap();
        let note = root.with_extension("digest");
        let read = take();
        assert!(!note.exists(), "what changed just now could change again at the same time");
        let (before, another) = (print_of(&list(&root).unwrap()), Digest::of(b"another"));
        memory::keep(&note, before, another, 0).unwrap();
        assert_eq!(take(), another, "it was not read again");
        fs::write(root.join("bin/agent"), "one").unwrap();
        assert_eq!(take(), read, "the same bytes, written once more");
        fs::write(&note, "nonsense").unwrap();
        assert_eq!(take(), read);
    }

    #[test]
    fn links_out_of_a_tree_and_special_files_are_refused() {
        for target in ["/usr/bin/node", "../node", "bin/../../node", "bin/deep/../../../node"] {
            let tree = tree();
            symlink(target, tree.path().join("out")).unwrap();
            assert_eq!(tree_digest(tree.path()).unwrap_err().to_string(), "out leads out of it", "{target}");
        }
        let inside = tree();
        symlink("../agent", inside.path().join("bin/up")).unwrap();
        assert!(tree_digest(inside.path()).is_ok());

        let socket = tree();
        let _listening = std::os::unix::net::UnixListener::bind(socket.path().join("s")).unwrap();
        let error = tree_digest(socket.path()).unwrap_err().to_string();
        assert_eq!(error, "s is no file, link or directory");
        assert_eq!(
            tree_digest(&socket.path().join("package.json")).unwrap_err().to_string(),
            "it is not a directory"
        );
    }

    #[test]
    fn a_link_that_leads_out_by_another_link_is_refused() {
        for (target, stays) in [
            ("bin/top/bin/agent", true),
            ("bin/../bin/top", true),
            // The parent of `bin`'s target is outside of the tree.
            ("bin/top/../secret", false),
            ("bin/top/bin/../../secret", false),
        ] {
            let tree = tree();
            symlink("..", tree.path().join("bin/top")).unwrap();
            symlink(target, tree.path().join("way")).unwrap();
            let error = tree_digest(tree.path()).err().map(|error| error.to_string());
            assert_eq!(error, (!stays).then(|| "way leads out of it".to_owned()), "{target}");
        }
    }
}
