//! Opens what a reference names: a file of a bundle, or a record.

use std::io;
use std::path::PathBuf;

use herma_core::reference::Reference;
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_harness::Installation;
use herma_ladder::{Comparisons, MatrixRecords};

use crate::health_records::HealthRecords;
use crate::output::{ReferenceOutput, ReferenceSchema};
use crate::records::Records;

/// The record or file of a reference cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{reference} cannot be opened: {why}")]
pub struct ReferenceOpenError {
    reference: Reference,
    why: String,
}

/// The text of what the reference names, and whether it verifies.
pub fn open_reference(
    installation: &Installation,
    reference: &Reference,
) -> Result<ReferenceOutput, ReferenceOpenError> {
    let failed = |why: String| ReferenceOpenError { reference: reference.clone(), why };
    let text = match reference {
        Reference::Approval(id) => {
            let approval = Records::of(installation).approval(&id.to_string()).map_err(failed)?;
            serde_json::to_string_pretty(&approval).map_err(|e| failed(e.to_string()))?
        }
        Reference::Approver(name) => {
            let known = installation.approvers().find(name).map_err(|e| failed(e.to_string()))?;
            serde_json::to_string_pretty(&known.record).map_err(|e| failed(e.to_string()))?
        }
        other => {
            let bytes = file(installation, other).and_then(|file| read_regular(&file, MAX_RECORD_BYTES));
            String::from_utf8_lossy(&bytes.map_err(|e| failed(e.to_string()))?).into_owned()
        }
    };
    let problem = Records::of(installation).check(reference).err();
    Ok(ReferenceOutput {
        schema: ReferenceSchema::V1,
        reference: reference.clone(),
        verifies: problem.is_none(),
        problem,
        text,
    })
}

/// The file of a bundle or a record.
fn file(installation: &Installation, reference: &Reference) -> io::Result<PathBuf> {
    Ok(match reference {
        Reference::Bundle { run, file } => installation.home.run(*run).bundle().join(file.to_string()),
        Reference::Proof(engine, stage) => installation.proofs().file(engine, *stage),
        Reference::Comparison(id) => {
            let [for_programs, _] = Comparisons::of(installation).files(*id);
            for_programs
        }
        Reference::Admission(id) => installation.admissions().file(id),
        Reference::Matrix(id) => MatrixRecords::of(installation).file(*id),
        Reference::Health(id) => HealthRecords::of(installation).file(*id),
        Reference::Approval(_) | Reference::Approver(_) => {
            return Err(io::Error::other("it is no file"));
        }
    })
}
