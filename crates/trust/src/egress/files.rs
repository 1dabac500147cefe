//! The files of the installation's egress rules: `egress/` in herma's home.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use herma_files::read_regular;
use herma_home::write_durably;
use rustix::fs::{FlockOperation, flock};

use super::error::EgressError;

/// The largest file that is read here.
const MAX_BYTES: u64 = 1 << 20;

/// The installation's lists, grants and proposals, read from its home.
#[derive(Clone, Debug)]
pub struct EgressFiles {
    dir: PathBuf,
}

impl EgressFiles {
    /// Those in this directory. It is made when something is written.
    #[must_use]
    pub fn open(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// A file or directory by its name.
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// A file's bytes; none where it is not there.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, EgressError> {
        match read_regular(&self.at(name), MAX_BYTES) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(EgressError::Io { file: format!("egress/{name}"), doing: "read", source }),
        }
    }

    /// Writes a file durably, making its directory.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), EgressError> {
        let file = self.at(name);
        let written =
            private_dir(file.parent().unwrap_or(&self.dir)).and_then(|()| write_durably(&file, bytes));
        written.map_err(|source| EgressError::Io { file: format!("egress/{name}"), doing: "written", source })
    }

    /// The names in a directory that end like this, without the end; none where it is not there.
    pub(super) fn names(&self, dir: &str, end: &str) -> Result<Vec<String>, EgressError> {
        let failed = |source| EgressError::Io { file: format!("egress/{dir}"), doing: "read", source };
        let entries = match fs::read_dir(self.at(dir)) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(failed(e)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            names.extend(name.to_str().and_then(|name| name.strip_suffix(end)).map(str::to_owned));
        }
        names.sort();
        Ok(names)
    }

    /// Keeps other commands from changing anything here until it is dropped.
    pub(super) fn lock(&self) -> Result<File, EgressError> {
        let locked = private_dir(&self.dir).and_then(|()| {
            let dir = File::open(&self.dir)?;
            flock(&dir, FlockOperation::LockExclusive)?;
            Ok(dir)
        });
        locked.map_err(|source| EgressError::Io { file: "egress".to_owned(), doing: "locked", source })
    }
}

fn private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}
