//! Reads the report of a finished run.

use std::io;
use std::path::{Path, PathBuf};

use herma_core::Report;
use herma_evidence::{layout, report};
use herma_files::read_regular;

/// The report of a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file is missing or unreadable.
    #[error("the run has no report: {}: {cause}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// The file is not a report.
    #[error("{}: {problem}", file.display())]
    Bad {
        /// The file.
        file: PathBuf,
        /// The problem.
        problem: String,
    },
}

impl ReportError {
    /// The next step for the user.
    #[must_use]
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "`herma verify` says what is missing",
            Self::Bad { .. } => "it was touched, or is of another herma: `herma verify` says what holds",
        }
    }
}

/// The report in a bundle. It is not verified.
pub fn read_report(bundle: &Path) -> Result<Report, ReportError> {
    let file = bundle.join(layout::REPORT);
    let bytes = match read_regular(&file, report::MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(cause) => return Err(ReportError::Unreadable { file, cause }),
    };
    report::parse(&bytes).map_err(|bad| ReportError::Bad { file, problem: bad.to_string() })
}
