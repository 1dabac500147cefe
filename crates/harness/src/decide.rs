//! The decision: drawn from what the gates found, with the approval used up.

use std::collections::BTreeMap;
use std::path::PathBuf;

use herma_core::approval::{ApprovalId, Ruling};
use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::capability::{Capability, Support};
use herma_core::decision::{DecisionInput, MissingGate};
use herma_core::event::{
    ApprovalConsumed, ApprovalDenied, ApprovalGranted, EligibilityDecided, EngineGateBlocked,
};
use herma_core::gate::{Finding, Gate};
use herma_core::report::{Admission, ApprovalStatus};
use herma_core::signed::Signed;
use herma_core::{Decision, Digest, Fault};
use herma_evidence::layout;
use herma_git::SourceState;
use herma_home::ApprovalMark;
use herma_trust::approvals::{self, Consumption, UsableApproval};
use serde::{Deserialize, Serialize};

use crate::context::{RunContext, pretty};
use crate::error::Stop;
use crate::gates::{self, ApprovalSeen, Gates};
use crate::journal::StepResult;

/// The findings of the gates without effects.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct GateResults {
    /// The digest that the gates judged.
    pub(crate) engine_digest: Option<Digest>,
    /// The engine's declared support for the capabilities that the contract needs.
    pub(crate) needs: BTreeMap<Capability, Support>,
    pub(crate) walls: Vec<String>,
    pub(crate) engine_admission: Option<Admission>,
    pub(crate) model_admission: Option<Admission>,
    pub(crate) target_admission: Option<Admission>,
    pub(crate) source_before: Option<SourceState>,
    /// The directory of the target. It never leaves the home.
    pub(crate) target_dir: Option<PathBuf>,
}

impl StepResult for GateResults {
    const KEY: &'static str = "gates";
}

impl GateResults {
    pub(crate) fn of(gates: &Gates) -> Self {
        let status =
            |kind: &str| gates.admissions.iter().find(|seen| seen.kind == kind).map(|seen| seen.status);
        Self {
            engine_digest: gates.engine_digest,
            needs: gates.needs.clone(),
            walls: gates.walls.clone(),
            engine_admission: status("engine"),
            model_admission: status("model"),
            target_admission: status("target"),
            source_before: gates.source.as_ref().map(|(_, before)| before.clone()),
            target_dir: gates.source.as_ref().map(|(repo, _)| repo.root().to_owned()),
        }
    }
}

/// The approval of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ApprovalResults {
    pub(crate) status: ApprovalStatus,
    pub(crate) id: Option<ApprovalId>,
}

impl StepResult for ApprovalResults {
    const KEY: &'static str = "approval";
}

impl ApprovalResults {
    /// The approval before it is used.
    pub(crate) fn of(gates: &Gates) -> Self {
        Self { status: gates.approval.status(), id: gates.approval.id() }
    }

    /// The approval of a run that used it and died before it could record that.
    pub(crate) fn consumed(id: ApprovalId) -> Self {
        Self { status: ApprovalStatus::Consumed, id: Some(id) }
    }
}

/// The eligibility decision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DecisionResults {
    pub(crate) gate_blockers: Vec<BlockerRecord>,
    pub(crate) engine_digest: Option<Digest>,
}

impl StepResult for DecisionResults {
    const KEY: &'static str = "decision";
}

/// Whether this run is the one that used the approval.
enum Consumed {
    ByThisRun,
    Not(BlockerRecord),
}

/// Uses the approval, last of all gates: no other run can use it after that. Of two runs that race for it, one gets it. The ruling
/// is returned where it was used.
pub(crate) fn use_approval(
    ctx: &RunContext<'_>,
    gates: &mut Gates,
    found: &mut Option<ApprovalResults>,
) -> Result<Option<Signed<Ruling>>, Stop> {
    let ApprovalSeen::Present(present) = &gates.approval else { return Ok(None) };
    if gates.findings.values().any(|finding| matches!(finding, Finding::Missing(_))) {
        return Ok(None);
    }
    let id = present.approval.request.id;
    let ruling = present.approval.ruling.clone();
    let said = ruling.as_ref().map(|signed| &signed.record);
    ctx.record(ApprovalGranted {
        approval_id: id,
        approver: said.map(|ruling| ruling.approver.clone()),
        at: said.map(|ruling| ruling.at),
    })?;
    match consume(ctx, present, gates.engine_digest)? {
        Consumed::ByThisRun => {
            ctx.journal.append(found.insert(ApprovalResults::consumed(id)))?;
            ctx.record(ApprovalConsumed { approval_id: id })?;
            Ok(ruling)
        }
        Consumed::Not(lost) => {
            gates.approval = ApprovalSeen::Absent(lost.clone());
            *found = Some(ApprovalResults { status: gates.approval.status(), id: Some(id) });
            gates.findings.insert(Gate::ApprovalPresent, Finding::Missing(lost));
            Ok(None)
        }
    }
}

/// Whether everything that people admitted for this run is still admitted.
pub(crate) fn still_admitted(
    ctx: &RunContext<'_>,
    engine_digest: Option<Digest>,
    ruling: Option<&Signed<Ruling>>,
) -> Result<(), BlockerRecord> {
    let order = (ctx.order, ctx.occasion.purpose);
    gates::still_admitted(ctx.installation, order, engine_digest, ruling)
}

/// Marks the approval as used, writes that to the trust chain, then moves it in the store. Each of the three refuses if another
/// run was first.
fn consume(
    ctx: &RunContext<'_>,
    present: &UsableApproval,
    engine_digest: Option<Digest>,
) -> Result<Consumed, Stop> {
    let (id, run) = (present.approval.request.id, ctx.plan.run_id);
    if let Err(revoked) = still_admitted(ctx, engine_digest, present.approval.ruling.as_ref()) {
        return Ok(Consumed::Not(revoked));
    }
    if let ApprovalMark::UsedBy(by) = ctx.installation.home.mark_used(id, run)? {
        return Ok(Consumed::Not(gates::used(id, &by)));
    }
    ctx.meet(&Fault::KillAfterMark);
    let now = ctx.installation.clock.now();
    if let Some(by) = ctx.installation.trust_log.consume(id, run, now)? {
        return Ok(Consumed::Not(gates::used(id, &format!("run {by}"))));
    }
    Ok(match approvals::consume(&ctx.installation.store, present, run, now)? {
        Consumption::Consumed => Consumed::ByThisRun,
        Consumption::Blocked(lost) => Consumed::Not(lost),
    })
}

/// Draws the decision and writes it. Where a gate is missing the run stops here and nothing was made.
pub(crate) fn decide(
    ctx: &RunContext<'_>,
    gates: &Gates,
    found: &mut Option<DecisionResults>,
) -> Result<(), Stop> {
    // The gates may not have needed the digest of an engine that is part of herma itself.
    let engine_digest = match ctx.installation.engines.get(&ctx.plan.engine) {
        Some(engine) if engine.built_in() => engine.digest().ok(),
        _ => gates.engine_digest,
    };
    let decision = draw(ctx, gates);
    let gate_blockers = decision.missing_gates.iter().map(MissingGate::record).collect();
    ctx.journal.append(found.insert(DecisionResults { gate_blockers, engine_digest }))?;
    ctx.record(EligibilityDecided {
        decision_id: decision.decision_id.clone(),
        engine_digest,
        selected_engine: decision.selected_engine.clone(),
        missing_gates: decision.missing_gates.iter().map(|missing| missing.gate).collect(),
    })?;
    let redacted = ctx.events.redactor().redact_record(&decision);
    let redacted = redacted.map_err(Stop::internal)?;
    ctx.bundle.write(layout::DECISION, &pretty(&redacted)?)?;
    if decision.is_eligible() {
        return Ok(());
    }
    if let ApprovalSeen::Absent(BlockerRecord { blocker: Blocker::ApprovalDenied, detail, .. }) =
        &gates.approval
    {
        ctx.record(ApprovalDenied { reason: detail.clone() })?;
    }
    for missing in &decision.missing_gates {
        ctx.record(EngineGateBlocked {
            engine: ctx.plan.engine.clone(),
            gate: missing.gate,
            reason: missing.reason.clone(),
            mutation_scope: decision.allowed_mutation_scope,
            engine_started: false,
        })?;
    }
    Err(Stop::Blocked)
}

fn draw(ctx: &RunContext<'_>, gates: &Gates) -> Decision {
    let terms = &ctx.contract.terms;
    let input = DecisionInput {
        run_id: ctx.plan.run_id,
        contract_id: &terms.id,
        contract_digest: ctx.plan.contract_digest,
        engine: &ctx.plan.engine,
        stage: terms.stage,
        mutation_scope: terms.mutation_scope(),
        risk: terms.risk,
        purpose: ctx.occasion.purpose,
        admissions: gates.admissions.clone(),
    };
    Decision::draw(&input, &gates.findings)
}
