//! The schemas of everything that herma writes, by name.

use herma_core::admission::{EngineDraft, ModelDraft, SignedAdmission, TargetDraft};
use herma_core::approver::ApproverRecord;
use herma_core::comparison::Comparison;
use herma_core::contract::Terms;
use herma_core::environment::EnvironmentRecord;
use herma_core::health::HealthReport;
use herma_core::matrix::MatrixReport;
use herma_core::outcome::Outcome;
use herma_core::signed::Signed;
use herma_core::step::TraceLine;
use herma_core::transcript::TranscriptLine;
use herma_core::{Decision, Event, Report};
use herma_destination::Confinement;
use schemars::{Schema, schema_for};
use serde_json::Value;

use crate::output;

/// A published schema.
pub struct Published {
    /// The name that `herma schema` knows it by.
    pub name: &'static str,
    /// Its purpose.
    pub what: &'static str,
    /// Makes it.
    pub make: fn() -> Schema,
}

impl Published {
    /// The schema as it is published: in an order that does not hang on that of the fields in the code.
    #[must_use]
    pub fn schema(&self) -> Schema {
        let mut schema = (self.make)();
        if let Some(keys) = schema.as_object_mut() {
            keys.sort_keys();
            keys.values_mut().for_each(Value::sort_all_objects);
        }
        schema
    }
}

/// Every schema that herma publishes.
pub const SCHEMAS: &[Published] = &[
    Published { name: "contract", what: "the front matter of a contract", make: || schema_for!(Terms) },
    Published { name: "report", what: "report.json; `run`, `demo` and `show`", make: || schema_for!(Report) },
    Published { name: "tree", what: "`show --tree`", make: || schema_for!(output::TreeOutput) },
    Published { name: "event", what: "a line of events.jsonl", make: || schema_for!(Event) },
    Published { name: "trace", what: "a line of trace.jsonl", make: || schema_for!(TraceLine) },
    Published { name: "decision", what: "decision.json", make: || schema_for!(Decision) },
    Published { name: "confinement", what: "confinement.json", make: || schema_for!(Confinement) },
    Published { name: "dry-run", what: "`run --dry-run`", make: || schema_for!(output::DryRunOutput) },
    Published { name: "environment", what: "environment.json", make: || schema_for!(EnvironmentRecord) },
    Published { name: "environments", what: "`env list`", make: || schema_for!(output::EnvironmentsOutput) },
    Published {
        name: "environment-layer",
        what: "`env show`",
        make: || schema_for!(output::EnvironmentLayerOutput),
    },
    Published {
        name: "environment-built",
        what: "`env build`",
        make: || schema_for!(output::EnvironmentBuiltOutput),
    },
    Published {
        name: "environments-pruned",
        what: "`env prune`",
        make: || schema_for!(output::EnvironmentsPrunedOutput),
    },
    Published { name: "quickstart", what: "`quickstart`", make: || schema_for!(output::QuickstartOutput) },
    Published { name: "router", what: "`router`", make: || schema_for!(output::RouterOutput) },
    Published {
        name: "router-check",
        what: "`router check`",
        make: || schema_for!(output::RouterCheckOutput),
    },
    Published {
        name: "router-probe",
        what: "`router probe`",
        make: || schema_for!(output::RouterProbeOutput),
    },
    Published { name: "store-check", what: "`store check`", make: || schema_for!(output::StoreCheckOutput) },
    Published {
        name: "store-rebuild",
        what: "`store rebuild`",
        make: || schema_for!(output::StoreRebuildOutput),
    },
    Published {
        name: "store-migrate",
        what: "`store migrate`",
        make: || schema_for!(output::StoreMigrateOutput),
    },
    Published { name: "egress", what: "`egress show`", make: || schema_for!(output::EgressOutput) },
    Published { name: "egress-test", what: "`egress test`", make: || schema_for!(output::EgressTestOutput) },
    Published {
        name: "egress-learned",
        what: "`egress learned`",
        make: || schema_for!(output::EgressLearnedOutput),
    },
    Published {
        name: "egress-list-changed",
        what: "`egress adopt` and `egress sign`",
        make: || schema_for!(output::EgressListOutput),
    },
    Published {
        name: "egress-grant-shown",
        what: "`egress grant` and `egress revoke`",
        make: || schema_for!(output::EgressGrantOutput),
    },
    Published {
        name: "policy-check",
        what: "`policy check`",
        make: || schema_for!(output::PolicyCheckOutput),
    },
    Published { name: "policy-test", what: "`policy test`", make: || schema_for!(output::PolicyTestOutput) },
    Published {
        name: "policy-explain",
        what: "`policy explain`",
        make: || schema_for!(output::PolicyExplainOutput),
    },
    Published { name: "comparison", what: "`compare`", make: || schema_for!(Comparison) },
    Published { name: "summary", what: "`summary`", make: || schema_for!(output::SummaryOutput) },
    Published {
        name: "summary-check",
        what: "`summary check`",
        make: || schema_for!(output::SummaryCheckOutput),
    },
    Published { name: "health", what: "`health`", make: || schema_for!(HealthReport) },
    Published {
        name: "reference",
        what: "`show` of a file of a bundle or a record",
        make: || schema_for!(output::ReferenceOutput),
    },
    Published { name: "matrix", what: "`matrix`", make: || schema_for!(MatrixReport) },
    Published { name: "runs", what: "`runs`", make: || schema_for!(output::RunsOutput) },
    Published { name: "apply", what: "`apply`", make: || schema_for!(output::ApplyOutput) },
    Published { name: "discard", what: "`discard`", make: || schema_for!(output::DiscardOutput) },
    Published { name: "gc", what: "`gc`", make: || schema_for!(output::GcOutput) },
    Published { name: "export", what: "`export`", make: || schema_for!(output::ExportOutput) },
    Published { name: "diff", what: "`diff`", make: || schema_for!(output::DiffOutput) },
    Published { name: "logs", what: "`logs`", make: || schema_for!(output::LogsOutput) },
    Published {
        name: "log-chunk",
        what: "a line of `logs --follow`",
        make: || schema_for!(output::LogChunkOutput),
    },
    Published {
        name: "transcript-line",
        what: "a line of `logs --follow` of the transcript",
        make: || schema_for!(output::TranscriptLineOutput),
    },
    Published {
        name: "transcript",
        what: "a line of `transcript.jsonl` in a bundle, after its first",
        make: || schema_for!(TranscriptLine),
    },
    Published { name: "watch", what: "a line of `watch`", make: || schema_for!(output::WatchOutput) },
    Published { name: "verify", what: "`verify`", make: || schema_for!(output::VerifyOutput) },
    Published {
        name: "contract-check",
        what: "`contract check` and `contract digest`",
        make: || schema_for!(output::ContractOutput),
    },
    Published {
        name: "engine-admission",
        what: "the file of an engine's admission",
        make: || schema_for!(EngineDraft),
    },
    Published {
        name: "model-admission",
        what: "the file of a model's admission",
        make: || schema_for!(ModelDraft),
    },
    Published {
        name: "target-admission",
        what: "the file of a target's admission",
        make: || schema_for!(TargetDraft),
    },
    Published {
        name: "admission-signature",
        what: "the signature beside an admission's file",
        make: || schema_for!(Signed<SignedAdmission>),
    },
    Published {
        name: "admission",
        what: "`admit`; `admissions show`, `check` and `revoke` about one",
        make: || schema_for!(output::AdmissionOutput),
    },
    Published {
        name: "admissions",
        what: "`admissions list`; `admissions check` about all",
        make: || schema_for!(output::AdmissionsOutput),
    },
    Published {
        name: "approver-record",
        what: "an approver's record in the installation",
        make: || schema_for!(Signed<ApproverRecord>),
    },
    Published {
        name: "approver-shown",
        what: "`approver init` and `approver revoke`",
        make: || schema_for!(output::ApproverOutput),
    },
    Published { name: "approvers", what: "`approver list`", make: || schema_for!(output::ApproversOutput) },
    Published {
        name: "written",
        what: "`init` and `contract new`",
        make: || schema_for!(output::WrittenOutput),
    },
    Published { name: "engines", what: "`engines`", make: || schema_for!(output::EnginesOutput) },
    Published { name: "installed", what: "`engines install`", make: || schema_for!(output::InstalledOutput) },
    Published {
        name: "destinations",
        what: "`destinations`",
        make: || schema_for!(output::DestinationsOutput),
    },
    Published {
        name: "destination",
        what: "`destination set` and `destination show`",
        make: || schema_for!(output::DestinationOutput),
    },
    Published { name: "probe", what: "`probe`", make: || schema_for!(output::ProbeOutput) },
    Published {
        name: "approval",
        what: "`approvals request`, `show`, `grant` and `deny`",
        make: || schema_for!(output::ApprovalOutput),
    },
    Published { name: "approvals", what: "`approvals list`", make: || schema_for!(output::ApprovalsOutput) },
    Published {
        name: "outcome-given",
        what: "`accept` and `reject`",
        make: || schema_for!(output::OutcomeOutput),
    },
    Published { name: "outcome", what: "outcome.json", make: || schema_for!(Signed<Outcome>) },
    Published {
        name: "proof",
        what: "`prove --stage`; the record in a file under proofs/",
        make: || schema_for!(herma_core::proof::Proof),
    },
    Published {
        name: "proofs",
        what: "`prove --up-to` and `prove --stale`",
        make: || schema_for!(output::ProofsOutput),
    },
    Published { name: "ladder", what: "`ladder`", make: || schema_for!(output::LadderOutput) },
    Published { name: "models", what: "`models`", make: || schema_for!(output::ModelsOutput) },
    Published { name: "usage", what: "`usage`", make: || schema_for!(output::UsageOutput) },
    Published {
        name: "model-call",
        what: "a line of model-calls.jsonl",
        make: || schema_for!(herma_core::model_call::ModelCall),
    },
    Published { name: "trust", what: "`trust`", make: || schema_for!(output::TrustOutput) },
    Published {
        name: "trust-record",
        what: "a line of trust/chain.jsonl",
        make: || schema_for!(Signed<herma_core::trust::TrustRecord>),
    },
    Published { name: "doctor", what: "`doctor`", make: || schema_for!(output::DoctorOutput) },
    Published {
        name: "schemas",
        what: "`schema` without a name",
        make: || schema_for!(output::SchemasOutput),
    },
    Published { name: "completions", what: "`completions`", make: || schema_for!(output::CompletionsOutput) },
    Published {
        name: "error",
        what: "any command that did not work",
        make: || schema_for!(output::ErrorOutput),
    },
];
