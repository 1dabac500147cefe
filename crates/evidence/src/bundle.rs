//! A bundle under construction: every file is written durably, hashed while it is written, and witnessed.

mod log;
mod reopen;
mod writer;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use herma_core::report::Artifact;
use herma_core::{Clock, Digest, Fault, Timestamp};
use rustix::io::Errno;

pub use log::LogWriter;
pub use reopen::Reopened;
pub use writer::ArtifactWriter;

use crate::layout;
use crate::redact::Redactor;

/// A bundle under construction. Clones are the same bundle.
#[derive(Clone)]
pub struct Bundle(Arc<Inner>);

struct Inner {
    dir: PathBuf,
    clock: Arc<dyn Clock>,
    fault: Option<Fault>,
    written: Mutex<BTreeMap<String, Artifact>>,
    /// The latest time that the bundle has seen.
    latest: Mutex<Timestamp>,
    backdated: AtomicBool,
}

/// A file of the bundle could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the bundle's file {name} could not be written: {source}")]
pub struct WriteError {
    /// The file's name in the bundle.
    pub name: String,
    /// The error of the system.
    pub source: io::Error,
}

impl WriteError {
    pub(crate) fn new(name: &str, source: impl Into<io::Error>) -> Self {
        Self { name: name.to_owned(), source: source.into() }
    }

    /// Whether the disk or the quota is full, so that releasing the reserve can help.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let full = [Errno::NOSPC, Errno::DQUOT].map(Errno::raw_os_error);
        self.source.raw_os_error().is_some_and(|code| full.contains(&code))
    }
}

impl Bundle {
    /// Makes the directory of a new bundle; it must not be there yet, or be empty.
    pub fn create(
        dir: impl Into<PathBuf>,
        clock: Arc<dyn Clock>,
        fault: Option<Fault>,
    ) -> Result<Self, WriteError> {
        let dir = dir.into();
        let make = || {
            match fs::create_dir(&dir) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    if fs::read_dir(&dir)?.next().is_some() {
                        return Err(io::Error::new(e.kind(), "the directory is there and not empty"));
                    }
                    // The creator of the directory has synced its name already.
                    return Ok(());
                }
                made => made?,
            }
            dir.parent().map_or(Ok(()), sync_dir)
        };
        make().map_err(|e: io::Error| WriteError::new(".", e))?;
        Ok(Self::over(dir, clock, fault))
    }

    pub(crate) fn over(dir: PathBuf, clock: Arc<dyn Clock>, fault: Option<Fault>) -> Self {
        let latest = Mutex::new(Timestamp::MIN);
        let (written, backdated) = (Mutex::default(), AtomicBool::new(false));
        Self(Arc::new(Inner { dir, clock, fault, written, latest, backdated }))
    }

    /// The bundle's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.0.dir
    }

    /// Writes a whole file: it is there completely or not at all, also after a power cut.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
        let mut writer = self.writer(name)?;
        writer.write_all(bytes).map_err(|e| WriteError::new(name, e))?;
        writer.finish()
    }

    /// Opens a file that appears in the bundle when its writer is finished.
    pub fn writer(&self, name: &str) -> Result<ArtifactWriter, WriteError> {
        self.admit(name)?;
        ArtifactWriter::open(self.clone(), name).map_err(|e| WriteError::new(name, e))
    }

    /// Opens a log: what goes in is redacted, decoded lossily and capped at `cap_bytes`.
    pub fn log(&self, name: &str, redactor: Redactor, cap_bytes: u64) -> Result<LogWriter, WriteError> {
        self.admit(name)?;
        LogWriter::open(self.clone(), name, redactor, cap_bytes).map_err(|e| WriteError::new(name, e))
    }

    /// The files that the report lists: every one that was finished, except the report itself and the attestation.
    #[must_use]
    pub fn artifacts(&self) -> BTreeMap<String, Artifact> {
        let mut artifacts = self.written().clone();
        artifacts.retain(|name, _| layout::is_artifact(name));
        artifacts
    }

    /// The files that the attestation covers: every one that was finished, except the attestation itself.
    #[must_use]
    pub fn subjects(&self) -> BTreeMap<String, Digest> {
        let written = self.written();
        let others = written.iter().filter(|(name, _)| *name != layout::ATTESTATION);
        others.map(|(name, artifact)| (name.clone(), artifact.sha256)).collect()
    }

    /// The time, never before what the bundle already has: the clock of a later process may be behind.
    pub(crate) fn now(&self) -> Timestamp {
        self.not_before(self.0.clock.now())
    }

    /// Lets nothing be recorded as earlier than `at` from now on, and gives the latest such time.
    pub fn not_before(&self, at: Timestamp) -> Timestamp {
        let mut latest = self.0.latest.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = at.max(*latest);
        *latest
    }

    pub(crate) fn fault(&self) -> Option<&Fault> {
        self.0.fault.as_ref()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.dir.join(name)
    }

    /// Refuses a name that no bundle has, and the one that a fault names.
    pub(crate) fn admit(&self, name: &str) -> Result<(), WriteError> {
        if !layout::is_known(name) {
            let unknown = io::Error::new(io::ErrorKind::InvalidInput, "no bundle has a file of that name");
            return Err(WriteError::new(name, unknown));
        }
        if matches!(self.fault(), Some(Fault::FailWrite(broken)) if broken == name) {
            return Err(WriteError::new(name, Errno::IO));
        }
        Ok(())
    }

    /// Creates the parent directory of a file of this name.
    pub(crate) fn make_parent(&self, name: &str) -> io::Result<()> {
        if !name.contains('/') {
            return Ok(());
        }
        match fs::create_dir(self.path(layout::ENGINE_DIR)) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Makes the entry of a file durable.
    pub(crate) fn sync_name(&self, name: &str) -> io::Result<()> {
        let path = self.path(name);
        path.parent().map_or(Ok(()), sync_dir)
    }

    /// Makes the names of all files so far durable.
    pub fn settle(&self) -> Result<(), WriteError> {
        self.sync_names().map_err(|e| WriteError::new(".", e))
    }

    /// Makes the names of all files durable.
    pub(crate) fn sync_names(&self) -> io::Result<()> {
        let engine = self.path(layout::ENGINE_DIR);
        if engine.is_dir() {
            sync_dir(&engine)?;
        }
        sync_dir(self.dir())
    }

    pub(crate) fn record(&self, name: &str, sha256: Digest, size: u64) {
        let mut written_at = self.now();
        if matches!(self.fault(), Some(Fault::Backdate(file)) if file == name)
            && !self.0.backdated.swap(true, Ordering::Relaxed)
        {
            written_at = written_at.saturating_sub(Duration::from_hours(1)).unwrap_or(written_at);
        }
        let artifact = Artifact { sha256, size, written_at };
        self.written().insert(name.to_owned(), artifact);
    }

    fn written(&self) -> MutexGuard<'_, BTreeMap<String, Artifact>> {
        self.0.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Bundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bundle").field("dir", &self.0.dir).finish_non_exhaustive()
    }
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    // A relative directory of one name has the empty path as its parent.
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    File::open(dir)?.sync_all()
}
