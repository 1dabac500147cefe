//! The look at a layer's metadata: every directory is read once, relative to its descriptor, by as many threads as there are cores.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use herma_core::{Digest, RepoPath};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, open, readlinkat, statat};
use sha2::{Digest as _, Sha256};

use super::limits::{TreeCounter, TreeError, TreeLimits};

/// A thread for fewer directories costs more than it saves.
const MIN_DIRECTORIES_PER_THREAD: usize = 8;

/// The metadata of a tree.
pub(super) struct TreeMetadata {
    /// The digest over paths, kinds, permission bits, sizes and link targets.
    pub(super) digest: Digest,
    /// The bytes of all files.
    pub(super) bytes: u64,
    /// The number of files and links.
    pub(super) files: u64,
    /// The files and links of the part that was to be listed, in no order.
    pub(super) listed: Vec<RepoPath>,
}

/// A directory, by its part and its path below that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a> {
    part: &'a str,
    root: &'a Path,
    below: Vec<u8>,
}

/// A directory that was read.
struct Listing<'a> {
    place: Place<'a>,
    digest: [u8; 32],
    files: u64,
    listed: Vec<RepoPath>,
    directories: Vec<Place<'a>>,
}

/// The state that the threads of one walk share.
struct Walk<'a> {
    list: Option<&'a str>,
    counter: TreeCounter<'a>,
}

/// Reads the metadata of these directories, each under its name. `list` names the part whose files are listed. Sockets, pipes and
/// devices are passed over.
pub(super) fn read_metadata(
    parts: &[(&str, &Path)],
    limits: &TreeLimits<'_>,
    list: Option<&str>,
) -> Result<TreeMetadata, TreeError> {
    let walk = Walk { list, counter: TreeCounter::new(*limits) };
    let (mut digests, mut listed, mut files) = (Vec::new(), Vec::new(), 0);
    let mut level: Vec<Place<'_>> =
        parts.iter().map(|(part, root)| Place { part, root, below: Vec::new() }).collect();
    while !level.is_empty() {
        let listings = walk.read_level(&level)?;
        level.clear();
        for mut listing in listings {
            files += listing.files;
            listed.append(&mut listing.listed);
            level.append(&mut listing.directories);
            digests.push((listing.place, listing.digest));
        }
    }
    // Threads finish in any order; the digest depends on names alone.
    digests.sort_unstable();
    let mut hash = Sha256::new();
    for (Place { part, below, .. }, digest) in digests {
        for bytes in [part.as_bytes(), b"\0", &below, b"\0", &digest] {
            hash.update(bytes);
        }
    }
    let digest = Digest::from_bytes(hash.finalize().into());
    Ok(TreeMetadata { digest, bytes: walk.counter.bytes(), files, listed })
}

impl Walk<'_> {
    /// Reads directories at once, and returns them in no order.
    fn read_level<'p>(&self, level: &[Place<'p>]) -> Result<Vec<Listing<'p>>, TreeError> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut listings = Vec::new();
            while let Some(place) = level.get(next.fetch_add(1, Ordering::Relaxed)) {
                match self.read(place) {
                    Ok(listing) => listings.push(listing),
                    Err(error) => {
                        // The other threads have nothing left to do.
                        next.store(level.len(), Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
            Ok(listings)
        };
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let others = cores.min(level.len() / MIN_DIRECTORIES_PER_THREAD).saturating_sub(1);
        thread::scope(|scope| {
            // Where a thread cannot be started, the others read its share.
            let others = (0..others).map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok());
            let others: Vec<_> = others.collect();
            let mut listings = work()?;
            for other in others {
                let read =
                    other.join().map_err(|_| io::Error::other("a thread that read a layer panicked"))?;
                listings.append(&mut read?);
            }
            Ok(listings)
        })
    }

    fn read<'p>(&self, place: &Place<'p>) -> Result<Listing<'p>, TreeError> {
        const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
        let path = place.root.join(OsStr::from_bytes(&place.below));
        let mut dir =
            Dir::new(open(&path, OFlags::RDONLY | DIRECTORY, Mode::empty()).map_err(io::Error::from)?)
                .map_err(io::Error::from)?;
        let names = self.names(&mut dir, place)?;
        let is_listed = self.list == Some(place.part);
        let mut listing = Listing {
            place: place.clone(),
            digest: [0; 32],
            files: 0,
            listed: Vec::new(),
            directories: Vec::new(),
        };
        let fd = dir.fd().map_err(io::Error::from)?;
        let mut described = Vec::new();
        for entry in &names {
            let stat = statat(fd, entry, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from)?;
            let (kind, size) = match FileType::from_raw_mode(stat.st_mode) {
                // The size of a directory depends on the file system.
                FileType::Directory => (b'd', 0),
                FileType::Symlink => (b'l', stat.st_size.unsigned_abs()),
                FileType::RegularFile => (b'f', stat.st_size.unsigned_abs()),
                _ => continue,
            };
            if kind == b'f' {
                self.counter.add_bytes(size, || shown(place, entry))?;
            }
            described.push(kind);
            described.extend((stat.st_mode & 0o7777).to_le_bytes());
            described.extend(size.to_le_bytes());
            described.extend(entry.to_bytes_with_nul());
            if kind == b'l' {
                let target = readlinkat(fd, entry, Vec::new()).map_err(io::Error::from)?;
                described.extend(target.to_bytes_with_nul());
            }
            if kind == b'd' {
                listing.directories.push(Place { below: below(place, entry), ..*place });
            } else {
                listing.files += 1;
                if is_listed {
                    listing.listed.extend(RepoPath::new(below(place, entry)));
                }
            }
        }
        listing.digest = Sha256::digest(&described).into();
        Ok(listing)
    }

    /// The names in a directory, sorted. They are counted before they are kept: one directory can have more than the limit.
    fn names(&self, dir: &mut Dir, place: &Place<'_>) -> Result<Vec<CString>, TreeError> {
        let mut names = Vec::new();
        for entry in dir {
            let entry = entry.map_err(io::Error::from)?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.counter
                .add_entry(place.below.len() + name.to_bytes_with_nul().len(), || shown(place, name))?;
            names.push(name.to_owned());
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// The path of an entry below its part.
fn below(place: &Place<'_>, name: &CStr) -> Vec<u8> {
    let mut path = Vec::with_capacity(place.below.len() + 1 + name.to_bytes().len());
    if !place.below.is_empty() {
        path.extend(&place.below);
        path.push(b'/');
    }
    path.extend(name.to_bytes());
    path
}

/// The path of an entry in an error.
fn shown(place: &Place<'_>, name: &CStr) -> PathBuf {
    Path::new(place.part).join(OsStr::from_bytes(&below(place, name)))
}
