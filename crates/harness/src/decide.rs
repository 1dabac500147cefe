//! Draws the decision from what the gates found, and uses the approval.

use herma_core::approval::Ruling;
use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::decision::{MissingGate, Question};
use herma_core::event::{
    ApprovalConsumed, ApprovalDenied, ApprovalGranted, EligibilityDecided, EngineGateBlocked,
};
use herma_core::gate::{Finding, Gate};
use herma_core::report::ApprovalStatus;
use herma_core::signed::Signed;
use herma_core::{Decision, Fault};
use herma_evidence::layout;
use herma_home::ApprovalMark;
use herma_trust::approvals::{self, UsableApproval};

use crate::error::Stop;
use crate::gates::{self, ApprovalSeen, Gates};
use crate::run::{Run, pretty};

impl Run<'_> {
    /// Takes down what the gates found, for the report.
    pub(crate) fn note_gates(&mut self, gates: &Gates) {
        let facts = &mut self.facts;
        facts.engine_digest = gates.engine_digest;
        facts.needs.clone_from(&gates.needs);
        facts.walls.clone_from(&gates.walls);
        let status =
            |kind: &str| gates.admissions.iter().find(|seen| seen.kind == kind).map(|seen| seen.status);
        facts.engine_admission = status("engine");
        facts.model_admission = status("model");
        facts.target_admission = status("target");
        facts.approval_status = Some(gates.approval.status());
        facts.approval_id = gates.approval.id();
        if let Some((repo, before)) = &gates.source {
            facts.source_before = Some(before.clone());
            facts.target_dir = Some(repo.root().to_owned());
            self.source = Some(repo.clone());
        }
    }

    /// Uses the approval, last of all gates: from here on no other run can. Of two that race for it, one gets it.
    pub(crate) fn use_approval(&mut self, gates: &mut Gates) -> Result<(), Stop> {
        let ApprovalSeen::Present(present) = &gates.approval else { return Ok(()) };
        if gates.findings.values().any(|finding| matches!(finding, Finding::Missing(_))) {
            return Ok(());
        }
        let id = present.approval.request.id;
        let ruling = present.approval.ruling.as_ref().map(|signed| &signed.record);
        self.record(ApprovalGranted {
            approval_id: id,
            approver: ruling.map(|ruling| ruling.approver.clone()),
            at: ruling.map(|ruling| ruling.at),
        })?;
        match self.consume(present)? {
            Ok(()) => {
                self.ruling.clone_from(&present.approval.ruling);
                self.facts.approval_status = Some(ApprovalStatus::Consumed);
                self.facts.save(&self.dirs.facts())?;
                self.record(ApprovalConsumed { approval_id: id })
            }
            Err(lost) => {
                gates.approval = ApprovalSeen::Absent(lost.clone());
                self.facts.approval_status = Some(gates.approval.status());
                gates.findings.insert(Gate::ApprovalPresent, Finding::Missing(lost));
                Ok(())
            }
        }
    }

    /// Whether everything that people let in for this run is still let in.
    pub(crate) fn still_let_in(&self, ruling: Option<&Signed<Ruling>>) -> Result<(), BlockerRecord> {
        let order = (self.order, self.occasion.purpose);
        gates::still_let_in(self.installation, order, self.facts.engine_digest, ruling)
    }

    /// Marks the approval as used, writes that to the trust chain, then moves it in the store. Each of the three says no if
    /// another run was first.
    fn consume(&self, present: &UsableApproval) -> Result<Result<(), BlockerRecord>, Stop> {
        let (id, run) = (present.approval.request.id, self.plan.run_id);
        if let Err(taken_away) = self.still_let_in(present.approval.ruling.as_ref()) {
            return Ok(Err(taken_away));
        }
        if let ApprovalMark::UsedBy(by) = self.installation.home.mark_used(id, run)? {
            return Ok(Err(gates::used(id, &by)));
        }
        self.meet(&Fault::KillAfterMark);
        let now = self.installation.clock.now();
        if let Some(by) = self.installation.trust_log.consume(id, run, now)? {
            return Ok(Err(gates::used(id, &format!("run {by}"))));
        }
        Ok(approvals::consume(&self.installation.store, present, run, now)?)
    }

    /// Draws the decision and writes it down. Where a gate is missing the run ends here and nothing was made.
    pub(crate) fn decide(&mut self, gates: &Gates) -> Result<(), Stop> {
        // Of what is part of herma itself the gates may not have needed it.
        if let Some(engine) = self.installation.engines.get(&self.plan.engine)
            && engine.built_in()
        {
            self.facts.engine_digest = engine.digest().ok();
        }
        let terms = &self.contract.terms;
        let decision = Decision::draw(
            &Question {
                run_id: self.plan.run_id,
                contract_id: &terms.id,
                contract_digest: self.plan.contract_digest,
                engine: &self.plan.engine,
                stage: terms.stage,
                mutation_scope: terms.mutation_scope(),
                risk: terms.risk,
                purpose: self.occasion.purpose,
                admissions: gates.admissions.clone(),
            },
            &gates.findings,
        );
        self.facts.gate_blockers = decision.missing_gates.iter().map(MissingGate::record).collect();
        self.facts.save(&self.dirs.facts())?;
        self.record(EligibilityDecided {
            decision_id: decision.decision_id.clone(),
            engine_digest: self.facts.engine_digest,
            selected_engine: decision.selected_engine.clone(),
            missing_gates: decision.missing_gates.iter().map(|missing| missing.gate).collect(),
        })?;
        let told =
            self.events.redactor().redact_record(&decision).map_err(|e| Stop::Internal(e.to_string()))?;
        self.bundle.write(layout::DECISION, &pretty(&told)?)?;
        if decision.is_eligible() {
            return Ok(());
        }
        if let ApprovalSeen::Absent(BlockerRecord { blocker: Blocker::ApprovalDenied, detail, .. }) =
            &gates.approval
        {
            self.record(ApprovalDenied { reason: detail.clone() })?;
        }
        for missing in &decision.missing_gates {
            self.record(EngineGateBlocked {
                engine: self.plan.engine.clone(),
                gate: missing.gate,
                reason: missing.reason.clone(),
                mutation_scope: decision.allowed_mutation_scope,
                engine_started: false,
            })?;
        }
        Err(Stop::Blocked)
    }
}
