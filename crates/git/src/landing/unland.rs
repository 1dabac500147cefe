//! Undoes a landing.

use super::{LandState, Landing, Unlanded};
use crate::error::GitError;
use crate::source::SourceRepo;

impl SourceRepo {
    /// Deletes the ref if it still points to the commit of `landing`, and the objects if nothing depends on them.
    /// An interrupted or repeated undo can be repeated.
    pub fn unland(&self, landing: &Landing) -> Result<Unlanded, GitError> {
        landing.check()?;
        self.take_back(landing).map_err(|e| self.unplaced(e))
    }

    pub(super) fn take_back(&self, landing: &Landing) -> Result<Unlanded, GitError> {
        match self.landed(landing)? {
            LandState::Absent => {}
            LandState::Theirs(commit) => return Ok(Unlanded::RefMoved(commit)),
            LandState::Ours if self.is_checked_out(&landing.reference)? => return Ok(Unlanded::CheckedOut),
            LandState::Ours => {
                let delete = format!("option no-deref\ndelete {} {}", landing.reference, landing.commit);
                if let Err(error) = self.transaction(&self.git_dir, &[delete]) {
                    match self.landed(landing)? {
                        LandState::Absent => {}
                        LandState::Theirs(commit) => return Ok(Unlanded::RefMoved(commit)),
                        LandState::Ours => return Err(error),
                    }
                }
            }
        }
        // git removes it with its last ref; an interrupted landing may have left it. In use it is not empty.
        for directory in landing.directories().into_iter().rev() {
            let _ = std::fs::remove_dir(self.common_dir.join(directory));
        }
        self.remove_pack(landing)?;
        Ok(if self.has(&landing.commit)? { Unlanded::ObjectsKept } else { Unlanded::NoTrace })
    }

    /// Whether the target has the object, in any store.
    fn has(&self, id: &str) -> Result<bool, GitError> {
        let output = self.reading(["cat-file", "--batch-check"]).stdin(format!("{id}\n")).checked()?;
        Ok(!output.stdout.ends_with(b" missing\n"))
    }
}
