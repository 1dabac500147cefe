//! The gates without effects: all of them are evaluated and listed, not only the first that fails.

use std::collections::BTreeMap;

use herma_destination::toolchain::{self, Found as Toolchains};
use herma_destination::{Destination, inside_a_run};
use herma_git::{SourceRepo, SourceState};
use herma_model::blocker::{Blocker, BlockerRecord};
use herma_model::contract::Target;
use herma_model::gate::{Finding, Gate};
use herma_model::{Contract, Stage};

use crate::installation::Installation;
use crate::order::Order;
use crate::target::FoundTarget;

/// What the gates found.
pub(crate) struct Gates {
    pub(crate) findings: Findings,
    /// What they found it with, where all of them hold.
    pub(crate) ready: Option<Ready>,
    /// The target, where it is a repository, and what it is before the run.
    pub(crate) source: Option<(SourceRepo, SourceState)>,
    pub(crate) walls: Vec<String>,
}

/// What came of each gate that was evaluated.
pub(crate) type Findings = BTreeMap<Gate, Finding>;

/// Everything that a run needs to go on.
pub(crate) struct Ready {
    pub(crate) target: FoundTarget,
    pub(crate) destination: Box<dyn Destination>,
    pub(crate) toolchains: Toolchains,
}

/// Evaluates every gate that has no effect.
pub(crate) fn evaluate(installation: &Installation, order: &Order) -> Gates {
    let contract = &order.contract;
    let engine = installation.engines.get(&order.engine);
    let built_in = engine.is_some_and(herma_engines::Engine::built_in);
    let name = &order.engine;

    let toolchains = find_toolchains(installation, contract);
    // Both ask other programs and wait for their answers.
    let (target, destination) = std::thread::scope(|scope| {
        let destination = scope.spawn(|| find_destination(installation, order));
        let target = FoundTarget::find(installation, contract, &order.contract_dir);
        (target, destination.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });

    let mut findings = BTreeMap::new();
    let mut found = |gate, result: Result<Finding, BlockerRecord>| {
        findings.insert(gate, result.unwrap_or_else(Finding::Missing));
    };
    found(Gate::ContractComplete, complete(contract, toolchains.as_ref().err()));
    found(Gate::EngineRegistered, registered(installation, order));
    found(
        Gate::EngineEnabled,
        passed_if(built_in, || Blocker::EngineDisabled.because(format!("`{name}` is not enabled"))),
    );
    found(Gate::StageProven, proven(contract.terms.stage, built_in, name.as_str()));
    found(
        Gate::Depth,
        passed_if(!inside_a_run(), || Blocker::RecursionDepth.because("this herma was started inside a run")),
    );
    found(
        Gate::EngineAdmitted,
        if built_in {
            Ok(Finding::NotApplicable(format!("`{name}` is part of herma itself")))
        } else {
            Err(Blocker::EngineNotAdmitted.because(format!("there is no admission of `{name}`")))
        },
    );
    found(Gate::ModelAdmitted, model(contract, Blocker::ModelNotAdmitted, "has not been admitted"));
    found(
        Gate::ProviderConfigured,
        model(contract, Blocker::ProviderUnavailable, "has no configured provider"),
    );
    found(Gate::DestinationReady, destination.as_ref().map(|_| Finding::Passed).map_err(Clone::clone));
    found(Gate::TargetAdmitted, target.as_ref().map(|_| Finding::Passed).map_err(Clone::clone));
    found(Gate::TargetClean, clean(contract, target.as_ref().ok()));
    found(
        Gate::ApprovalPresent,
        if contract.terms.stage.needs_approval() {
            Err(Blocker::ApprovalVoid.because("there is no approval of this contract"))
        } else {
            Ok(Finding::NotApplicable(format!("stage {} needs no approval", contract.terms.stage)))
        },
    );
    let walls = destination.as_ref().map_or_else(|_| Vec::new(), |(_, walls)| walls.clone());
    let source = match &target {
        Ok(FoundTarget::Repo(repo)) => Some((repo.source.clone(), repo.before.clone())),
        _ => None,
    };
    let all_hold = !findings.values().any(|finding| matches!(finding, Finding::Missing(_)));
    let ready = match (target, destination, toolchains) {
        (Ok(target), Ok((destination, _)), Ok(toolchains)) if all_hold => {
            Some(Ready { target, destination, toolchains })
        }
        _ => None,
    };
    Gates { findings, ready, source, walls }
}

fn passed_if(holds: bool, otherwise: impl FnOnce() -> BlockerRecord) -> Result<Finding, BlockerRecord> {
    if holds { Ok(Finding::Passed) } else { Err(otherwise()) }
}

fn complete(
    contract: &Contract,
    missing_toolchain: Option<&BlockerRecord>,
) -> Result<Finding, BlockerRecord> {
    if contract.terms.verify.is_empty() {
        return Err(Blocker::MissingTestCommand.because("`verify` names no command"));
    }
    match missing_toolchain {
        Some(missing) => Err(missing.clone()),
        None => Ok(Finding::Passed),
    }
}

fn registered(installation: &Installation, order: &Order) -> Result<Finding, BlockerRecord> {
    let name = &order.engine;
    let Some(engine) = installation.engines.get(name) else {
        let known: Vec<_> = installation.engines.names().iter().map(ToString::to_string).collect();
        let known = known.join(", ");
        return Err(
            Blocker::EngineNotAdmitted.because(format!("herma has no engine `{name}`; it has: {known}"))
        );
    };
    let cannot =
        order.contract.terms.needs.iter().find(|need| !engine.capabilities().contains(&need.as_str()));
    match cannot {
        Some(need) => Err(Blocker::EngineNotAdmitted.because(format!("`{name}` cannot do `{need}`"))),
        None => Ok(Finding::Passed),
    }
}

fn proven(stage: Stage, built_in: bool, name: &str) -> Result<Finding, BlockerRecord> {
    let unproven = |why: String| Err(Blocker::StageUnproven.because(why));
    match stage {
        Stage::Gated | Stage::CandidateDefault => unproven(format!("no engine is started at stage {stage}")),
        Stage::Fixture | Stage::CopiedRepo if built_in => Ok(Finding::Passed),
        _ => unproven(format!("`{name}` has no proof of stage {stage}")),
    }
}

fn model(contract: &Contract, blocker: Blocker, what: &str) -> Result<Finding, BlockerRecord> {
    match &contract.terms.model {
        None => Ok(Finding::NotApplicable("the contract names no model".to_owned())),
        Some(choice) => Err(blocker.because(format!("`{}/{}` {what}", choice.provider, choice.model))),
    }
}

fn clean(contract: &Contract, target: Option<&FoundTarget>) -> Result<Finding, BlockerRecord> {
    match (&contract.terms.target, target) {
        (Target::Fixture(_), _) => {
            Ok(Finding::NotApplicable("a fixture is built in and cannot be dirty".to_owned()))
        }
        (Target::Repo { .. }, Some(FoundTarget::Repo(found))) if found.before.clean => Ok(Finding::Passed),
        (Target::Repo { repo, .. }, Some(_)) => Err(Blocker::DirtyStartingTree
            .because(format!("`git status` in `{repo}` lists uncommitted or untracked files"))),
        (Target::Repo { repo, .. }, None) => {
            Err(Blocker::TargetNotAdmitted.because(format!("`{repo}` could not be read")))
        }
    }
}

type WithWalls = (Box<dyn Destination>, Vec<String>);

fn find_destination(installation: &Installation, order: &Order) -> Result<WithWalls, BlockerRecord> {
    let kind = order.destination();
    let unready = |what: String| Blocker::DestinationUnready.because(what);
    let destination = installation
        .destination(kind)
        .ok_or_else(|| unready(format!("this version of herma has no destination `{}`", kind.as_str())))?;
    if let Some(engine) = installation.engines.get(&order.engine)
        && !engine.may_run_on(kind)
    {
        return Err(unready(format!("`{}` may not run on `{}`", order.engine, kind.as_str())));
    }
    if !order.contract.terms.egress.is_empty() {
        return Err(unready("the contract names egress hosts, and this version has no way out".to_owned()));
    }
    match destination.readiness() {
        Ok(ready) => Ok((destination, ready.walls)),
        Err(why) => {
            Err(BlockerRecord { next_step: why.next_step, ..Blocker::DestinationUnready.because(why.what) })
        }
    }
}

fn find_toolchains(installation: &Installation, contract: &Contract) -> Result<Toolchains, BlockerRecord> {
    let mut all = Toolchains { mounts: Vec::new(), path: Vec::new() };
    for wanted in &contract.terms.toolchains {
        let found = toolchain::find(*wanted, installation.search_path(), &installation.settings.user_home)
            .map_err(|why| BlockerRecord {
                next_step: why.next_step,
                ..Blocker::MissingTestCommand.because(why.what)
            })?;
        all.mounts.extend(found.mounts);
        all.path.extend(found.path);
    }
    Ok(all)
}
