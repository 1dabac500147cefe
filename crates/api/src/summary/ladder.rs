//! The parts of the summary that follow from proofs and comparisons.

use std::collections::BTreeMap;

use herma_core::admission::AdmissionId;
use herma_core::contract::ContractId;
use herma_core::engine::EngineName;
use herma_core::proof::Proof;
use herma_core::reference::Reference;
use herma_core::report::Admission;
use herma_core::visible::visible_line;
use herma_core::{Report, Stage};
use herma_engines::Engine;
use herma_evidence::layout;
use herma_home::EnabledEngines;
use herma_ladder::{ACCEPTED, Comparisons, accepted_runs};
use herma_trust::ProofStatus;

use crate::output::{
    BlockedLane, CandidateDefault, Field, LadderRow, LadderStatus, Repeatability, RepeatabilityStatus,
};
use crate::records::Records;

/// Every stage of every engine, and the proofs that hold.
pub(super) struct Ladder<'a> {
    records: &'a Records<'a>,
    pub(super) rows: Vec<LadderRow>,
    proofs: BTreeMap<(usize, Stage), Proof>,
}

impl<'a> Ladder<'a> {
    pub(super) fn of(records: &'a Records<'a>) -> Self {
        let mut ladder = Self { records, rows: Vec::new(), proofs: BTreeMap::new() };
        for (at, name) in records.installation.engines().names().into_iter().enumerate() {
            for stage in Stage::ALL {
                ladder.add(at, &name, stage);
            }
        }
        ladder
    }

    fn add(&mut self, at: usize, name: &EngineName, stage: Stage) {
        let Some(engine) = self.records.installation.engines().get(name) else { return };
        let (status, reason, evidence_paths) = match self.records.installation.proofs().status(engine, stage)
        {
            ProofStatus::BuiltIn => (LadderStatus::BuiltIn, "part of herma itself".to_owned(), Vec::new()),
            ProofStatus::Proven(proof) => {
                let record = proof.record;
                let bundles = record.bundles.iter().filter_map(|b| report_of(b.run_id));
                let mut paths: Vec<Reference> = bundles.collect();
                paths.sort();
                paths.dedup();
                paths.insert(0, Reference::Proof(name.clone(), stage));
                let reason = format!("proven at {}", record.proven_at);
                self.proofs.insert((at, stage), record);
                (LadderStatus::Proven, reason, paths)
            }
            ProofStatus::Stale(why) | ProofStatus::Broken(why) => {
                (LadderStatus::Blocked, visible_line(&why), Vec::new())
            }
            ProofStatus::Missing => (LadderStatus::Unproven, "it was never proven".to_owned(), Vec::new()),
        };
        self.rows.push(LadderRow { engine: name.clone(), stage, status, reason, evidence_paths });
    }

    /// The first engine that is a candidate. One whose record does not verify any more hides no other.
    pub(super) fn candidate(&self) -> Field<CandidateDefault> {
        let found = self.proofs.values().find(|proof| proof.stage == Stage::CandidateDefault);
        if let Some(Proof { engine, candidate: Some(candidate), .. }) = found {
            return match candidate.comparison.parse() {
                Ok(id) => Field::Known(CandidateDefault {
                    engine: engine.clone(),
                    eligible: candidate.eligible,
                    comparison_path: Reference::Comparison(id),
                }),
                Err(_) => Field::blocked("the proof of stage 6 names no comparison"),
            };
        }
        let broken =
            |row: &&LadderRow| row.stage == Stage::CandidateDefault && row.status == LadderStatus::Blocked;
        match self.rows.iter().find(broken) {
            Some(row) => Field::blocked(format!("stage 6 of {}: {}", row.engine, row.reason)),
            None => Field::not_recorded("no engine has been judged as a candidate"),
        }
    }

    /// The accepted runs of the candidate, or of the engine that has most.
    pub(super) fn repeatability(&self) -> Field<Repeatability> {
        let candidate = self.candidate().known().map(|candidate| candidate.engine.clone());
        let names = match candidate {
            Some(engine) => vec![engine],
            None => self.records.installation.engines().names(),
        };
        let mut best: Option<(EngineName, BTreeMap<ContractId, Report>)> = None;
        for name in names {
            let Some(digest) = self.records.engine_digest(&name) else { continue };
            match accepted_runs(self.records.installation, &name, digest) {
                Err(why) => return Field::blocked(why.to_string()),
                Ok(accepted) if best.as_ref().is_none_or(|(_, most)| accepted.len() > most.len()) => {
                    best = Some((name, accepted));
                }
                Ok(_) => {}
            }
        }
        match best.filter(|(_, accepted)| !accepted.is_empty()) {
            None => Field::not_recorded("no stage 5 run was accepted"),
            Some((engine, accepted)) => {
                let eligible = accepted.len() >= ACCEPTED;
                let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
                Field::Known(Repeatability {
                    engine,
                    required: count(ACCEPTED),
                    count: count(accepted.len()),
                    status: if eligible { RepeatabilityStatus::Met } else { RepeatabilityStatus::NotMet },
                    eligible,
                    evidence_paths: accepted.values().filter_map(|run| report_of(run.run_id)).collect(),
                })
            }
        }
    }

    /// Engines that cannot run work, each with the first reason.
    pub(super) fn blocked_lanes(&self) -> Vec<BlockedLane> {
        let installation = self.records.installation;
        let names = installation.engines().names();
        let blocked = |lane: &EngineName| {
            let engine = installation.engines().get(lane)?;
            self.rationale(lane, engine).map(|rationale| BlockedLane { lane: lane.clone(), rationale })
        };
        names.iter().filter_map(blocked).collect()
    }

    fn rationale(&self, lane: &EngineName, engine: &dyn Engine) -> Option<String> {
        let installation = self.records.installation;
        if !engine.built_in() {
            let status = self.records.admission(&AdmissionId::Engine(lane.clone())).status;
            if status != Admission::Admitted {
                return Some(format!("its admission is {}", status.as_str()));
            }
            if !EnabledEngines::of(&installation.home).is_on(lane) {
                return Some("it is not enabled".to_owned());
            }
        }
        let (stage, _) = installation.proofs().first_unproven(engine, Stage::Fixture)?;
        Some(format!("stage {stage} is not proven"))
    }

    /// The newest comparison.
    pub(super) fn comparison(&self) -> Field<Reference> {
        match Comparisons::of(self.records.installation).latest() {
            Ok(Some(comparison)) => Field::Known(Reference::Comparison(comparison.record.id)),
            Ok(None) => Field::not_recorded("no comparison was made"),
            Err(why) => Field::blocked(visible_line(&why.to_string())),
        }
    }

    /// The reports of the failure cases behind the proofs.
    pub(super) fn failure_closure(&self) -> Vec<Reference> {
        let rows = self.proofs.values().flat_map(|proof| &proof.rows);
        let failures = rows.filter(|row| row.held && row.expected_blocker.is_some());
        let mut paths: Vec<Reference> = failures.filter_map(|row| report_of(row.run_id?)).collect();
        paths.sort();
        paths.dedup();
        paths
    }

    /// The proof of stage 5 of the first engine that has one.
    pub(super) fn stage5_proof(&self) -> Field<Reference> {
        let at_five = |status| {
            let row = |row: &&LadderRow| row.stage == Stage::OwnedRepo && row.status == status;
            self.rows.iter().find(row)
        };
        match (at_five(LadderStatus::Proven), at_five(LadderStatus::Blocked)) {
            (Some(row), _) => Field::Known(Reference::Proof(row.engine.clone(), row.stage)),
            (None, Some(row)) => Field::blocked(format!("stage 5 of {}: {}", row.engine, row.reason)),
            (None, None) => Field::not_recorded("no engine has proven stage 5"),
        }
    }
}

/// The reference to the report of a run.
pub(super) fn report_of(run: herma_core::RunId) -> Option<Reference> {
    Reference::bundle(run, layout::REPORT)
}
