//! The parts of the summary that follow from runs.

use std::collections::BTreeSet;

use herma_core::decision::Purpose;
use herma_core::outcome::OutcomeWord;
use herma_core::reference::Reference;
use herma_core::report::LandedIn;
use herma_core::store::{RunSummary, StoreError};
use herma_core::{Stage, Status};
use herma_trust::OutcomeStatus;

use super::ladder::report_of;
use crate::output::{Field, GovernedExecution, Held, LandedBranch, LandedOutcome, TargetReadOnly};
use crate::records::{Records, VerifiedRun};

/// The runs of the store, newest first.
pub(super) struct Runs<'a> {
    records: &'a Records<'a>,
    runs: Vec<RunSummary>,
}

impl<'a> Runs<'a> {
    pub(super) fn of(records: &'a Records<'a>) -> Result<Self, StoreError> {
        Ok(Self { records, runs: records.runs()? })
    }

    fn passed(&self, from: Stage) -> impl Iterator<Item = &RunSummary> {
        self.runs.iter().filter(move |run| run.status == Some(Status::Pass) && run.stage >= from)
    }

    /// The report of the newest passing stage 5 run.
    pub(super) fn stage5_report(&self) -> Field<Reference> {
        let newest = self.passed(Stage::OwnedRepo).find(|run| run.stage == Stage::OwnedRepo);
        match newest.map(|run| (self.records.run(run.run_id), report_of(run.run_id))) {
            None => Field::not_recorded("no stage 5 run passed"),
            Some((Err(why), _)) => Field::blocked(why),
            Some((Ok(_), Some(report))) => Field::Known(report),
            Some((Ok(_), None)) => Field::blocked("its report has no name"),
        }
    }

    /// The newest passing run on a repository that says whether the repository changed.
    pub(super) fn target_read_only(&self) -> Field<TargetReadOnly> {
        for run in self.passed(Stage::CopiedRepo) {
            let report = match self.records.run(run.run_id) {
                Err(why) => return Field::blocked(why),
                Ok(VerifiedRun { report, .. }) => report,
            };
            if let (Some(false), Some(true), Some(proof_path)) =
                (report.source_mutated, report.target_clean_end, report_of(run.run_id))
            {
                return Field::Known(TargetReadOnly { status: Held::Held, proof_path });
            }
        }
        Field::not_recorded("no run on a repository passed")
    }

    /// Whether the newest run of any contract on a repository changed more of it than herma's own branch.
    pub(super) fn mutation(&self) -> Field<bool> {
        let (mut seen, mut mutated) = (BTreeSet::new(), None);
        let finished = |run: &&RunSummary| run.status.is_some() && run.stage >= Stage::CopiedRepo;
        for run in self.runs.iter().filter(finished) {
            if seen.contains(&run.contract_id) {
                continue;
            }
            let VerifiedRun { report, purpose } = match self.records.run(run.run_id) {
                Err(why) => return Field::blocked(why),
                Ok(verified) => verified,
            };
            if let (Purpose::Work, Some(changed)) = (purpose, report.source_mutated) {
                seen.insert(&run.contract_id);
                mutated = Some(mutated.unwrap_or(false) || changed);
            }
        }
        mutated.map_or_else(|| Field::not_recorded("no work was done on a repository"), Field::Known)
    }

    /// The branches that work landed in targets, the oldest first. A bundle that does not verify names none.
    pub(super) fn landed_branches(&self) -> Vec<LandedBranch> {
        let landed = |run: &RunSummary| {
            let VerifiedRun { report, purpose } = self.records.run(run.run_id).ok()?;
            let landing = report.landing.as_ref()?;
            if purpose != Purpose::Work || !landing.landed || landing.repository != LandedIn::Target {
                return None;
            }
            let outcome = match self.records.outcome(&report) {
                Some(OutcomeStatus::Given(given)) => match given.record.outcome {
                    OutcomeWord::Accepted => LandedOutcome::Accepted,
                    OutcomeWord::Rejected => LandedOutcome::Rejected,
                },
                Some(OutcomeStatus::Pending(_)) => LandedOutcome::Pending,
                Some(OutcomeStatus::Missing(_)) => LandedOutcome::Missing,
                _ => LandedOutcome::Void,
            };
            Some(LandedBranch {
                branch: landing.reference.clone(),
                report_path: report_of(run.run_id)?,
                outcome,
            })
        };
        let mut branches: Vec<LandedBranch> = self.passed(Stage::OwnedRepo).filter_map(landed).collect();
        branches.sort_by(|a, b| a.report_path.cmp(&b.report_path));
        branches
    }

    /// The newest run that passed with an approval.
    pub(super) fn governed_execution(&self) -> Result<Field<GovernedExecution>, StoreError> {
        let approvals = self.records.approvals()?;
        let work = approvals.iter().filter(|approval| approval.request.binding.purpose == Purpose::Work);
        for approval in work {
            let Some(run) = self.records.used_by(approval) else { continue };
            let is_pass = |row: &&RunSummary| row.run_id == run && row.status == Some(Status::Pass);
            if !self.runs.iter().any(|row| is_pass(&row)) {
                continue;
            }
            let report = match self.records.run(run) {
                Err(why) => return Ok(Field::blocked(why)),
                Ok(VerifiedRun { report, .. }) => report,
            };
            if let Some(why) = self.records.grant_problem(approval) {
                return Ok(Field::blocked(format!("approval {}: {why}", approval.request.id)));
            }
            if report.approval_id != Some(approval.request.id) {
                return Ok(Field::blocked(format!("run {run} names another approval")));
            }
            let Some(pass_report_path) = report_of(run) else { continue };
            let proof = Reference::Proof(report.engine.clone(), report.stage);
            return Ok(Field::Known(GovernedExecution {
                approval_consumed: true,
                approval_path: Reference::Approval(approval.request.id),
                pass_report_path,
                proof_path: self.records.check(&proof).is_ok().then_some(proof),
            }));
        }
        Ok(Field::not_recorded("no run passed with an approval"))
    }
}
