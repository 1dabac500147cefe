//! The digest of a program, computed once per state of its file.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use herma_core::Digest;
use herma_files::open_named;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::memory;

const READ_BYTES: usize = 64 * 1024;

/// A program and its digest. The file is read again only if its state has changed.
#[derive(Debug)]
pub(crate) struct ProgramDigest {
    path: PathBuf,
    /// The file that shares computed digests between processes.
    memory: Option<PathBuf>,
    /// Locked during the computation, so that a second caller waits instead of reading the program again.
    taken: Mutex<Option<(FileState, Digest)>>,
}

/// The state of a file. Its change time cannot be set back, unlike its modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileState {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl ProgramDigest {
    /// The program at `path`.
    pub(crate) fn of(path: PathBuf) -> Self {
        Self { path, memory: None, taken: Mutex::new(None) }
    }

    /// The same for herma's own program, with a digest cache in `memory`. A user who can change that file runs
    /// herma, and could as well run a modified herma. Digests of other programs are not cached.
    pub(crate) fn of_herma(path: PathBuf, memory: Option<PathBuf>) -> Self {
        Self { memory, ..Self::of(path) }
    }

    /// The path of the program.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The digest of the file as it is now.
    pub(crate) fn take(&self) -> io::Result<Digest> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let file = open_named(&self.path)?;
        let before = FileState::of(&file.metadata()?)?;
        match *taken {
            Some((state, digest)) if state == before => return Ok(digest),
            _ => *taken = None,
        }
        let digest = match self.memory.as_ref().and_then(|memory| memory::recall(memory, &before)) {
            Some(digest) => digest,
            None => self.read(&file, before)?,
        };
        *taken = Some((before, digest));
        Ok(digest)
    }

    fn read(&self, file: &File, before: FileState) -> io::Result<Digest> {
        let digest = of_file(file)?;
        if FileState::of(&file.metadata()?)? != before {
            return Err(io::Error::other("it changed while it was read"));
        }
        if let Some(memory) = &self.memory {
            // Without a cache entry it is computed again.
            let _ = memory::keep(memory, before, digest, before.changed());
        }
        Ok(digest)
    }
}

impl FileState {
    pub(crate) fn of(meta: &Metadata) -> io::Result<Self> {
        if !meta.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok(Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    }

    /// The change time, in seconds.
    pub(crate) fn changed(&self) -> i64 {
        self.changed.0
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }
}

/// The digest of the program at `path`, computed now.
pub fn program_digest(path: &Path) -> io::Result<Digest> {
    of_file(&open_named(path)?)
}

pub(crate) fn of_file(mut file: &File) -> io::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; READ_BYTES];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(Digest::from_bytes(hasher.finalize().into())),
            Ok(n) => hasher.update(&piece[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn pieces_give_the_digest_of_the_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        for size in [0, 1, READ_BYTES - 1, READ_BYTES, 3 * READ_BYTES + 7] {
            let bytes: Vec<u8> = (0..size).map(|n| u8::try_from(n % 251).unwrap()).collect();
            fs::write(&path, &bytes).unwrap();
            assert_eq!(ProgramDigest::of(path.clone()).take().unwrap(), Digest::of(&bytes), "{size} bytes");
        }
    }

    #[test]
    fn another_file_in_its_place_has_another_digest_also_with_the_same_size_and_time() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("program"), dir.path().join("other"));
        fs::write(&path, "one").unwrap();
        let program = ProgramDigest::of(path.clone());
        assert_eq!(program.take().unwrap(), Digest::of(b"one"));

        fs::write(&other, "two").unwrap();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(program.take().unwrap(), Digest::of(b"two"));

        fs::remove_file(&path).unwrap();
        assert_eq!(program.take().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_that_stays_as_it_was_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        fs::write(&path, "one").unwrap();
        let program = ProgramDigest::of(path);
        program.take().unwrap();
        let mut taken = program.taken.lock().unwrap();
        // If this comes back, the file was not read.
        let planted = Digest::of(b"planted");
        taken.as_mut().unwrap().1 = planted;
        drop(taken);
        assert_eq!(program.take().unwrap(), planted);
    }

    #[test]
    fn a_digest_is_shared_between_processes_until_the_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (path, memory) = (dir.path().join("herma"), dir.path().join("memory.json"));
        let take = || ProgramDigest::of_herma(path.clone(), Some(memory.clone())).take().unwrap();
        fs::write(&path, "one").unwrap();
        assert_eq!(take(), Digest::of(b"one"));
        assert!(!memory.exists(), "a change in the same moment would not show");

        let state = FileState::of(&fs::metadata(&path).unwrap()).unwrap();
        memory::keep(&memory, state, Digest::of(b"planted"), 0).unwrap();
        assert_eq!(take(), Digest::of(b"planted"), "the file was not read");
        for broken in ["", "{}", "[1,2]"] {
            fs::write(&memory, broken).unwrap();
            assert_eq!(take(), Digest::of(b"one"), "{broken}");
        }
        let later = FileState { changed: (state.changed.0, state.changed.1 + 1), ..state };
        memory::keep(&memory, later, Digest::of(b"x"), 0).unwrap();
        assert_eq!(take(), Digest::of(b"one"), "it was known in another state");
    }

    #[test]
    fn special_files_are_refused_without_blocking() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        for path in [pipe, dir.path().to_owned()] {
            let error = ProgramDigest::of(path).take().unwrap_err();
            assert_eq!(error.to_string(), "it is not a regular file");
        }
    }
}
