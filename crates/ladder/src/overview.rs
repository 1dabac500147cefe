//! The whole ladder: every engine, every stage, its evidence and the next step.

use herma_core::Stage;
use herma_core::admission::AdmissionId;
use herma_core::engine::EngineName;
use herma_core::proof::BundleRef;
use herma_core::report::Admission;
use herma_harness::Installation;
use herma_home::EnabledEngines;
use herma_trust::{ProofStatus, stage_cases};
use schemars::JsonSchema;
use serde::Serialize;

/// One stage of one engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rung {
    /// Which engine.
    pub engine: EngineName,
    /// Which stage.
    pub stage: Stage,
    /// Its state.
    pub state: RungState,
    /// Why, or since when.
    pub detail: String,
    /// The bundles of the proof.
    pub bundles: Vec<BundleRef>,
    /// The next command for a person; only on the lowest stage that is not proven.
    pub next: Option<String>,
}

/// The state of one stage of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RungState {
    /// It needs no proof: the engine is part of herma itself.
    BuiltIn,
    /// It is proven, and everything behind the proof holds.
    Proven,
    /// It was proven, and something behind the proof broke or changed.
    Broken,
    /// It was never proven.
    Unproven,
}

impl RungState {
    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built_in",
            Self::Proven => "proven",
            Self::Broken => "broken",
            Self::Unproven => "unproven",
        }
    }
}

/// Every stage of every engine, or of one.
#[must_use]
pub fn ladder(installation: &Installation, only: Option<&EngineName>) -> Vec<Rung> {
    let names = installation.engines().names();
    names
        .iter()
        .filter(|name| only.is_none_or(|only| only == *name))
        .flat_map(|name| rungs(installation, name))
        .collect()
}

fn rungs(installation: &Installation, name: &EngineName) -> Vec<Rung> {
    let Some(engine) = installation.engines().get(name) else { return Vec::new() };
    let proofs = installation.proofs();
    let mut next = Some(next_step(installation, name));
    Stage::ALL
        .into_iter()
        .map(|stage| {
            let (state, detail, bundles) = match proofs.status(engine, stage) {
                ProofStatus::BuiltIn => (RungState::BuiltIn, "part of herma itself".to_owned(), Vec::new()),
                ProofStatus::Proven(proof) => {
                    let record = proof.record;
                    (RungState::Proven, format!("proven at {}", record.proven_at), record.bundles)
                }
                ProofStatus::Stale(why) | ProofStatus::Broken(why) => (RungState::Broken, why, Vec::new()),
                ProofStatus::Missing => (RungState::Unproven, needs(stage), Vec::new()),
            };
            let holds = matches!(state, RungState::BuiltIn | RungState::Proven);
            let next = if holds { None } else { next.take().map(|step| step(stage)) };
            Rung { engine: name.clone(), stage, state, detail, bundles, next }
        })
        .collect()
}

/// The requirements of a stage beyond the stages below it.
fn needs(stage: Stage) -> String {
    let classes = stage_cases(stage).len().saturating_sub(1);
    match stage {
        Stage::CandidateDefault => {
            "needs two accepted stage 5 runs of different contracts, and a comparison of all lanes".to_owned()
        }
        Stage::DisposableRepo | Stage::OwnedRepo => {
            format!("needs its pass case, {classes} failure classes, and an approver")
        }
        _ => format!("needs its pass case and {classes} failure classes"),
    }
}

/// The next step for the lowest stage that is not proven: first the requirements of the gates.
fn next_step(installation: &Installation, name: &EngineName) -> impl Fn(Stage) -> String {
    let name = name.clone();
    let built_in = installation.engines().get(&name).is_some_and(herma_engines::Engine::built_in);
    let digest = installation.engines().get(&name).and_then(|engine| engine.digest().ok());
    let admissions = installation.admissions();
    let status = admissions.find_engine(&name, digest, &installation.admission_context()).status;
    let is_signed = matches!(admissions.signature(&AdmissionId::Engine(name.clone())), Ok(Some(_)) | Err(_));
    let to_install = installation
        .engines()
        .get(&name)
        .is_some_and(|engine| engine.source().is_some() && engine.program().is_none());
    let enabled = built_in || EnabledEngines::of(&installation.home).is_on(&name);
    move |stage| match (built_in || status == Admission::Admitted, enabled) {
        (false, _) if is_signed => format!(
            "herma admissions revoke engine {name} --reason TEXT, then herma admit engine {name} and herma admit sign engine {name}"
        ),
        (false, _) if to_install => format!("herma engines install {name}"),
        (false, _) => format!("herma admit engine {name}, then herma admit sign engine {name}"),
        (true, false) => format!("herma engines enable {name}"),
        (true, true) => format!("herma prove --engine {name} --stage {stage}"),
    }
}
