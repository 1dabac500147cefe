//! Markers of containers that are being created. The daemon continues to create a container when its herma is
//! killed, so that one can appear after a reaper has listed them; the marker tells the reaper to wait for it.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use herma_core::RunId;

/// A container that is being created, until this is dropped.
pub(super) struct PendingContainer {
    mark: PathBuf,
    /// The container's name.
    pub(super) name: String,
}

impl PendingContainer {
    /// Writes the marker before the container is created.
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

impl Drop for PendingContainer {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.mark);
    }
}

/// The names of the containers that were being created when the run's herma died. Removes their markers.
pub(super) fn take_names(dir: &Path, run: RunId) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let take_names: Vec<String> = names.filter(|name| name.starts_with(&prefix(run))).collect();
    for name in &take_names {
        let _ = fs::remove_file(dir.join(name));
    }
    take_names
}

fn prefix(run: RunId) -> String {
    format!("herma-{run}-")
}

#[cfg(test)]
mod tests {
    use herma_core::Timestamp;

    use super::*;

    #[test]
    fn a_pending_container_is_reported_once_and_for_its_own_run_only() {
        let dir = tempfile::tempdir().unwrap();
        let [run, other] = [1, 2].map(|seed| RunId::new(Timestamp::UNIX_EPOCH, [seed; 10]));
        let making = [run, run, other].map(|run| PendingContainer::begin(dir.path(), run).unwrap());
        let mut names = [making[0].name.clone(), making[1].name.clone()];
        names.sort();
        let mut found = take_names(dir.path(), run);
        found.sort();
        assert_eq!((found.as_slice(), take_names(dir.path(), run)), (&names[..], Vec::new()));
        drop(making);
        assert_eq!(take_names(dir.path(), other), [""; 0]);
        assert_eq!(take_names(&dir.path().join("nowhere"), run), [""; 0]);
    }
}
