//! Admissions: their rows in lists, and the state and next step of each.

use std::path::PathBuf;

use herma_core::Digest;
use herma_core::admission::{AdmissionDraft, AdmissionId};
use herma_core::report::Admission;
use herma_harness::Installation;
use herma_trust::{AdmissionContext, AdmissionError, AdmissionFile};

use crate::output::{AdmissionOutput, AdmissionRecord, AdmissionRow};

/// An admission of this installation, or a file outside of it, which can only be a draft.
#[derive(Clone, Debug)]
pub enum AdmissionRef {
    /// An admission of this installation.
    Installed(AdmissionId),
    /// A file outside of it.
    File(PathBuf),
}

impl AdmissionRef {
    /// Reads the admission's file.
    pub fn read(&self, installation: &Installation) -> Result<AdmissionFile, AdmissionError> {
        match self {
            Self::Installed(id) => installation.admissions().read(id),
            Self::File(file) => AdmissionFile::read(file),
        }
    }
}

/// Lists every admission.
pub fn admission_rows(installation: &Installation) -> Result<Vec<AdmissionRow>, AdmissionError> {
    let context = next_run(installation);
    let mut rows = Vec::new();
    for listed in installation.admissions().list()? {
        let (name, status, detail) = if let Some(id) = &listed.id {
            let found = installation.admissions().look(id, engine_digest(installation, id), &context);
            (id.name(), found.status, found.detail)
        } else {
            let name = listed.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            (name, Admission::InvalidAdmission, format!("no {} has a file of this name", listed.kind))
        };
        let file = listed.file.display().to_string();
        rows.push(AdmissionRow { kind: listed.kind, name, file, status, detail });
    }
    Ok(rows)
}

/// One admission with its state and the next step.
pub fn admission_output(
    installation: &Installation,
    admission: &AdmissionRef,
) -> Result<AdmissionOutput, AdmissionError> {
    let admissions = installation.admissions();
    let read = admission.read(installation)?;
    let file = match admission {
        AdmissionRef::Installed(id) => admissions.file(id),
        AdmissionRef::File(file) => file.clone(),
    };
    let id = &read.id;
    let (kind, name) = (id.kind(), id.name());
    let lacks = read.draft.lacks().map(|lacks| lacks.to_string());
    let shown = file.display().to_string();
    let (status, detail, signed) = match admission {
        AdmissionRef::Installed(id) => {
            let found = admissions.look(id, engine_digest(installation, id), &next_run(installation));
            (found.status, found.detail, admissions.signature(id).ok().flatten().map(|signed| signed.record))
        }
        AdmissionRef::File(_) => {
            let detail = "a file outside of the installation is a draft, and no run reads it";
            (Admission::NotAdmitted, detail.to_owned(), None)
        }
    };
    let next_step = match (status, &lacks, admission) {
        (Admission::Admitted, ..) => {
            format!("`herma admissions revoke {kind} {name} --reason TEXT` takes it back")
        }
        (_, Some(_), _) => {
            format!("fill it in: edit {shown}, or `herma admit {kind} {name}` with more options")
        }
        (_, None, AdmissionRef::File(_)) => format!("have an approver sign it: `herma admit sign {shown}`"),
        (_, None, AdmissionRef::Installed(_)) => {
            format!("have an approver sign it: `herma admit sign {kind} {name}`")
        }
    };
    Ok(AdmissionOutput {
        schema: "herma.admission/v1",
        kind,
        name,
        file: shown,
        digest: read.digest(),
        status,
        detail,
        lacks,
        record: record(read.draft),
        signed,
        next_step,
    })
}

fn record(draft: AdmissionDraft) -> AdmissionRecord {
    match draft {
        AdmissionDraft::Engine(draft) => AdmissionRecord::Engine(Box::new(draft)),
        AdmissionDraft::Model(draft) => AdmissionRecord::Model(Box::new(draft)),
        AdmissionDraft::Target(draft) => AdmissionRecord::Target(Box::new(draft)),
    }
}

/// The current digest of an engine.
fn engine_digest(installation: &Installation, id: &AdmissionId) -> Option<Digest> {
    let AdmissionId::Engine(name) = id else { return None };
    installation.engines().get(name)?.digest().ok()
}

/// The context of a run that would start now.
fn next_run(installation: &Installation) -> AdmissionContext<'_> {
    let mut context = installation.admission_context();
    let so_far = context.runs_since;
    context.runs_since = Box::new(move |id, since| so_far(id, since).map(|runs| runs + 1));
    context
}
