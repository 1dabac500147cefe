//! Marks of the containers that are being made. A daemon goes on with that when its herma is killed, so that a container can
//! appear after somebody has looked for what was left; by its mark it is waited for.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use herma_core::RunId;

/// A container that is being made, until this is dropped.
pub(super) struct Making {
    mark: PathBuf,
    /// The container's name.
    pub(super) name: String,
}

impl Making {
    /// Marks that a container of the run is about to be made.
    pub(super) fn begin(dir: &Path, run: RunId) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (herma, count) = (rustix::process::getpid(), COUNT.fetch_add(1, Ordering::Relaxed));
        let name = format!("{}{herma}-{count}", prefix(run));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let mark = dir.join(&name);
        fs::write(&mark, "")?;
        Ok(Self { mark, name })
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.mark);
    }
}

/// The names of the containers that were being made when the run's herma died. Their marks are taken away.
pub(super) fn left(dir: &Path, run: RunId) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let left: Vec<String> = names.filter(|name| name.starts_with(&prefix(run))).collect();
    for name in &left {
        let _ = fs::remove_file(dir.join(name));
    }
    left
}

fn prefix(run: RunId) -> String {
    format!("herma-{run}-")
}

#[cfg(test)]
mod tests {
    use herma_core::Timestamp;

    use super::*;

    #[test]
    fn what_was_being_made_is_known_once_and_by_its_own_run_only() {
        let dir = tempfile::tempdir().unwrap();
        let [run, other] = [1, 2].map(|seed| RunId::new(Timestamp::UNIX_EPOCH, [seed; 10]));
        let making = [run, run, other].map(|run| Making::begin(dir.path(), run).unwrap());
        let mut names = [making[0].name.clone(), making[1].name.clone()];
        names.sort();
        let mut found = left(dir.path(), run);
        found.sort();
        assert_eq!((found.as_slice(), left(dir.path(), run)), (&names[..], Vec::new()));
        drop(making);
        assert_eq!(left(dir.path(), other), [""; 0]);
        assert_eq!(left(&dir.path().join("nowhere"), run), [""; 0]);
    }
}
