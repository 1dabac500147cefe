//! The proof of stages 1 to 3, by runs of built-in fixtures without a model.

use herma_api::output::{QuickstartState, QuickstartStepName};
use herma_core::{Stage, Status};
use herma_ladder::{Climb, ClimbState, People, climb_status};

use crate::error::QuickstartError;
use crate::session::Session;

const STEP: QuickstartStepName = QuickstartStepName::Prove;

/// The stage that `herma do` needs.
const STAGE: Stage = Stage::CopiedRepo;

/// Proves what is not proven.
pub(crate) fn prove(session: &mut Session<'_>) -> Result<(), QuickstartError> {
    let engine = session.engine.clone();
    let command = format!("herma prove --engine {engine} --up-to {STAGE}");
    let proofs = session.installation.proofs();
    if proofs.first_unproven(session.adapter()?, STAGE).is_none() {
        drop(proofs);
        let detail = vec![format!("stages 1 to {STAGE} are proven")];
        session.done(STEP, QuickstartState::Current, detail, None);
        return Ok(());
    }
    drop(proofs);
    if session.choices.dry_run {
        let detail = vec![format!("stages 1 to {STAGE}, by runs without a model")];
        session.done(STEP, QuickstartState::Planned, detail, Some(command));
        return Ok(());
    }
    session.watch.begun(STEP);
    let climb = Climb::up_to(&session.installation, &engine, STAGE);
    let steps = climb.carry_out(&session.installation, &People::default(), session.watch)?;
    if climb_status(&steps) != Status::Pass {
        let failed = steps.iter().find(|step| matches!(step.state, ClimbState::Failed | ClimbState::Blocked));
        let what = failed.map_or_else(
            || format!("stage {STAGE} of {engine} is not proven"),
            |step| format!("stage {} of {engine} is not proven: {}", step.stage, step.detail),
        );
        return Err(QuickstartError::missing(what, format!("`{command}` shows each case")));
    }
    let detail = vec![format!("stages 1 to {STAGE} are proven")];
    session.done(STEP, QuickstartState::Done, detail, Some(command));
    Ok(())
}
