//! Output of `herma admit` and `herma admissions` with `--json`.

use herma_core::Digest;
use herma_core::admission::{AdmissionKind, EngineDraft, ModelDraft, SignedAdmission, TargetDraft};
use herma_core::report::Admission;
use schemars::JsonSchema;
use serde::Serialize;

/// `herma admit … --json`, and `herma admissions show|check|revoke --json` about one admission.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AdmissionOutput {
    /// `herma.admission/v1`.
    pub schema: &'static str,
    /// The kind of thing that it admits.
    pub kind: AdmissionKind,
    /// Which one, by its name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// The digest of the file's exact bytes.
    pub digest: Digest,
    /// Its status.
    pub status: Admission,
    /// Why.
    pub detail: String,
    /// The fields that it lacks before it can be signed; none if complete.
    pub lacks: Option<String>,
    /// The content of the file.
    pub record: AdmissionRecord,
    /// The signature beside it; whether it holds is in `status`.
    pub signed: Option<SignedAdmission>,
    /// The next step.
    pub next_step: String,
}

/// The content of an admission's file, by its kind.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum AdmissionRecord {
    /// Of an engine.
    Engine(Box<EngineDraft>),
    /// Of a model.
    Model(Box<ModelDraft>),
    /// Of a target.
    Target(Box<TargetDraft>),
}

/// `herma admissions list --json`, and `herma admissions check --json` about all.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AdmissionsOutput {
    /// `herma.admissions/v1`.
    pub schema: &'static str,
    /// Every admission of the installation, by kind and name.
    pub admissions: Vec<AdmissionRow>,
}

/// An admission in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AdmissionRow {
    /// The kind of thing that it admits.
    pub kind: AdmissionKind,
    /// Which one, by its name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// Its status.
    pub status: Admission,
    /// Why.
    pub detail: String,
}
