//! Draws the decision from what the gates found, and uses the approval.

use herma_evidence::layout;
use herma_model::blocker::{Blocker, BlockerRecord};
use herma_model::decision::{MissingGate, Question};
use herma_model::gate::{Finding, Gate};
use herma_model::report::ApprovalStatus;
use herma_model::{Decision, EventType};
use serde_json::json;

use crate::approvals;
use crate::error::Stop;
use crate::gates::{ApprovalSeen, Gates};
use crate::run::{Run, pretty};

impl Run<'_> {
    /// Takes down what the gates found, for the report.
    pub(crate) fn note_gates(&mut self, gates: &Gates) {
        self.readings = gates.engine_readings;
        let facts = &mut self.facts;
        facts.engine_digest = gates.engine_digest;
        facts.walls.clone_from(&gates.walls);
        let status = |kind: &str| gates.admissions.iter().find(|seen| seen.kind == kind).map(|seen| seen.status);
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
        self.record(
            EventType::ApprovalGranted,
            json!({ "approval_id": id, "approver": ruling.map(|r| &r.approver), "at": ruling.map(|r| r.at) }),
        )?;
        let (store, now) = (&self.installation.store, self.installation.clock.now());
        match approvals::consume(store, present, self.plan.run_id, now)? {
            Ok(()) => {
                self.facts.approval_status = Some(ApprovalStatus::Consumed);
                self.facts.save(&self.dirs.facts())?;
                self.record(EventType::ApprovalConsumed, json!({ "approval_id": id }))
            }
            Err(lost) => {
                gates.approval = ApprovalSeen::Absent(lost.clone());
                self.facts.approval_status = Some(gates.approval.status());
                gates.findings.insert(Gate::ApprovalPresent, Finding::Missing(lost));
                Ok(())
            }
        }
    }

    /// Draws the decision and writes it down. Where a gate is missing the run ends here and nothing was made.
    pub(crate) fn decide(&mut self, gates: &Gates) -> Result<(), Stop> {
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
        self.record(
            EventType::EligibilityDecided,
            json!({
                "decision_id": decision.decision_id,
                "engine_digest": self.facts.engine_digest,
                "selected_engine": decision.selected_engine,
                "missing_gates": decision.missing_gates.iter().map(|m| m.gate).collect::<Vec<_>>(),
            }),
        )?;
        self.bundle.write(layout::DECISION, &pretty(&decision)?)?;
        if decision.is_eligible() {
            return Ok(());
        }
        if let ApprovalSeen::Absent(BlockerRecord { blocker: Blocker::ApprovalDenied, detail, .. }) = &gates.approval {
            self.record(EventType::ApprovalDenied, json!({ "reason": detail }))?;
        }
        for missing in &decision.missing_gates {
            self.record(
                EventType::EngineGateBlocked,
                json!({
                    "engine": self.plan.engine,
                    "gate": missing.gate,
                    "reason": missing.reason,
                    "mutation_scope": decision.allowed_mutation_scope,
                    "engine_started": false,
                }),
            )?;
        }
        Err(Stop::Blocked)
    }

    /// What was admitted is what ran: a program that was swapped after the gates looked at it is found here.
    pub(crate) fn is_still_the_admitted_engine(&mut self) -> Result<(), Stop> {
        let Some(engine) = self.installation.engines.get(&self.plan.engine) else { return Ok(()) };
        let same = engine.digest().ok() == self.facts.engine_digest && engine.readings() == self.readings;
        if engine.built_in() || same {
            return Ok(());
        }
        let swapped = "the program was changed while the run was under way, so that nobody knows what ran";
        self.facts.gate_blockers.push(Blocker::EngineDigestMismatch.because(swapped));
        Err(Stop::Blocked)
    }
}
