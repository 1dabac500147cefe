//! Proves several stages in one go: all that is missing up to a stage, or all that an upgrade made stale.

use herma_core::engine::EngineName;
use herma_core::proof::Proof;
use herma_core::{Stage, Status};
use herma_harness::Installation;
use herma_trust::ProofStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ProveError;
use crate::people::People;
use crate::prove::prove;

/// The stages to prove, engine by engine, from the lowest stage up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Climb {
    steps: Vec<Planned>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Planned {
    engine: EngineName,
    stage: Stage,
    /// Why nothing has to be done for it.
    holds: Option<String>,
}

/// One stage of a climb and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClimbStep {
    /// Which engine.
    pub engine: EngineName,
    /// Which stage.
    pub stage: Stage,
    /// The result.
    pub state: ClimbState,
    /// Why, in words.
    pub detail: String,
    /// The proof that was made, where one was tried.
    pub proof: Option<Proof>,
}

/// The result of one stage of a climb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClimbState {
    /// It was tried, and is proven now.
    Proven,
    /// It is proven already, and everything behind the proof holds; nothing was run.
    Current,
    /// It was tried, and something did not end as it must.
    Failed,
    /// It could not be tried: a gate blocks the engine.
    Blocked,
    /// It was not tried, because a stage below it is not proven.
    NotTried,
}

impl ClimbState {
    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Current => "current",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::NotTried => "not_tried",
        }
    }
}

/// The result of a climb: a fail outweighs a block, and a climb without steps passes.
#[must_use]
pub fn climb_status(steps: &[ClimbStep]) -> Status {
    let any = |state| steps.iter().any(|step| step.state == state);
    if any(ClimbState::Failed) {
        Status::Fail
    } else if any(ClimbState::Blocked) || any(ClimbState::NotTried) {
        Status::Blocked
    } else {
        Status::Pass
    }
}

impl Climb {
    /// Every stage of an engine up to this one. Those that are proven and current are not run again.
    #[must_use]
    pub fn up_to(installation: &Installation, engine: &EngineName, stage: Stage) -> Self {
        let proofs = installation.proofs();
        let adapter = installation.engines().get(engine);
        let steps = Stage::ALL.into_iter().filter(|rung| *rung <= stage).map(|rung| Planned {
            engine: engine.clone(),
            stage: rung,
            holds: adapter.and_then(|adapter| holds(&proofs.status(adapter, rung))),
        });
        Self { steps: steps.collect() }
    }

    /// Every stage whose proof is stale, of one engine or of all.
    #[must_use]
    pub fn stale(installation: &Installation, only: Option<&EngineName>) -> Self {
        let proofs = installation.proofs();
        let names = installation.engines().names();
        let mut steps = Vec::new();
        for name in names.iter().filter(|name| only.is_none_or(|only| only == *name)) {
            let Some(engine) = installation.engines().get(name) else { continue };
            let stale = |stage: &Stage| matches!(proofs.status(engine, *stage), ProofStatus::Stale(_));
            let stages = Stage::ALL.into_iter().filter(stale);
            steps.extend(stages.map(|stage| Planned { engine: name.clone(), stage, holds: None }));
        }
        Self { steps }
    }

    /// Whether a stage that has to be proven needs an approver.
    #[must_use]
    pub fn needs_approver(&self) -> bool {
        self.steps.iter().any(|step| step.holds.is_none() && step.stage.needs_approval())
    }

    /// Proves one stage after another. An engine that does not pass a stage is not tried with those above it; the other
    /// engines are. `watch` is called before each stage and each of its cases.
    pub fn carry_out(
        &self,
        installation: &Installation,
        people: &People<'_>,
        watch: &dyn ClimbWatch,
    ) -> Result<Vec<ClimbStep>, ProveError> {
        let mut done: Vec<ClimbStep> = Vec::new();
        for Planned { engine, stage, holds } in &self.steps {
            let below = done.iter().find(|step| step.engine == *engine && !step.holds());
            let step = match (holds, below) {
                (Some(why), _) => step(engine, *stage, ClimbState::Current, why.clone()),
                (None, Some(below)) => {
                    let why = format!("stage {} is not proven", below.stage);
                    step(engine, *stage, ClimbState::NotTried, why)
                }
                (None, None) => {
                    watch.stage(engine, *stage);
                    let heard = |n: usize, total: usize, case: &str| watch.case(n, total, case);
                    tried(prove(installation, engine, *stage, people, &heard)?)
                }
            };
            watch.done(&step);
            done.push(step);
        }
        Ok(done)
    }
}

/// Receives the progress of a climb.
pub trait ClimbWatch {
    /// A stage is about to be tried.
    fn stage(&self, engine: &EngineName, stage: Stage);
    /// A case of it is about to be run: its number, how many there are, its name.
    fn case(&self, number: usize, total: usize, case: &str);
    /// A stage is done, or was not tried.
    fn done(&self, step: &ClimbStep);
}

impl ClimbStep {
    fn holds(&self) -> bool {
        matches!(self.state, ClimbState::Proven | ClimbState::Current)
    }
}

fn holds(status: &ProofStatus) -> Option<String> {
    match status {
        ProofStatus::BuiltIn => Some("part of herma itself".to_owned()),
        ProofStatus::Proven(proof) => Some(format!("proven at {}", proof.record.proven_at)),
        ProofStatus::Missing | ProofStatus::Stale(_) | ProofStatus::Broken(_) => None,
    }
}

fn step(engine: &EngineName, stage: Stage, result: ClimbState, detail: String) -> ClimbStep {
    ClimbStep { engine: engine.clone(), stage, state: result, detail, proof: None }
}

fn tried(proof: Proof) -> ClimbStep {
    let state = match proof.status {
        Status::Pass => ClimbState::Proven,
        Status::Fail => ClimbState::Failed,
        Status::Blocked => ClimbState::Blocked,
    };
    let detail = match proof.reasons.first() {
        Some(reason) => reason.clone(),
        None => format!("proven at {}", proof.proven_at),
    };
    let step = step(&proof.engine, proof.stage, state, detail);
    ClimbStep { proof: Some(proof), ..step }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_climb_is_as_good_as_its_worst_step() {
        use ClimbState::{Blocked, Current, Failed, NotTried, Proven};
        for (states, expected) in [
            (&[][..], Status::Pass),
            (&[Proven, Current], Status::Pass),
            (&[Current, Blocked], Status::Blocked),
            (&[Current, Blocked, NotTried], Status::Blocked),
            (&[Proven, Failed, NotTried], Status::Fail),
            (&[Blocked, Failed], Status::Fail),
        ] {
            let steps: Vec<ClimbStep> = states
                .iter()
                .map(|state| step(&EngineName::fake(), Stage::Gated, *state, String::new()))
                .collect();
            assert_eq!(climb_status(&steps), expected, "{states:?}");
        }
    }
}
