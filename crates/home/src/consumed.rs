//! Which run used which approval: one marker file each in `consumed/`. A store that is restored from a backup does not
//! remove the marker.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use herma_core::RunId;
use herma_core::approval::ApprovalId;

use crate::durable::{read_short, sync_dir};
use crate::home::Home;

/// Whether a run could mark an approval as used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalMark {
    /// The marker is written, and names this run.
    Written,
    /// Another run marked the approval first; the text names it.
    UsedBy(String),
}

impl Home {
    /// Marks an approval as used by a run, durably and once.
    pub fn mark_used(&self, approval: ApprovalId, run: RunId) -> io::Result<ApprovalMark> {
        let dir = self.consumed();
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        // The hard link appears only when the file is complete, so a reader always sees which run was first.
        let mut mark = tempfile::NamedTempFile::new_in(&dir)?;
        write!(mark, "{run}")?;
        mark.as_file().sync_all()?;
        match fs::hard_link(mark.path(), dir.join(approval.to_string())) {
            Ok(()) => sync_dir(&dir).map(|()| ApprovalMark::Written),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                Ok(ApprovalMark::UsedBy(self.used_by(approval)))
            }
            Err(e) => Err(e),
        }
    }

    /// The run that used an approval, for messages; none where the approval is not marked.
    #[must_use]
    pub fn is_used(&self, approval: ApprovalId) -> Option<String> {
        let marked = fs::symlink_metadata(self.consumed().join(approval.to_string())).is_ok();
        marked.then(|| self.used_by(approval))
    }

    /// The run that marked an approval as used; none where there is no readable marker.
    #[must_use]
    pub fn marked_by(&self, approval: ApprovalId) -> Option<RunId> {
        read_short(&self.consumed().join(approval.to_string()))?.parse().ok()
    }

    /// The approvals that this run marked as used.
    #[must_use]
    pub fn approvals_marked_by(&self, run: RunId) -> Vec<ApprovalId> {
        let marks = fs::read_dir(self.consumed()).into_iter().flatten().flatten();
        let ids = marks.filter_map(|mark| mark.file_name().to_str()?.parse().ok());
        ids.filter(|id| self.marked_by(*id) == Some(run)).collect()
    }

    fn consumed(&self) -> PathBuf {
        self.root().join("consumed")
    }

    fn used_by(&self, approval: ApprovalId) -> String {
        let run = self.marked_by(approval);
        run.map_or_else(|| "another run".to_owned(), |run| format!("run {run}"))
    }
}
