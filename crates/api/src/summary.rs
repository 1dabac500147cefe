//! The control summary: one read-only document, built from records that verify now.

mod approval;
mod health;
mod ladder;
mod runs;

use herma_core::Digest;
use herma_core::engine::EngineName;
use herma_core::report::NeverActivated;
use herma_core::store::StoreError;
use herma_harness::Installation;

use self::approval::approval;
use self::ladder::Ladder;
use self::runs::Runs;
use crate::output::{
    ApprovalSummary, Field, HealthNow, HealthSummary, LadderStatus, LandedBranch, LandedOutcome, NextAction,
    NotPromoted, Replay, SummaryOutput, SummarySchema,
};
use crate::records::Records;

/// The commands of herma that no version has yet.
const NO_REFRESH: &str = "this version of herma has no refresh of a candidate's evidence";

/// The control summary of an installation. It has no time of its own: the clock decides only whether a record with a date
/// still counts.
pub fn summary(installation: &Installation) -> Result<SummaryOutput, StoreError> {
    summary_of(&Records::of(installation))
}

/// The same for records that were verified already.
pub(crate) fn summary_of(records: &Records<'_>) -> Result<SummaryOutput, StoreError> {
    let (ladder, runs) = (Ladder::of(records), Runs::of(records)?);
    let (approval, approval_packet) = approval(records)?;
    let replay = Replay {
        matrix: Field::not_recorded("no run of the failure matrix is recorded"),
        comparison: ladder.comparison(),
        failure_closure: ladder.failure_closure(),
        refresh: Field::not_recorded(NO_REFRESH),
        stage5_report: runs.stage5_report(),
        stage5_proof: ladder.stage5_proof(),
    };
    let mut summary = SummaryOutput {
        schema_version: SummarySchema::V1,
        health: health::unknown(),
        default_validation_lane: EngineName::fake(),
        runtime_default_activation: NeverActivated,
        promotion_status: NotPromoted::NotPromoted,
        candidate_default: ladder.candidate(),
        refresh: Field::not_recorded(NO_REFRESH),
        repeatability: ladder.repeatability(),
        target_read_only: runs.target_read_only(),
        blocked_lanes: ladder.blocked_lanes(),
        replay,
        approval,
        approval_packet,
        governed_execution: runs.governed_execution()?,
        target_repository_mutation: runs.mutation(),
        landed_branches: runs.landed_branches(),
        proof_ladder: ladder.rows,
        next_operator_action: String::new(),
    };
    let digest = digest(&summary);
    (summary.health, summary.replay.matrix) = health::recorded(records, digest);
    summary.next_operator_action = next_action(&summary);
    Ok(summary)
}

/// The digest of a summary without its health, which tells whether a health check is about the records as they are now.
pub(crate) fn digest(summary: &SummaryOutput) -> Option<Digest> {
    let mut bare = summary.clone();
    bare.health = health::unknown();
    bare.replay.matrix = Field::not_recorded(String::new());
    bare.next_operator_action.clear();
    serde_json::to_vec(&bare).ok().map(|bytes| Digest::of(&bytes))
}

/// The next step for a person, the most urgent first.
fn next_action(summary: &SummaryOutput) -> String {
    let SummaryOutput { proof_ladder, approval, landed_branches, health, .. } = summary;
    if let Some(row) = proof_ladder.iter().find(|row| row.status == LadderStatus::Blocked) {
        return format!("prove it again: herma prove --engine {} --stage {}", row.engine, row.stage);
    }
    if let Some(step) = approval_step(approval).or_else(|| outcome_step(landed_branches)) {
        return step;
    }
    match health.status {
        HealthNow::Red | HealthNow::NotRecorded | HealthNow::Blocked | HealthNow::Incomplete => {
            return "check the health of this installation: herma health".to_owned();
        }
        HealthNow::Green => {}
    }
    let lowest = |row: &&crate::output::LadderRow| {
        row.engine == summary.default_validation_lane && row.status == LadderStatus::Unproven
    };
    match proof_ladder.iter().find(lowest) {
        Some(row) => {
            format!("prove the next stage: herma prove --engine {} --stage {}", row.engine, row.stage)
        }
        None => "nothing waits for a person".to_owned(),
    }
}

fn approval_step(approval: &ApprovalSummary) -> Option<String> {
    let id = approval.approval_id?;
    let allowed = |action| approval.allowed_next_actions.contains(&action);
    if allowed(NextAction::Grant) {
        return Some(format!("rule on the request: herma approvals show {id}, then grant or deny it"));
    }
    allowed(NextAction::Run).then(|| format!("run the contract of approval {id} once: herma run CONTRACT"))
}

fn outcome_step(landed: &[LandedBranch]) -> Option<String> {
    let pending = landed.iter().find(|landed| landed.outcome == LandedOutcome::Pending)?;
    let herma_core::reference::Reference::Bundle { run, .. } = &pending.report_path else { return None };
    Some(format!("give the outcome: herma accept {run}, or herma reject {run} --reason TEXT"))
}

impl HealthSummary {
    fn without(status: HealthNow, reason: &str) -> Self {
        Self { status, reason: Some(reason.to_owned()), health_report_path: None, matrix_report_path: None }
    }
}
