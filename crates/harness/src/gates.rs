//! The gates without effects: all of them are evaluated and listed, not only the first that fails.

mod approval;
mod destination;
mod engine;
mod environment;
mod model;
mod target;

use std::collections::BTreeMap;

use herma_core::approval::{Binding, Ruling};
use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::capability::{Capability, Support};
use herma_core::decision::{AdmissionSeen, Purpose};
use herma_core::gate::{Finding, Gate};
use herma_core::signed::Signed;
use herma_core::{Contract, Digest};
use herma_destination::{Destination, DestinationCapabilities, inside_a_run};
use herma_environments::build::JobSettings;
use herma_environments::prepare::PreparedEnvironment;
use herma_git::{SourceRepo, SourceState};
use herma_trust::approvals::SignatureCheck;

pub(crate) use approval::{ApprovalSeen, used};

use crate::destinations::{Choice, ChoiceError};
use crate::egress::{self, EgressPlan};
use crate::installation::Installation;
use crate::order::{Occasion, Order};
use crate::parent_run::MAX_DEPTH;
use crate::run_router::RouterPlan;
use crate::target::FoundTarget;

/// The findings of the gates.
pub(crate) struct Gates {
    pub(crate) findings: Findings,
    /// The values that the gates found, where all of them hold.
    pub(crate) ready: Option<Ready>,
    /// The target, where it is a repository, and what it is before the run.
    pub(crate) source: Option<(SourceRepo, SourceState)>,
    pub(crate) walls: Vec<String>,
    /// The examined records.
    pub(crate) admissions: Vec<AdmissionSeen>,
    pub(crate) approval: ApprovalSeen,
    /// The digest that the gates judged by.
    pub(crate) engine_digest: Option<Digest>,
    /// The engine's declared support for the capabilities that the contract needs; empty for an unknown engine.
    pub(crate) needs: BTreeMap<Capability, Support>,
}

/// The finding of each evaluated gate.
pub(crate) type Findings = BTreeMap<Gate, Finding>;

/// Everything that a run needs to continue.
pub(crate) struct Ready {
    pub(crate) target: FoundTarget,
    pub(crate) destination: Box<dyn Destination>,
    /// Mounts, programs and variables of toolchains and environment, for the engine and for verification.
    pub(crate) tools: JobSettings,
    /// The contract's environment, which is not built yet.
    pub(crate) environment: Option<PreparedEnvironment>,
    /// The name of the destination, for containers with the image: layers of one are not used in another.
    pub(crate) place: String,
    /// The plan of the run's router; none without a model.
    pub(crate) router: Option<RouterPlan>,
    /// The hosts that the run may reach.
    pub(crate) egress: EgressPlan,
    /// The admitted identity of the engine's program; none for an engine that is part of herma itself.
    pub(crate) identity: Option<String>,
}

/// The input of every gate.
#[derive(Clone, Copy)]
struct Case<'a> {
    installation: &'a Installation,
    order: &'a Order,
    occasion: Occasion<'a>,
    contract_digest: Digest,
    /// Read once: what was approved is what is started.
    choice: &'a Result<Option<Choice>, ChoiceError>,
}

impl Case<'_> {
    /// The image of the run's containers; none where it has none, or where it is unknown.
    fn image(&self) -> Option<String> {
        if !DestinationCapabilities::of(self.order.destination()).needs_image() {
            return None;
        }
        let options = self.installation.container_options(self.choice.as_ref().ok()?.as_ref());
        let runtime = options.runtime.map(|name| format!(", runtime {name}")).unwrap_or_default();
        Some(format!("{}{runtime}", options.image?))
    }

    /// The name of the destination, for containers with the image.
    fn place(&self) -> String {
        let kind = self.order.destination().as_str();
        self.image().map_or_else(|| kind.to_owned(), |image| format!("{kind} {image}"))
    }
}

type Judged = Result<Finding, BlockerRecord>;

/// Evaluates every gate that has no effect.
pub(crate) fn evaluate(
    installation: &Installation,
    order: &Order,
    occasion: Occasion<'_>,
    contract_digest: Digest,
) -> Gates {
    // The target in a child's contract is no path of this machine.
    let choice = &match occasion.child_of {
        Some(parent) => installation.choice_for(&parent.root.0, &parent.root.1),
        None => installation.choice_for(&order.contract, &order.contract_dir),
    };
    let case = Case { installation, order, occasion, contract_digest, choice };
    let contract = &order.contract;
    let toolchains = destination::find_toolchains(installation, contract);
    // These ask other programs, or read much, and wait for their answers.
    let (target, destination, engine) = std::thread::scope(|scope| {
        let destination = scope.spawn(|| destination::find(case));
        let engine = scope.spawn(|| engine::look(case));
        let target = target::find(case);
        (target, joined(destination.join()), joined(engine.join()))
    });
    let model = model::look(case);
    let environment = environment::find(case);
    let egress = egress::look(installation, order);
    let approval = approval::look(case, engine.digest, target.found.as_ref().ok(), egress.as_ref().ok());

    let mut findings = BTreeMap::new();
    let mut found = |gate, judged: Judged| {
        findings.insert(gate, judged.unwrap_or_else(Finding::Missing));
    };
    found(Gate::ContractComplete, complete(contract, toolchains.as_ref().err()));
    found(Gate::EngineRegistered, engine.registered);
    found(Gate::EngineEnabled, engine.enabled);
    found(Gate::StageProven, engine.proven);
    found(Gate::Depth, depth(occasion));
    found(Gate::EngineAdmitted, engine.admitted);
    found(Gate::ModelAdmitted, model.admitted);
    found(Gate::ProviderConfigured, model.configured);
    let reachable = destination.as_ref().map(drop).and(egress.as_ref().map(drop));
    found(Gate::DestinationReady, reachable.map(|()| Finding::Passed).map_err(Clone::clone));
    found(Gate::TargetAdmitted, target.found.as_ref().map(|_| Finding::Passed).map_err(Clone::clone));
    // A target or engine that was not found or admitted is not examined further.
    if let Ok(target) = &target.found {
        found(Gate::TargetClean, target::clean(contract, target));
    }
    found(Gate::ApprovalPresent, approval.judged());
    match &environment {
        Err(missing) => found(Gate::Environment, Err(missing.clone())),
        Ok(_) if contract.terms.has_preflight() => {}
        // Otherwise these two come after the probes.
        Ok(_) => {
            let reason = || "the contract has neither `environment` nor `expect_before`".to_owned();
            found(Gate::Environment, Ok(Finding::NotApplicable(reason())));
            found(Gate::Preflight, Ok(Finding::NotApplicable(reason())));
        }
    }

    let admissions = [engine.seen, model.seen, target.seen].into_iter().flatten().collect();
    let walls = destination.as_ref().map_or_else(|_| Vec::new(), |(_, walls)| walls.clone());
    let source = match &target.found {
        Ok(FoundTarget::Repo(repo)) => Some((repo.source.clone(), repo.before.clone())),
        _ => None,
    };
    let all_hold = !findings.values().any(|finding| matches!(finding, Finding::Missing(_)));
    let place = case.place();
    let ready = match (target.found, destination, toolchains.and_then(|own| Ok((own, environment?))), egress)
    {
        (Ok(target), Ok((destination, _)), Ok((toolchains, environment)), Ok(egress)) if all_hold => {
            let (router, identity) = (model.plan, engine.identity);
            let tools = destination::job_settings(toolchains, environment.as_ref());
            Some(Ready { target, destination, tools, environment, place, router, egress, identity })
        }
        _ => None,
    };
    let (engine_digest, needs) = (engine.digest, engine.needs);
    Gates { findings, ready, source, walls, admissions, approval, engine_digest, needs }
}

/// Everything that building an environment needs.
pub(crate) struct EnvironmentPlace {
    pub(crate) target: FoundTarget,
    pub(crate) destination: Box<dyn Destination>,
    pub(crate) environment: Option<PreparedEnvironment>,
    /// Read-only mounts of what the commands need.
    pub(crate) tools: JobSettings,
    /// The name of the destination, for containers with the image.
    pub(crate) place: String,
}

/// The same for a build without a run, or the gate that has to hold first.
pub(crate) fn environment_place(
    installation: &Installation,
    order: &Order,
) -> Result<EnvironmentPlace, BlockerRecord> {
    let cannot = |why: String| Blocker::EnvironmentFailed.because(why);
    let contract_digest = order.contract.digest().map_err(|e| cannot(e.to_string()))?;
    let choice = &installation.choice_for(&order.contract, &order.contract_dir);
    let case = Case { installation, order, occasion: Occasion::default(), contract_digest, choice };
    let environment = environment::find(case)?;
    let (destination, _) = destination::find(case)?;
    let toolchains = destination::find_toolchains(installation, &order.contract)?;
    let tools = destination::job_settings(toolchains, environment.as_ref());
    let target = target::find(case).found?;
    Ok(EnvironmentPlace { target, destination, environment, tools, place: case.place() })
}

/// The binding of an approval for this order, or the gate that has to hold first.
pub(crate) fn binding(
    installation: &Installation,
    order: &Order,
    purpose: Purpose,
) -> Result<Binding, BlockerRecord> {
    let cannot = |why: String| Blocker::EngineNotAdmitted.because(why);
    let contract_digest = order.contract.digest().map_err(|e| cannot(e.to_string()))?;
    let occasion = Occasion { purpose, ..Occasion::default() };
    let choice = &installation.choice_for(&order.contract, &order.contract_dir);
    let case = Case { installation, order, occasion, contract_digest, choice };
    let engine = engine::look(case);
    engine.registered?;
    let digest = engine.digest.ok_or_else(|| {
        cannot(format!("the program of `{}` cannot be read; admit the engine first", order.engine))
    })?;
    engine.proven?;
    let target = target::find(case).found?;
    let egress = egress::look(installation, order)?;
    let policies = installation.policies().map_err(|e| Blocker::ApprovalVoid.because(e.to_string()))?;
    Ok(approval::bind(case, digest, &target, &egress, policies.digest()))
}

/// Whether every admission still holds and the approver is still trusted. It is checked again
/// before an approval is used and before anything lands, because taking trust away must work while a run is under way.
pub(crate) fn still_admitted(
    installation: &Installation,
    (order, purpose): (&Order, Purpose),
    engine_digest: Option<Digest>,
    ruling: Option<&Signed<Ruling>>,
) -> Result<(), BlockerRecord> {
    engine::still_admitted(installation, &order.engine, engine_digest)?;
    target::still_admitted(installation, &order.contract)?;
    if purpose == Purpose::Work {
        model::still_admitted(installation, &order.contract)?;
    }
    match ruling {
        Some(ruling) => SignatureCheck::ruling(&installation.approvers(), ruling).map_err(|why| {
            Blocker::ApprovalVoid.because(format!("the approval does not count any more: {why}"))
        }),
        None => Ok(()),
    }
}

fn joined<T>(result: std::thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn complete(contract: &Contract, missing_toolchain: Option<&BlockerRecord>) -> Judged {
    if contract.terms.verify.is_empty() {
        return Err(BlockerRecord {
            next_step: "Name a command under `verify` that fails without the work and passes with it."
                .to_owned(),
            ..Blocker::MissingTestCommand.because("`verify` names no command")
        });
    }
    match missing_toolchain {
        Some(missing) => Err(missing.clone()),
        None => Ok(Finding::Passed),
    }
}

fn depth(occasion: Occasion<'_>) -> Judged {
    if inside_a_run() {
        return Err(Blocker::RecursionDepth.because("this herma was started inside a run"));
    }
    // Counted from run to run by this herma: no input from inside sets it.
    let depth = occasion.child_of.map_or(0, |parent| parent.depth);
    if depth > MAX_DEPTH {
        return Err(BlockerRecord {
            next_step: "Do the work in the run that asks for it.".to_owned(),
            ..Blocker::RecursionDepth
                .because(format!("it would lie {depth} runs deep, and {MAX_DEPTH} are the most"))
        });
    }
    Ok(Finding::Passed)
}
