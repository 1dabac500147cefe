//! Proves a stage: its pass case, its failure classes, and the same contract on `fake`, in one invocation.

use std::path::PathBuf;

use herma_core::engine::EngineName;
use herma_core::proof::{BundleRef, Compared, Criterion, Proof, ProofRow, Standing as Against};
use herma_core::report::OutcomeState;
use herma_core::units::Span;
use herma_core::{Blocker, Digest, Report, Stage, Status};
use herma_engines::Engine;
use herma_evidence::signed;
use herma_harness::{Finished, Installation, Progress, Unwatched, run_proof};
use herma_trust::{OutcomeError, ProofStatus, verify_bundle};

use crate::cases::{Case, World, cases};
use crate::compare::{Evidence, compare_deciding};
use crate::concurrent_writer::ConcurrentWriter;
use crate::coverage::coverage;
use crate::error::ProveError;
use crate::people::People;
use crate::proof_site::ProofSite;
use crate::record::{applicable, blank, bundle_ref, describe};

/// Proves a stage of an engine. `watch` is called before each case: its number, the total, its name.
///
/// A proof that could be carried out is kept, also one that failed: then it takes the place of an earlier one.
pub fn prove(
    installation: &Installation,
    engine: &EngineName,
    stage: Stage,
    people: &People<'_>,
    watch: &dyn Fn(usize, usize, &str),
) -> Result<Proof, ProveError> {
    let proofs = installation.proofs();
    let blocked = |digest, reasons| Ok(blank(installation, engine, stage, digest, Status::Blocked, reasons));
    let Some(adapter) = installation.engines().get(engine) else {
        let known: Vec<String> = installation.engines().names().iter().map(ToString::to_string).collect();
        return blocked(None, vec![format!("herma has no engine `{engine}`; it has: {}", known.join(", "))]);
    };
    let digest = match adapter.digest() {
        Ok(digest) => digest,
        Err(error) => return blocked(None, vec![error.to_string()]),
    };
    if let Some((rung, status)) = stage.before().and_then(|below| proofs.first_unproven(adapter, below)) {
        let why = match status.why_lost() {
            Some(why) => format!("stage {rung} is not proven any more: {why}"),
            None => format!("stage {rung} is not proven"),
        };
        return blocked(Some(digest), vec![why]);
    }
    if stage == Stage::CandidateDefault {
        return crate::candidate::judge(installation, adapter, digest);
    }
    if stage.needs_approval() && people.approver.is_none() {
        return Err(ProveError::NoApprover);
    }
    if let Some(why) = people.conflict(installation, stage) {
        return blocked(Some(digest), vec![why]);
    }
    let _one_at_a_time = crate::proof_site::lock_and_sweep(installation)?;
    let proving = Proving { installation, stage, people, asks: adapter.asks().is_some() };
    let proof = proving.carry_out(adapter, digest, watch)?;
    if proof.status != Status::Blocked {
        proofs.keep(proof.clone()).map_err(|e| ProveError::new("be kept", e))?;
    }
    Ok(proof)
}

struct Proving<'a> {
    installation: &'a Installation,
    stage: Stage,
    people: &'a People<'a>,
    /// Whether the engine asks a model.
    asks: bool,
}

/// The result of one case.
struct CaseResult {
    row: ProofRow,
    report: Report,
    bundle: BundleRef,
    dir: PathBuf,
}

impl Proving<'_> {
    fn carry_out(
        &self,
        engine: &dyn Engine,
        digest: Digest,
        watch: &dyn Fn(usize, usize, &str),
    ) -> Result<Proof, ProveError> {
        let (cases, name) = (cases(self.stage), engine.name());
        let [pass, failures @ ..] = cases.as_slice() else { return Err(ProveError::NoFixture) };
        let (not_applicable, failures) = applicable(engine, failures);
        let total = failures.len() + 2;
        // Both lanes use the same site, so that they have the same contract.
        let same_site = self.site(pass)?;
        watch(1, total, "baseline on fake");
        let baseline = self.attempt(pass, &EngineName::fake(), &same_site)?;
        watch(2, total, pass.class());
        let mut tried = vec![self.attempt(pass, &name, &same_site)?];
        drop(same_site);
        // Where nothing passes, the failures prove nothing either.
        let failures = if tried[0].row.held { failures } else { Vec::new() };
        for (n, case) in failures.iter().enumerate() {
            watch(n + 3, total, case.class());
            tried.push(self.attempt(case, &name, &self.site(case)?)?);
        }
        // A proof is about one program: runs of another one that replaced it meanwhile do not count.
        for other in tried.iter_mut().filter(|t| t.report.engine_digest != Some(digest)) {
            other.row.held = false;
            other.row.detail.push_str(", and the engine's program was another by then");
        }
        let comparison = self.compare(&tried, &baseline);
        let mut reasons: Vec<String> = tried
            .iter()
            .filter(|t| !t.row.held)
            .map(|t| format!("{}: {}", t.row.case, t.row.detail))
            .collect();
        reasons
            .extend((!baseline.row.held).then(|| format!("the baseline on fake: {}", baseline.row.detail)));
        reasons.extend(
            comparison
                .iter()
                .filter(|compared| !matches!(compared.standing, Against::Matches | Against::Beats))
                .map(|compared| format!("{}: {}", compared.criterion.as_str(), compared.detail)),
        );
        let pass_was_blocked = tried[0].report.status == Status::Blocked;
        let status = match reasons.is_empty() {
            true => Status::Pass,
            false if pass_was_blocked => Status::Blocked,
            false => Status::Fail,
        };
        let rows: Vec<ProofRow> = tried.iter().map(|t| t.row.clone()).collect();
        let mut bundles: Vec<BundleRef> = tried.into_iter().map(|t| t.bundle).collect();
        let baseline = Some(BundleRef { case: "baseline".to_owned(), ..baseline.bundle });
        bundles.extend(baseline.clone());
        Ok(Proof {
            prior: self.prior(engine),
            coverage: coverage(self.stage, &rows, &not_applicable),
            rows,
            not_applicable,
            baseline,
            comparison,
            bundles,
            ..blank(self.installation, &name, self.stage, Some(digest), status, reasons)
        })
    }

    fn site(&self, case: &Case) -> Result<ProofSite<'_>, ProveError> {
        ProofSite::make(self.installation, self.stage, case.world, self.people, self.asks)
    }

    /// Runs one case and checks that it ended as it must.
    fn attempt(
        &self,
        case: &Case,
        engine: &EngineName,
        site: &ProofSite<'_>,
    ) -> Result<CaseResult, ProveError> {
        self.check_cancelled()?;
        let order = site.order(case, self.stage, engine, self.people)?;
        let writer = ConcurrentWriter::new(&self.installation.home, self.stage, site.repository());
        let watch: &dyn Progress = if case.world == World::ChangedMeanwhile { &writer } else { &Unwatched };
        let no_time = (case.world == World::NoOutcome).then_some(Span(0));
        let finished = run_proof(self.installation, &order, no_time, watch).map_err(ProveError::Run)?;
        self.check_cancelled()?;
        let judged = self.judge(case, &finished).and_then(|detail| self.settle(case, &finished, detail));
        let (held, detail) = match judged {
            Ok(detail) => (true, detail),
            Err(detail) => (false, detail),
        };
        let row = ProofRow {
            case: case.class().to_owned(),
            expected_status: case.required.blocker.map_or(Status::Pass, Blocker::status),
            expected_blocker: case.required.blocker,
            held,
            detail,
            run_id: Some(finished.report.run_id),
        };
        let bundle = bundle_ref(case, &finished)?;
        Ok(CaseResult { row, bundle, report: finished.report, dir: finished.bundle })
    }

    /// Stops the proof once herma was cancelled.
    fn check_cancelled(&self) -> Result<(), ProveError> {
        self.installation.cancellation.signal().map_or(Ok(()), |signal| Err(ProveError::Interrupted(signal)))
    }

    /// Whether a run ended as its case must: status, blocker, and a bundle that verifies.
    fn judge(&self, case: &Case, finished: &Finished) -> Result<String, String> {
        let report = &finished.report;
        if let Some(error) = &finished.internal_error {
            return Err(format!("herma itself failed: {error}"));
        }
        let ended = describe(report);
        // A run that lands without an outcome is a pass; `settle` checks that it proves nothing.
        let blocker = case.required.blocker.filter(|blocker| *blocker != Blocker::MissingOutcome);
        let right = match blocker {
            None => report.status == Status::Pass,
            Some(blocker) => {
                report.status == blocker.status() && report.blockers.iter().any(|b| b.blocker == blocker)
            }
        };
        if !right {
            return Err(format!("it ended as {ended}"));
        }
        if report.engine_started && !self.stage.starts_engine() {
            return Err(format!("the engine was started at stage {}", self.stage));
        }
        if report.source_mutated == Some(true) && case.world != World::ChangedMeanwhile {
            return Err("the target was changed".to_owned());
        }
        if report.status != Status::Pass && report.landing.as_ref().is_some_and(|landing| landing.landed) {
            return Err("it is not a pass, and something landed".to_owned());
        }
        let checks = verify_bundle(&finished.bundle, &self.installation.trust(), None, None);
        match checks.failed().next() {
            Some(failed) => {
                Err(format!("its bundle does not hold: {}: {}", failed.name.as_str(), failed.detail))
            }
            None => Ok(ended),
        }
    }

    /// Gives the outcome where the stage needs one, or lets its time pass.
    fn settle(&self, case: &Case, finished: &Finished, detail: String) -> Result<String, String> {
        let (report, approver) = (&finished.report, self.people.approver);
        if report.outcome != OutcomeState::Pending {
            return Ok(detail);
        }
        let approver = approver.ok_or("nobody can speak its outcome")?;
        let reason = format!("proof of stage {}", self.stage);
        let accepted = self.installation.outcomes().accept(report.run_id, &reason, approver);
        match (case.world, accepted) {
            (World::NoOutcome, Err(OutcomeError::TooLate(..))) => {
                self.installation
                    .outcomes()
                    .reject(report.run_id, &reason, approver)
                    .map_err(|e| e.to_string())?;
                Ok("blocked: missing_outcome: nobody spoke in time, so it could not be accepted".to_owned())
            }
            (World::NoOutcome, _) => Err("it could be accepted although its time was over".to_owned()),
            (_, Ok(_)) => Ok(format!("{detail}, accepted")),
            (_, Err(error)) => Err(error.to_string()),
        }
    }

    /// The pass case against the baseline's, and the failure classes against their expected blockers.
    fn compare(&self, tried: &[CaseResult], baseline: &CaseResult) -> Vec<Compared> {
        let trust = self.installation.trust();
        let read = |t: &CaseResult| Evidence::read(&t.dir, &trust);
        let (Some(pass), failures) = (tried.first(), tried.get(1..).unwrap_or_default()) else {
            return Vec::new();
        };
        let mut compared = compare_deciding(&[read(pass)], &[read(baseline)]);
        compared.retain(|compared| compared.criterion != Criterion::FailureClosure);
        let closed = failures.iter().filter(|t| t.row.held).count();
        compared.push(Compared {
            criterion: Criterion::FailureClosure,
            standing: match failures.len() {
                0 => Against::Blocked,
                all if all == closed => Against::Matches,
                _ => Against::FallsBehind,
            },
            detail: format!("{closed} of {} failure tests ended with the expected error", failures.len()),
        });
        compared.sort_by_key(|compared| compared.criterion);
        compared
    }

    fn prior(&self, engine: &dyn Engine) -> Option<Digest> {
        match self.installation.proofs().status(engine, self.stage.before()?) {
            ProofStatus::Proven(proof) => signed::digest(&proof.record).ok(),
            _ => None,
        }
    }
}
