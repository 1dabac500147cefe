//! Checks of outcomes, proofs and comparisons.

use herma_core::decision::Purpose;
use herma_core::engine::EngineName;
use herma_core::reference::Reference;
use herma_core::store::RunSummary;
use herma_core::{Stage, Status};
use herma_harness::Installation;
use herma_home::EnabledEngines;
use herma_ladder::Comparisons;
use herma_trust::{OutcomeStatus, ProofStatus};

use super::checklist::Checklist;
use crate::records::Records;

/// Whether runs of the engine may be started: `fake` always, others once a person enabled them.
pub(super) fn is_enabled(installation: &Installation, name: &EngineName) -> bool {
    let built_in = installation.engines().get(name).is_some_and(herma_engines::Engine::built_in);
    built_in || EnabledEngines::of(&installation.home).is_on(name)
}

/// Every landed result has its outcome, or time for it.
pub(super) fn outcomes(records: &Records<'_>, runs: &[RunSummary], list: &mut Checklist<'_>) {
    let (mut problems, mut given, mut pending) = (Vec::new(), 0_usize, 0_usize);
    let landed = |run: &&RunSummary| run.stage == Stage::OwnedRepo && run.status == Some(Status::Pass);
    for run in runs.iter().filter(landed) {
        // A bundle that does not verify is for the check of the bundles; a proof's case has no result to keep.
        let Ok(verified) = records.run(run.run_id) else { continue };
        if verified.purpose != Purpose::Work {
            continue;
        }
        match records.outcome(&verified.report) {
            Some(OutcomeStatus::Given(_)) => given += 1,
            Some(OutcomeStatus::Pending(_)) => pending += 1,
            Some(OutcomeStatus::NotRequired) => {}
            Some(OutcomeStatus::Missing(due)) => {
                problems.push(format!("run {} had no outcome by {due}", run.run_id));
            }
            Some(OutcomeStatus::Void { why, .. }) => {
                problems.push(format!("the outcome of run {} does not count: {why}", run.run_id));
            }
            None => problems.push(format!("the outcome of run {} cannot be read", run.run_id)),
        }
    }
    if given + pending == 0 && problems.is_empty() {
        return list.not_applicable("outcomes", "no work landed in a repository");
    }
    list.judged("outcomes", &problems, format!("{given} are given, {pending} can still be given"));
}

/// Every proof of an enabled engine holds, with every bundle behind it.
pub(super) fn proofs(records: &Records<'_>, list: &mut Checklist<'_>) {
    let installation = records.installation;
    let mut any = false;
    for name in installation.engines().names() {
        let Some(engine) = installation.engines().get(&name) else { continue };
        for stage in Stage::ALL {
            if list.has_ended() {
                return;
            }
            let check = format!("proof:{name}/{stage}");
            match installation.proofs().status(engine, stage) {
                ProofStatus::BuiltIn | ProofStatus::Missing => continue,
                ProofStatus::Proven(proof) => {
                    let detail = format!("proven at {}", proof.record.proven_at);
                    list.passed_by(check, detail, vec![Reference::Proof(name.clone(), stage)]);
                }
                ProofStatus::Stale(why) | ProofStatus::Broken(why) if is_enabled(installation, &name) => {
                    list.failed(check, why);
                }
                ProofStatus::Stale(why) | ProofStatus::Broken(why) => {
                    list.not_applicable(check, format!("the engine is not enabled; {why}"));
                }
            }
            any = true;
        }
    }
    if !any {
        list.not_applicable("proofs", "no engine has proven a stage");
    }
}

/// The newest comparison holds.
pub(super) fn comparison(installation: &Installation, list: &mut Checklist<'_>) {
    match Comparisons::of(installation).latest() {
        Ok(None) => list.not_applicable("comparison", "no engines were compared"),
        Ok(Some(kept)) => {
            let id = kept.record.id;
            list.passed_by("comparison", "the newest one holds", vec![Reference::Comparison(id)]);
        }
        Err(why) => list.failed("comparison", why.to_string()),
    }
}
