//! The land step: a result that passed every check becomes one new branch with one commit, in one compare-and-swap.

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::report::LandedIn;
use herma_core::{Stage, Timestamp};
use herma_git::{GitError, LandError, LandState, Landing, SourceRepo, SourceState, make_disposable};
use serde::{Deserialize, Serialize};

use crate::context::RunContext;
use crate::error::Stop;
use crate::journal::StepResult;
use crate::tree_diff::BaseTree;
use crate::witness::{Witnessed, witness_landing};

/// The repository that was made for the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DisposableResults {
    pub(crate) before: SourceState,
}

impl StepResult for DisposableResults {
    const KEY: &'static str = "disposable";
}

/// The landing of a result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LandingResults {
    pub(crate) landing: Option<Landing>,
    pub(crate) landed: bool,
    pub(crate) refused: Option<BlockerRecord>,
    pub(crate) outcome_due: Option<Timestamp>,
}

impl StepResult for LandingResults {
    const KEY: &'static str = "landing";
}

/// Makes the disposable repository of a stage 4 run, where the engine cannot reach it.
pub(crate) fn make_repository(
    ctx: &RunContext<'_>,
    base: &BaseTree,
    found: &mut Option<DisposableResults>,
) -> Result<Option<SourceRepo>, Stop> {
    if ctx.contract.terms.stage != Stage::DisposableRepo {
        return Ok(None);
    }
    let made = make_disposable(&ctx.installation.git, &ctx.dirs.disposable(), &base.git_dir, &base.baseline)?;
    *found = Some(DisposableResults { before: made.capture()? });
    Ok(Some(made))
}

/// The repository that a run of this stage lands in, and which one that is.
pub(crate) fn landing_place<'a>(
    stage: Stage,
    source: Option<&'a SourceRepo>,
    disposable: Option<&'a SourceRepo>,
) -> Option<(&'a SourceRepo, LandedIn)> {
    match stage {
        Stage::DisposableRepo => Some((disposable?, LandedIn::Disposable)),
        Stage::OwnedRepo => Some((source?, LandedIn::Target)),
        _ => None,
    }
}

/// A result that passed every check.
pub(crate) struct Landable<'a> {
    pub(crate) place: &'a SourceRepo,
    pub(crate) kind: LandedIn,
    pub(crate) base: &'a BaseTree,
    pub(crate) tree: &'a str,
    /// The directory that the target was admitted at.
    pub(crate) target_dir: Option<&'a std::path::Path>,
}

/// Lands the result. A concurrent change of the repository blocks the landing and loses nothing of that change.
pub(crate) fn land(
    ctx: &RunContext<'_>,
    Landable { place, kind, base, tree, target_dir }: Landable<'_>,
    found: &mut Option<LandingResults>,
    witnessed: &mut Option<Witnessed>,
) -> Result<(), Stop> {
    let results = found.get_or_insert_default();
    if let (LandedIn::Target, Some(dir)) = (kind, target_dir)
        && let Err(what) = place.is_at(dir)
    {
        let why = format!("nothing landed: the target is not the repository that was admitted: {what}");
        results.refused = Some(Blocker::TargetNotAdmitted.because(why));
        return Ok(());
    }
    // `herma apply` holds the same lock while it changes the work tree of a target.
    let _lock = match kind {
        LandedIn::Target => Some(ctx.installation.home.lock_landing()?),
        LandedIn::Disposable => None,
    };
    let refs_before = match place.ref_list() {
        Ok(refs) => refs,
        Err(error) => return results.refuse_unreadable(place, kind, error),
    };
    let title = &ctx.contract.terms.title;
    let landing = place.prepare_landing(&base.git_dir, tree, ctx.plan.run_id, title)?;
    // Record the landing before it can be in the target, for recovery.
    results.landing = Some(landing.clone());
    ctx.journal.append_durably(results)?;
    match place.land(&base.git_dir, &landing) {
        Ok(()) => {}
        Err(LandError::Git(error)) => return results.refuse_unreadable(place, kind, error),
        Err(refused) => {
            results.refused = Some(Blocker::SourceMutated.because(format!("nothing landed: {refused}")));
            return Ok(());
        }
    }
    results.landed = true;
    if kind == LandedIn::Target {
        let limit =
            ctx.occasion.outcome_within.unwrap_or(ctx.installation.operator.outcome_within).duration();
        let limit = jiff::SignedDuration::try_from(limit).unwrap_or(jiff::SignedDuration::MAX);
        let now = ctx.installation.clock.now();
        results.outcome_due = Some(now.saturating_add(limit).unwrap_or(now));
    }
    ctx.journal.append(results)?;
    let refs_after = match witness_landing(place, kind, witnessed).and_then(|()| place.ref_list()) {
        Ok(refs) => refs,
        Err(error) => return results.refuse_unreadable(place, kind, error),
    };
    if !SourceRepo::only_landed(&refs_before, &refs_after, &landing) {
        results.refused = Some(Blocker::SourceMutated.because("another ref changed while the result landed"));
    }
    Ok(())
}

impl LandingResults {
    /// A landing that was refused before it was tried.
    pub(crate) fn refused(why: BlockerRecord) -> Self {
        Self { refused: Some(why), ..Self::default() }
    }

    /// Blocks the landing because git fails in the target. It worked there before the run, so another process changed the
    /// target. A full disk, and a disposable repository, which only herma changes, stop the run instead.
    fn refuse_unreadable(&mut self, place: &SourceRepo, kind: LandedIn, error: GitError) -> Result<(), Stop> {
        if kind == LandedIn::Disposable || error.is_write_failure() {
            return Err(error.into());
        }
        let state = if self.take_back(place) { "nothing landed" } else { "the landing may not be complete" };
        let why = format!(
            "{state}: git cannot read the target any more: {error}; undo what changed there, then run again"
        );
        self.refused = Some(Blocker::SourceMutated.because(why));
        Ok(())
    }

    /// Takes back what landed: a run that is not a pass leaves nothing. Returns whether the target has no branch of the run.
    pub(crate) fn take_back(&mut self, place: &SourceRepo) -> bool {
        let Some(landing) = &self.landing else { return true };
        // Where that fails the report still names the branch.
        let absent = place.unland(landing).is_ok() && matches!(place.landed(landing), Ok(LandState::Absent));
        if absent {
            self.landed = false;
            self.outcome_due = None;
        }
        absent
    }

    /// Reads from the target whether the result landed, for recovery.
    pub(crate) fn look_again(&mut self, place: &SourceRepo, now: Timestamp) {
        let Some(landing) = &self.landing else { return };
        self.landed = matches!(place.landed(landing), Ok(LandState::Ours));
        if self.landed {
            // The process died before it could set a date. An interrupted run can only be rejected.
            self.outcome_due.get_or_insert(now);
        }
    }

    /// Forgets the landing in a repository that was removed with the run.
    pub(crate) fn gone(&mut self) {
        self.landed = false;
    }
}
