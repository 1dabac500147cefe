//! Writes bundles into one archive. The same bundles give the same bytes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use herma_core::store::RunSummary;
use herma_core::{Digest, RunId};
use herma_files::open_regular;
use herma_harness::Installation;
use sha2::{Digest as _, Sha256};

use crate::output::{ExportOutput, TreeNode};
use crate::reports::{ReportError, read_report};
use crate::run_tree::run_tree;

/// The permissions of files in the archive.
const FILE_MODE: u32 = 0o644;

/// Nothing was exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The run has not ended.
    #[error("run {0} is still under way, so its bundle is not complete")]
    UnderWay(RunId),
    /// Its bundle is not valid.
    #[error("the bundle of run {0} does not verify: {1}")]
    Broken(RunId, String),
    /// Its report cannot be read.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The archive exists.
    #[error("{} exists: an archive is never overwritten", .0.display())]
    Exists(PathBuf),
    /// A file could not be read or written.
    #[error("{}: {cause}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The cause.
        cause: io::Error,
    },
}

fn failed(file: &Path) -> impl FnOnce(io::Error) -> ExportError {
    let file = file.to_owned();
    move |cause| ExportError::Io { file, cause }
}

/// Writes the bundles of these runs, each below its id, into a new archive.
pub fn export(
    installation: &Installation,
    runs: &[RunSummary],
    children: bool,
    output: &Path,
) -> Result<ExportOutput, ExportError> {
    if fs::symlink_metadata(output).is_ok() {
        return Err(ExportError::Exists(output.to_owned()));
    }
    let active = installation.home.active_runs().map_err(failed(installation.home.root()))?;
    let mut all: BTreeSet<RunId> = BTreeSet::new();
    for run in runs {
        if run.status.is_none() {
            return Err(ExportError::UnderWay(run.run_id));
        }
        all.insert(run.run_id);
        if children {
            let report = read_report(&installation.home.run(run.run_id).bundle())?;
            children_of(&run_tree(installation, &report), run.run_id, false, &mut all);
        }
    }
    if let Some(run) = all.iter().find(|run| active.contains(run)) {
        return Err(ExportError::UnderWay(*run));
    }
    for run in &all {
        let checks = installation.evidence().verify(*run);
        if !checks.ok() {
            let first = checks.failed().next();
            let why = first.map(|check| format!("{}: {}", check.name.as_str(), check.detail));
            return Err(ExportError::Broken(
                *run,
                why.unwrap_or_else(|| "nothing could be checked".to_owned()),
            ));
        }
    }
    let dir = output.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temp = tempfile::NamedTempFile::new_in(dir).map_err(failed(output))?;
    let mut archive = tar::Builder::new(Hashing { file: temp.as_file_mut(), hash: Sha256::new(), bytes: 0 });
    for run in &all {
        let bundle = installation.home.run(*run).bundle();
        append(&mut archive, &bundle, Path::new(&run.to_string()))?;
    }
    let Hashing { hash, bytes, .. } = archive.into_inner().map_err(failed(output))?;
    temp.as_file().sync_all().map_err(failed(output))?;
    temp.persist_noclobber(output).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => ExportError::Exists(output.to_owned()),
        _ => failed(output)(error.error),
    })?;
    Ok(ExportOutput {
        schema: "herma.export/v1",
        file: output.to_owned(),
        runs: all.into_iter().collect(),
        bytes,
        sha256: Digest::from_bytes(hash.finalize().into()),
    })
}

/// Adds every run below `run` in the tree.
fn children_of(node: &TreeNode, run: RunId, below: bool, found: &mut BTreeSet<RunId>) {
    if below {
        found.insert(node.run_id);
    }
    let below = below || node.run_id == run;
    for child in &node.children {
        children_of(child, run, below, found);
    }
}

/// Adds the files of a directory, in the order of their names.
fn append<W: Write>(archive: &mut tar::Builder<W>, dir: &Path, name: &Path) -> Result<(), ExportError> {
    let entries = fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(failed(dir))?;
    let mut names: Vec<_> = entries.iter().map(fs::DirEntry::file_name).collect();
    names.sort();
    for file in names {
        let (path, name) = (dir.join(&file), name.join(&file));
        let meta = fs::symlink_metadata(&path).map_err(failed(&path))?;
        if meta.is_dir() {
            append(archive, &path, &name)?;
            continue;
        }
        let open = open_regular(&path).map_err(failed(&path))?;
        let size = open.metadata().map_err(failed(&path))?.len();
        let mut header = tar::Header::new_ustar();
        header.set_size(size);
        header.set_mode(FILE_MODE);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_entry_type(tar::EntryType::Regular);
        archive.append_data(&mut header, &name, open).map_err(failed(&path))?;
    }
    Ok(())
}

/// Writes a file and hashes it.
struct Hashing<'a> {
    file: &'a mut fs::File,
    hash: Sha256,
    bytes: u64,
}

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
