//! Opens the bundle of a run that was interrupted, so that it can be closed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use herma_core::{Clock, Digest, Timestamp};
use sha2::{Digest as _, Sha256};

use super::{Bundle, WriteError, sync_dir};
use crate::envelope::Envelope;
use crate::file_reading::{MAX_RECORD_BYTES, read_regular};
use crate::layout;

/// The state of an interrupted run's bundle.
#[derive(Debug)]
pub enum Reopened {
    /// It was not attested; what it holds was witnessed now, and the run can be closed.
    Open(Bundle),
    /// It was attested: the run had ended, only the store does not know yet.
    Attested,
}

impl Bundle {
    /// Opens the bundle of an interrupted run: removes unfinished files, truncates torn lines, hashes the rest. No
    /// file is recorded as earlier than `started`, whatever the clock says.
    pub fn reopen(
        dir: impl Into<PathBuf>,
        clock: Arc<dyn Clock>,
        started: Timestamp,
    ) -> Result<Reopened, WriteError> {
        let bundle = Self::over(dir.into(), clock, None);
        bundle.not_before(started);
        if is_attested(bundle.dir()) {
            return Ok(Reopened::Attested);
        }
        let root = bundle.dir().to_owned();
        tidy(&root, "").map_err(|e| WriteError::new(".", e))?;
        for name in layout::EXPECTED.into_iter().chain(layout::OPTIONAL) {
            let path = bundle.path(name);
            let witnessed = match fs::symlink_metadata(&path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => Err(e),
                Ok(_) => witness(&path, [layout::EVENTS, layout::TRACE, layout::TRANSCRIPT].contains(&name)),
            };
            let (digest, size) = witnessed.map_err(|e| WriteError::new(name, e))?;
            bundle.record(name, digest, size);
        }
        Ok(Reopened::Open(bundle))
    }
}

/// Whether a sound attestation names the report as it is on disk. It is written last, so that then all is there.
fn is_attested(dir: &Path) -> bool {
    let read = |name| read_regular(&dir.join(name), MAX_RECORD_BYTES).ok();
    let (Some(attestation), Some(report)) = (read(layout::ATTESTATION), read(layout::REPORT)) else {
        return false;
    };
    let statement = Envelope::parse(&attestation).and_then(|envelope| envelope.statement());
    statement.is_ok_and(|s| {
        s.subjects().any(|(name, digest)| name == layout::REPORT && digest == Digest::of(&report))
    })
}

/// Removes everything that the run did not finish: only files of a run can be here.
fn tidy(dir: &Path, prefix: &str) -> io::Result<()> {
    let stale = [layout::REPORT, layout::REPORT_MD, layout::ATTESTATION];
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let leaf = entry.file_name();
        let name = leaf.to_str().map(|leaf| format!("{prefix}{leaf}"));
        let kind = entry.file_type()?;
        let keep = |name: &str| layout::is_artifact(name) && !stale.contains(&name);
        match name.as_deref() {
            Some(layout::ENGINE_DIR) if kind.is_dir() => {
                tidy(&entry.path(), "engine/")?;
                if fs::read_dir(entry.path())?.next().is_none() {
                    fs::remove_dir(entry.path())?;
                }
            }
            Some(name) if kind.is_file() && keep(name) => {}
            _ if kind.is_dir() => fs::remove_dir_all(entry.path())?,
            _ => fs::remove_file(entry.path())?,
        }
    }
    sync_dir(dir)
}

/// The digest and the size of a file, without its torn last line where it has lines.
fn witness(path: &Path, has_lines: bool) -> io::Result<(Digest, u64)> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    if has_lines {
        let end = last_line_end(&mut file)?;
        file.set_len(end)?;
    }
    file.sync_all()?;
    file.seek(SeekFrom::Start(0))?;
    let (mut hash, mut size, mut chunk) = (Sha256::new(), 0, vec![0; 1 << 20]);
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok((Digest::from_bytes(hash.finalize().into()), size));
        }
        hash.update(&chunk[..read]);
        size += read as u64;
    }
}

/// The end of the last complete line.
fn last_line_end(file: &mut File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut chunk = vec![0; 64 << 10];
    while end > 0 {
        let start = end.saturating_sub(chunk.len() as u64);
        let length = usize::try_from(end - start).map_err(io::Error::other)?;
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut chunk[..length])?;
        if let Some(newline) = chunk[..length].iter().rposition(|b| *b == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}
