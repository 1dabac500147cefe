//! The failure matrix: runs it, keeps the record, and writes the aggregate report.

use std::path::{Path, PathBuf};

use herma_core::Blocker;
use herma_core::matrix::MatrixReport;
use herma_harness::Installation;
use herma_home::write_durably;
use herma_ladder::{MatrixError, MatrixRecordError, MatrixRecords, MatrixWatch, run_matrix};

use crate::directories::{DirectoryError, make_last_component};

/// The name of the aggregate report.
const REPORT: &str = "report.json";

/// The matrix could not be run, kept or written.
#[derive(Debug, thiserror::Error)]
pub enum MatrixUseError {
    /// It could not be run.
    #[error(transparent)]
    Run(#[from] MatrixError),
    /// Its record could not be kept.
    #[error(transparent)]
    Keep(#[from] MatrixRecordError),
    /// The directory of the report cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The report could not be written.
    #[error("{} could not be written: {source}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

/// Runs the rows of these blockers, or all; a record of all is kept in the home. The report is written into `output` as well.
pub fn matrix(
    installation: &Installation,
    only: &[Blocker],
    output: Option<&Path>,
    watch: &dyn MatrixWatch,
) -> Result<MatrixReport, MatrixUseError> {
    // A directory that cannot be used is found before the rows are run.
    if let Some(dir) = output {
        make_last_component("the directory of the report", dir, 0o755)?;
    }
    let mut report = run_matrix(installation, only, watch)?;
    if !report.partial {
        report = MatrixRecords::of(installation).keep(report)?.record;
    }
    if let Some(dir) = output {
        let file = dir.join(REPORT);
        let failed = |source| MatrixUseError::Write { file: file.clone(), source };
        let mut bytes = serde_json::to_vec_pretty(&report).map_err(|e| failed(e.into()))?;
        bytes.push(b'\n');
        write_durably(&file, &bytes).map_err(failed)?;
    }
    Ok(report)
}
