//! Proves a stage: its pass case, its failure classes, and the same contract on `fake`, in one invocation.

use std::path::PathBuf;

use herma_core::cancellation::EndSignal;
use herma_core::decision::Purpose;
use herma_core::engine::EngineName;
use herma_core::proof::{BundleRef, Compared, Criterion, Proof, ProofRow, Standing as Against};
use herma_core::report::OutcomeState;
use herma_core::units::Span;
use herma_core::{Blocker, Digest, Report, Stage, Status};
use herma_engines::Engine;
use herma_evidence::signed;

use super::cases::{Case, World, cases};
use super::coverage::coverage;
use super::ground::Ground;
use super::meddler::Meddler;
use super::proofs::{Proofs, Standing};
use super::record::{applicable, blank, bundle_ref, describe};
use crate::approvers::Approver;
use crate::ask::AskError;
use crate::bundle_check::verify_bundle;
use crate::compare::{Evidence, compare_deciding};
use crate::error::OrderError;
use crate::installation::Installation;
use crate::order::Occasion;
use crate::outcome::{OutcomeError, accept, reject};
use crate::progress::{Progress, Unwatched};
use crate::run::{Finished, run_on};

/// The people that a proof needs from stage 4 on.
#[derive(Clone, Copy, Default)]
pub struct People<'a> {
    /// Who grants the approvals of the proving runs, and speaks their outcomes.
    pub approver: Option<&'a Approver>,
    /// Who asks for them, where separation of duties wants another person for that.
    pub asker: Option<&'a Approver>,
}

impl People<'_> {
    /// Why these people cannot approve anything together: seen before the first run, not in the middle of a proof.
    fn conflict(&self, installation: &Installation, stage: Stage) -> Option<String> {
        if !stage.needs_approval() || !installation.operator.separation_of_duties {
            return None;
        }
        match (self.approver, self.asker) {
            (_, None) => {
                Some("separation_of_duties is on: name who asks for the approvals with --asker".to_owned())
            }
            (Some(approver), Some(asker)) if approver.name() == asker.name() => Some(format!(
                "separation_of_duties is on: `{}` asks for the approvals and cannot grant them as well",
                asker.name()
            )),
            _ => None,
        }
    }
}

/// A proof could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// Stage 4 and 5 need a person.
    #[error("from stage 4 on every run needs an approval: name an approver")]
    NoApprover,
    /// The fixture is not there.
    #[error("the fixture of the proofs is not built in")]
    NoFixture,
    /// herma was told to end. A proof that was not carried out is not kept, so that an earlier one stands.
    #[error("the proof was not carried out: herma was told to end by {0}")]
    Interrupted(EndSignal),
    /// A run of it could not be started.
    #[error("the proof could not start a run: {0}")]
    Run(OrderError),
    /// An approval of it could not be asked for, or ruled on.
    #[error("the proof could not get an approval: {0}")]
    Ask(AskError),
    /// Something could not be done.
    #[error("the proof could not {doing}: {cause}")]
    Failed {
        /// What.
        doing: &'static str,
        /// Why.
        cause: String,
    },
}

impl ProveError {
    #[allow(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
    pub(crate) fn new(doing: &'static str, cause: impl ToString) -> Self {
        Self::Failed { doing, cause: cause.to_string() }
    }
}

/// Proves a stage of an engine. `watch` hears each case before it is run: its number, how many there are, its name.
///
/// A proof that could be carried out is kept, also one that failed: then it takes the place of an earlier one.
pub fn prove(
    installation: &Installation,
    engine: &EngineName,
    stage: Stage,
    people: &People<'_>,
    watch: &dyn Fn(usize, usize, &str),
) -> Result<Proof, ProveError> {
    let proofs = Proofs::of(installation);
    let blocked = |digest, reasons| Ok(blank(installation, engine, stage, digest, Status::Blocked, reasons));
    let Some(adapter) = installation.engines.get(engine) else {
        let known: Vec<String> = installation.engines.names().iter().map(ToString::to_string).collect();
        return blocked(None, vec![format!("herma has no engine `{engine}`; it has: {}", known.join(", "))]);
    };
    let digest = match adapter.digest() {
        Ok(digest) => digest,
        Err(error) => return blocked(None, vec![error.to_string()]),
    };
    if let Some((rung, standing)) = stage.before().and_then(|below| proofs.first_unproven(adapter, below)) {
        let why = match standing.why_lost() {
            Some(why) => format!("stage {rung} is not proven any more: {why}"),
            None => format!("stage {rung} is not proven"),
        };
        return blocked(Some(digest), vec![why]);
    }
    if stage == Stage::CandidateDefault {
        return super::candidate::judge(installation, adapter, digest);
    }
    if stage.needs_approval() && people.approver.is_none() {
        return Err(ProveError::NoApprover);
    }
    if let Some(why) = people.conflict(installation, stage) {
        return blocked(Some(digest), vec![why]);
    }
    let _one_at_a_time = super::ground::lock_and_sweep(installation)?;
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

/// What came of one case.
struct Tried {
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
        let [pass, failures @ ..] = cases else { return Err(ProveError::NoFixture) };
        let (not_applicable, failures) = applicable(engine, failures);
        let total = failures.len() + 2;
        // Both lanes work on the same ground, so that they have the very same contract.
        let same_ground = self.ground(pass)?;
        watch(1, total, "baseline on fake");
        let baseline = self.attempt(pass, &EngineName::fake(), &same_ground)?;
        watch(2, total, pass.class);
        let mut tried = vec![self.attempt(pass, &name, &same_ground)?];
        drop(same_ground);
        // Where nothing passes, the failures prove nothing either.
        let failures = if tried[0].row.held { failures } else { Vec::new() };
        for (n, case) in failures.iter().enumerate() {
            watch(n + 3, total, case.class);
            tried.push(self.attempt(case, &name, &self.ground(case)?)?);
        }
        // A proof is of one program: what another did in its place meanwhile is not the engine's.
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

    fn ground(&self, case: &Case) -> Result<Ground<'_>, ProveError> {
        Ground::make(self.installation, self.stage, case.world, self.people, self.asks)
    }

    /// Runs one case and looks whether it ended as it must.
    fn attempt(&self, case: &Case, engine: &EngineName, ground: &Ground<'_>) -> Result<Tried, ProveError> {
        self.check_cancelled()?;
        let order = ground.order(case, self.stage, engine, self.people)?;
        let meddler = Meddler::new(&self.installation.home, self.stage, ground.repository());
        let watch: &dyn Progress = if case.world == World::ChangedMeanwhile { &meddler } else { &Unwatched };
        let no_time = (case.world == World::NoOutcome).then_some(Span(0));
        let occasion = Occasion { purpose: Purpose::Proof, outcome_within: no_time, child_of: None };
        let finished = run_on(self.installation, &order, occasion, watch).map_err(ProveError::Run)?;
        self.check_cancelled()?;
        let judged = self.judge(case, &finished).and_then(|detail| self.settle(case, &finished, detail));
        let (held, detail) = match judged {
            Ok(detail) => (true, detail),
            Err(detail) => (false, detail),
        };
        let row = ProofRow {
            case: case.class.to_owned(),
            expected_status: case.blocker.map_or(Status::Pass, Blocker::status),
            expected_blocker: case.blocker,
            held,
            detail,
            run_id: Some(finished.report.run_id),
        };
        let bundle = bundle_ref(case, &finished)?;
        Ok(Tried { row, bundle, report: finished.report, dir: finished.bundle })
    }

    /// Nothing more is tried once herma was told to end.
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
        // What lands without an outcome is a pass of the run; that it proves nothing is seen afterwards.
        let blocker = case.blocker.filter(|blocker| *blocker != Blocker::MissingOutcome);
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

    /// Speaks the outcome where the stage asks for one, or lets it be missed.
    fn settle(&self, case: &Case, finished: &Finished, detail: String) -> Result<String, String> {
        let (report, approver) = (&finished.report, self.people.approver);
        if report.outcome != OutcomeState::Pending {
            return Ok(detail);
        }
        let approver = approver.ok_or("nobody can speak its outcome")?;
        let reason = format!("proof of stage {}", self.stage);
        let accepted = accept(self.installation, report.run_id, &reason, approver);
        match (case.world, accepted) {
            (World::NoOutcome, Err(OutcomeError::TooLate(..))) => {
                reject(self.installation, report.run_id, &reason, approver).map_err(|e| e.to_string())?;
                Ok("blocked: missing_outcome: nobody spoke in time, so it could not be accepted".to_owned())
            }
            (World::NoOutcome, _) => Err("it could be accepted although its time was over".to_owned()),
            (_, Ok(_)) => Ok(format!("{detail}, accepted")),
            (_, Err(error)) => Err(error.to_string()),
        }
    }

    /// The pass case against the baseline's, and the failure classes against what they must be closed as.
    fn compare(&self, tried: &[Tried], baseline: &Tried) -> Vec<Compared> {
        let trust = self.installation.trust();
        let read = |t: &Tried| Evidence::read(&t.dir, &trust);
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
            detail: format!("{closed} of {} failure classes were closed as what they are", failures.len()),
        });
        compared.sort_by_key(|compared| compared.criterion);
        compared
    }

    fn prior(&self, engine: &dyn Engine) -> Option<Digest> {
        match Proofs::of(self.installation).standing(engine, self.stage.before()?) {
            Standing::Proven(proof) => signed::digest(&proof.record).ok(),
            _ => None,
        }
    }
}
