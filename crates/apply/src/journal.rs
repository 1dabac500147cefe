//! The record of one application in herma's home, `applied/<run>/`: written before the repository changes, and removed when the
//! application is taken back. After a crash it says what each file was before and is to be after.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use herma_core::report::Mode;
use herma_core::{Digest, RepoPath, RunId, Timestamp};
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_git::PersonalBranch;
use herma_home::{Home, remove_tree, sync_dir, write_durably};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

const RECORD: &str = "record.json";
const CONTENTS: &str = "contents";

/// One application of a run's patch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// `herma.applied/v1`.
    pub schema: RecordSchema,
    /// The run.
    pub run_id: RunId,
    /// The digest of its `attestation.json`.
    pub attestation: Digest,
    /// The top directory of the repository.
    pub directory: PathBuf,
    /// The commit that was checked out.
    pub base: String,
    /// When it was applied.
    pub applied_at: Timestamp,
    /// How far it is.
    pub state: State,
    /// The change.
    pub form: Form,
}

/// The version of the record's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordSchema {
    /// The first version.
    #[serde(rename = "herma.applied/v1")]
    V1,
}

/// How far an application is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Under way, or cut off: each file is as before or as after.
    Applying,
    /// Complete.
    Applied,
    /// Being taken back, or that was cut off: each file is as before or as after.
    Undoing,
}

/// The change of the repository.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Files of the work tree.
    Files {
        /// Each file, in the order in which it is changed.
        files: Vec<FileChange>,
        /// The directories that did not exist before, the outermost first.
        made: Vec<RepoPath>,
    },
    /// A new branch.
    Branch(PersonalBranch),
}

/// The change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileChange {
    /// Where.
    pub path: RepoPath,
    /// Its state before; none if it did not exist.
    pub before: Option<FileState>,
    /// Its state after; none if it is deleted.
    pub after: Option<FileState>,
}

/// The state of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileState {
    /// Its kind.
    pub mode: Mode,
    /// The blob id of its content, or of a link's target.
    pub id: String,
    /// Its permissions; none for a link, and for a new file, which gets those of the umask.
    pub permissions: Option<u32>,
}

impl FileState {
    /// Whether kind and content are the same. A person may change other permissions.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (self.mode, &self.id) == (other.mode, &other.id)
    }
}

/// The directory of one record, held by this process: of two commands about one run the second waits.
#[derive(Debug)]
pub(crate) struct Journal {
    dir: PathBuf,
    _lock: File,
}

impl Journal {
    /// Locks the records, and names that of this run.
    pub(crate) fn open(home: &Home, run: RunId) -> io::Result<Self> {
        let root = home.applied();
        DirBuilder::new().recursive(true).mode(0o700).create(&root)?;
        let lock = File::open(&root)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(Self { dir: root.join(run.to_string()), _lock: lock })
    }

    /// The record, if there is one.
    pub(crate) fn read(&self) -> io::Result<Option<Record>> {
        read(&self.dir)
    }

    /// Makes the directory of the contents. Files of an attempt that was cut off before it had a record are removed: it changed nothing.
    pub(crate) fn make(&self) -> io::Result<PathBuf> {
        self.forget()?;
        let contents = self.contents();
        DirBuilder::new().recursive(true).mode(0o700).create(&contents)?;
        Ok(contents)
    }

    /// The contents before and after, each in a file named by its blob id.
    pub(crate) fn contents(&self) -> PathBuf {
        self.dir.join(CONTENTS)
    }

    /// Makes the contents durable, and then the record.
    pub(crate) fn write(&self, record: &Record) -> io::Result<()> {
        let mut bytes = serde_json::to_vec_pretty(record)?;
        bytes.push(b'\n');
        write_durably(&self.dir.join(RECORD), &bytes)?;
        sync_dir(self.dir.parent().unwrap_or(&self.dir))
    }

    /// Makes the contents durable.
    pub(crate) fn sync_contents(&self) -> io::Result<()> {
        let contents = self.contents();
        for entry in fs::read_dir(&contents)? {
            File::open(entry?.path())?.sync_all()?;
        }
        sync_dir(&contents)
    }

    /// Removes the record, and then the contents: without a record there is nothing to undo.
    pub(crate) fn forget(&self) -> io::Result<()> {
        match fs::remove_file(self.dir.join(RECORD)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        if fs::symlink_metadata(&self.dir).is_ok() {
            remove_tree(&self.dir)?;
        }
        Ok(())
    }
}

/// The record in this directory, if there is one.
pub(crate) fn read(dir: &Path) -> io::Result<Option<Record>> {
    match read_regular(&dir.join(RECORD), MAX_RECORD_BYTES) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}
