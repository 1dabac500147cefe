//! Errors of an audit.

use std::io;
use std::path::PathBuf;

use herma_core::model_call::Broken;

use super::Audit;

/// The audit cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// A file could not be opened, read or written.
    #[error("{}: could not {doing}: {cause}", file.display())]
    Io {
        /// Which file.
        file: PathBuf,
        /// The operation.
        doing: &'static str,
        /// The error.
        cause: io::Error,
    },
    /// The file is no chain: it was changed, or belongs to another run.
    #[error("{}: {broken}; it was changed since it was written, or is another run's: keep it, and look", file.display())]
    Broken {
        /// Which file.
        file: PathBuf,
        /// Where it breaks.
        broken: Broken,
    },
    /// The journal of begun calls cannot be read.
    #[error("{}: line {line}: {problem}; it was changed since it was written: keep it, and look", file.display())]
    BadJournal {
        /// Which file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The error.
        problem: String,
    },
    /// Another process writes it.
    #[error("{}: another process writes it; end that first", file.display())]
    InUse {
        /// Which file.
        file: PathBuf,
    },
    /// There is something else in its place.
    #[error("{}: expected a file with one name; take away what is there", file.display())]
    NotAFile {
        /// Which file.
        file: PathBuf,
    },
    /// An earlier call could not be recorded.
    #[error("an earlier call could not be recorded, so no further one is made; make room, then start again")]
    Poisoned,
    /// The audit is over.
    #[error("the audit is finished: nothing can be added")]
    Finished,
    /// The call never began, or has a record already.
    #[error("call {0} is not under way")]
    NotUnderWay(u64),
}

impl Audit {
    pub(super) fn io(&self, name: &str, doing: &'static str, cause: io::Error) -> AuditError {
        AuditError::Io { file: self.dir.join(name), doing, cause }
    }

    pub(super) fn broken(&self, broken: Broken) -> AuditError {
        AuditError::Broken { file: self.dir.join(super::MODEL_CALLS), broken }
    }
}
