//! Landing: what passed every check becomes one new branch with one commit, in one compare-and-swap.

use herma_core::blocker::Blocker;
use herma_core::report::LandedIn;
use herma_core::{Stage, Status, Timestamp};
use herma_git::{LandError, LandState, SourceRepo, make_disposable};

use crate::close::missing_before_the_end;
use crate::error::Stop;
use crate::facts::Facts;
use crate::run::{Ground, Run};

/// Makes the throw-away repository of a stage 4 run, where the engine cannot reach it.
pub(crate) fn make_repository(run: &mut Run<'_>, ground: &Ground) -> Result<(), Stop> {
    if run.contract.terms.stage != Stage::DisposableRepo {
        return Ok(());
    }
    let made =
        make_disposable(&run.installation.git, &run.dirs.disposable(), &ground.git_dir, &ground.baseline)?;
    run.facts.disposable_before = Some(made.capture()?);
    run.disposable = Some(made);
    Ok(())
}

/// Lands the result, if every check has passed. Somebody else's change in between blocks it and loses nothing of
/// theirs.
pub(crate) fn land(run: &mut Run<'_>, ground: &Ground) -> Result<(), Stop> {
    let stage = run.contract.terms.stage;
    let missing = missing_before_the_end(stage, Status::Pass, &run.facts, &run.events.events());
    if missing.is_some() || run.facts.judge(run.contract).status() != Status::Pass {
        return Ok(());
    }
    if let Err(taken_away) = run.still_let_in(run.ruling.as_ref()) {
        run.facts.landing_refused = Some(taken_away);
        return Ok(());
    }
    let (Some((place, kind)), Some(tree)) = (run.landing_place(), run.facts.result_tree.clone()) else {
        return Ok(());
    };
    let place = place.clone();
    if let (LandedIn::Target, Some(dir)) = (kind, &run.facts.target_dir)
        && let Err(what) = place.lies_at(dir)
    {
        let why = format!("nothing landed: the target is not the repository that was admitted: {what}");
        run.facts.landing_refused = Some(Blocker::TargetNotAdmitted.because(why));
        return Ok(());
    }
    let refs_before = place.ref_list()?;
    let title = &run.contract.terms.title;
    let landing = place.prepare_landing(&ground.git_dir, &tree, run.plan.run_id, title)?;
    // What may be found in the target after a crash is written down before it can be there.
    run.facts.landing = Some(landing.clone());
    run.facts.save_durably(&run.dirs.facts())?;
    match place.land(&ground.git_dir, &landing) {
        Ok(()) => {}
        Err(LandError::Git(error)) => return Err(error.into()),
        Err(refused) => {
            run.facts.landing_refused =
                Some(Blocker::SourceMutated.because(format!("nothing landed: {refused}")));
            return Ok(());
        }
    }
    run.facts.landed = true;
    if kind == LandedIn::Target {
        let limit =
            run.occasion.outcome_within.unwrap_or(run.installation.operator.outcome_within).duration();
        let limit = jiff::SignedDuration::try_from(limit).unwrap_or(jiff::SignedDuration::MAX);
        let now = run.installation.clock.now();
        run.facts.outcome_due = Some(now.saturating_add(limit).unwrap_or(now));
    }
    run.facts.save(&run.dirs.facts())?;
    witness(run, &place, kind)?;
    if !SourceRepo::only_landed(&refs_before, &place.ref_list()?, &landing) {
        run.facts.landing_refused =
            Some(Blocker::SourceMutated.because("another ref changed while the result landed"));
    }
    Ok(())
}

/// Looks once more: HEAD, index, status and work tree are as they were; of the refs, `only_landed` says it.
fn witness(run: &mut Run<'_>, place: &SourceRepo, kind: LandedIn) -> Result<(), Stop> {
    let after = place.capture()?;
    let before = match kind {
        LandedIn::Target => &mut run.facts.source_after,
        LandedIn::Disposable => &mut run.facts.disposable_after,
    };
    if let Some(before) = before {
        let refs = before.refs;
        *before = after;
        before.refs = refs;
    }
    Ok(())
}

/// Takes back what landed: a run that is not a pass leaves nothing.
pub(crate) fn take_back(place: &SourceRepo, facts: &mut Facts) {
    let Some(landing) = &facts.landing else { return };
    // Where it cannot be taken back the report goes on saying that it is there.
    if place.unland(landing).is_ok() && matches!(place.landed(landing), Ok(LandState::Absent)) {
        facts.landed = false;
        facts.outcome_due = None;
    }
}

/// What is in the target, for a process that did not start the run.
pub(crate) fn look_again(place: &SourceRepo, facts: &mut Facts, now: Timestamp) {
    let Some(landing) = &facts.landing else { return };
    facts.landed = matches!(place.landed(landing), Ok(LandState::Ours));
    if facts.landed {
        // It died before it could say until when. An interrupted run is never accepted; it can only be rejected.
        facts.outcome_due.get_or_insert(now);
    }
}
