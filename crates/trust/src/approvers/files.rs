//! The files of the approvers: `<name>.json`, `<name>.key`, `<name>.revoked.json`, and `first`, which names the key of
//! the first one.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use herma_core::Digest;
use herma_core::approver::{ApproverName, ApproverRecord, Revocation};
use herma_core::signed::Signed;
use herma_home::write_durably;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ApproverError;
use super::introductions::Entry;

/// The largest file that is read; a record has less than a kilobyte.
const MAX_BYTES: u64 = 1 << 20;
/// Which key is that of the first approver. Without it a second self-made record would be as good as the first.
const FIRST: &str = "first";
const RECORD: &str = ".json";
const REVOCATION: &str = ".revoked.json";
const KEY: &str = ".key";

/// The directory of the approvers.
#[derive(Clone, Debug)]
pub(super) struct Files {
    dir: PathBuf,
}

impl Files {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Makes the directory and holds it until the file is dropped: of two concurrent callers, one is the first.
    pub(super) fn lock(&self) -> Result<File, ApproverError> {
        let locked = || {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
            let dir = File::open(&self.dir)?;
            flock(&dir, FlockOperation::LockExclusive)?;
            Ok(dir)
        };
        locked().map_err(|source| failed(&self.dir, "locked", source))
    }

    /// Every record with its revocation. A file that cannot be read is an error, and so is one under another's name:
    /// an unknown file is an error.
    pub(super) fn read(&self) -> Result<BTreeMap<ApproverName, Entry>, ApproverError> {
        let mut entries = BTreeMap::new();
        for file in self.list()? {
            let Some(stem) = file.strip_suffix(RECORD).filter(|_| !file.ends_with(REVOCATION)) else {
                continue;
            };
            let path = self.dir.join(&file);
            let name: ApproverName = stem.parse().map_err(|cause| malformed(&path, cause))?;
            let signed: Signed<ApproverRecord> = read_json(&path)?;
            if signed.record.name != name {
                return Err(malformed(&path, format!("it holds the record of {}", signed.record.name)));
            }
            let revoked = self.revocation(&name)?;
            entries.insert(name, Entry { signed, revoked });
        }
        Ok(entries)
    }

    fn revocation(&self, name: &ApproverName) -> Result<Option<Revocation>, ApproverError> {
        let path = self.path(name, REVOCATION);
        if !there(&path)? {
            return Ok(None);
        }
        let revocation: Revocation = read_json(&path)?;
        if revocation.name != *name {
            return Err(malformed(&path, format!("it revokes {}", revocation.name)));
        }
        Ok(Some(revocation))
    }

    /// The key of the first approver.
    pub(super) fn first(&self) -> Result<Option<Digest>, ApproverError> {
        let path = self.dir.join(FIRST);
        if !there(&path)? {
            return Ok(None);
        }
        let text = read_text(open(&path)?, &path)?;
        text.trim_end().parse().map(Some).map_err(|e| malformed(&path, e))
    }

    /// That a first approver was made, and its record is not here.
    pub(super) fn without_first(&self, key: Digest) -> ApproverError {
        ApproverError::FirstIsMissing { path: self.dir.join(FIRST), key }
    }

    /// Whether the name is or was in use.
    pub(super) fn is_taken(&self, name: &ApproverName) -> Result<bool, ApproverError> {
        Ok(there(&self.path(name, RECORD))? || there(&self.path(name, REVOCATION))?)
    }

    /// The locked key, if no other user can read it.
    pub(super) fn read_key(&self, name: &ApproverName) -> Result<String, ApproverError> {
        let path = self.path(name, KEY);
        let file = open(&path)?;
        let mode = file.metadata().map_err(|e| failed(&path, "read", e))?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(ApproverError::Exposed { path, mode });
        }
        read_text(file, &path)
    }

    pub(super) fn write_key(&self, name: &ApproverName, locked: &str) -> Result<(), ApproverError> {
        write(&self.path(name, KEY), locked.as_bytes())
    }

    pub(super) fn write_first(&self, key: Digest) -> Result<(), ApproverError> {
        write(&self.dir.join(FIRST), format!("{key}\n").as_bytes())
    }

    pub(super) fn write_record(&self, signed: &Signed<ApproverRecord>) -> Result<(), ApproverError> {
        write_json(&self.path(&signed.record.name, RECORD), signed)
    }

    pub(super) fn write_revocation(&self, revocation: &Revocation) -> Result<(), ApproverError> {
        write_json(&self.path(&revocation.name, REVOCATION), revocation)
    }

    fn list(&self) -> Result<Vec<String>, ApproverError> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(failed(&self.dir, "read", e)),
        };
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        entries.map(name).collect::<io::Result<_>>().map_err(|e| failed(&self.dir, "read", e))
    }

    /// No name holds a dot, so no two names share a file.
    fn path(&self, name: &ApproverName, suffix: &str) -> PathBuf {
        self.dir.join(format!("{name}{suffix}"))
    }
}

/// Whether anything has this name, also a dangling link: an unreadable entry is an error, not an absence.
fn there(path: &Path) -> Result<bool, ApproverError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(failed(path, "read", e)),
    }
}

/// Opens a regular file: no link is followed and no FIFO is waited for.
fn open(path: &Path) -> Result<File, ApproverError> {
    let regular = || {
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).map_err(io::Error::other)?;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
    };
    regular().map_err(|e| failed(path, "read", e))
}

fn read_text(file: File, path: &Path) -> Result<String, ApproverError> {
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(|e| failed(path, "read", e))?;
    Ok(text)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ApproverError> {
    serde_json::from_str(&read_text(open(path)?, path)?).map_err(|e| malformed(path, e))
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), ApproverError> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    write(path, &bytes)
}

/// The file is durable, in full or not at all, and readable by its owner only.
fn write(path: &Path, bytes: &[u8]) -> Result<(), ApproverError> {
    write_durably(path, bytes).map_err(|e| failed(path, "written", e))
}

fn failed(path: &Path, doing: &'static str, source: io::Error) -> ApproverError {
    ApproverError::Io { path: path.to_owned(), doing, source }
}

fn malformed(path: &Path, cause: impl std::fmt::Display) -> ApproverError {
    ApproverError::Malformed { path: path.to_owned(), cause: cause.to_string() }
}
