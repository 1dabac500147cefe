//! The signed records of an installation: approvers and their trust chain, admissions, approvals, egress lists and
//! grants, proofs and outcomes. A run's gates read them, and nothing here starts a run.

mod admissions;
mod adopt;
pub mod approvals;
mod approvers;
mod bundle_check;
mod chain;
mod confinement_check;
mod egress;
mod evidence;
mod fixture_baseline;
mod outcome;
mod proofs;
mod stage_cases;

pub use admissions::{
    AdmissionContext, AdmissionError, AdmissionFile, AdmissionFinding, Admissions, ListedAdmission,
    RunsSince, SYSTEM_TEMP_DIRS, check_draft, count_runs,
};
pub use adopt::adopt;
pub use approvals::{ApprovalError, BadRequest, Packet, not_too_long};
pub use approvers::{Approver, ApproverError, Approvers, BrokenIntroduction, Distrust, KnownApprover};
pub use bundle_check::{refusal, verify_bundle, verify_run};
pub use chain::{TrustError, TrustLog};
pub use egress::{
    AllowedBy, EffectiveEgress, EgressError, EgressFiles, EgressProposal, GrantState, InstallationList,
    KnownGrant, SignedBy, check_contract as check_egress,
};
pub use evidence::RunEvidence;
pub use fixture_baseline::import_fixture;
pub use outcome::{OutcomeError, OutcomeStatus, Outcomes, TakenBack, remember_landing};
pub use proofs::{ProofStatus, Proofs};
pub use stage_cases::{StageCase, stage_cases};
