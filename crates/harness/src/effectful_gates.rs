//! The gates with effects: they start processes inside the destination, and are evaluated only if all other gates hold.

mod alone;
mod identity;

use herma_core::Digest;
use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::event::ConfinementProbed;
use herma_core::gate::{Finding, Gate};
use herma_destination::probe::{ProbeError, ProbeSite, probe};
use herma_destination::{Confinement, Job, StartError, Unready};
use herma_evidence::layout;
use serde::{Deserialize, Serialize};

pub use alone::probe_alone;

use self::identity::Question;
use crate::context::{RunContext, pretty};
use crate::environment::{self, EnvironmentResults, RunEnvironment};
use crate::error::Stop;
use crate::gates::{Findings, Ready};
use crate::journal::StepResult;
use crate::path_shims;
use crate::process_end::limits;
use crate::program::{self, ProgramCheck};
use crate::run_router;
use crate::services::{Services, ServicesStarted};
use crate::tree_diff::BaseTree;

/// The next step where the sandbox could not be made in time.
const BUSY: &str = "Run the contract again when the machine is less busy. If it happens on an idle machine, \
                    `herma destinations` tries out what bubblewrap needs.";

/// The confinement of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ProbeResults {
    /// Whether the probes ran.
    pub(crate) confined: bool,
    /// Why there is nothing to probe.
    pub(crate) not_applicable: Option<String>,
}

impl StepResult for ProbeResults {
    const KEY: &'static str = "probe";
}

/// The processes of these gates, prepared; none of them runs yet.
pub(crate) struct Arranged<'a> {
    shape: Job,
    question: Option<Question<'a>>,
}

/// A destination that was probed, and the question to the engine's program inside it.
pub(crate) struct Probed<'a> {
    walls: Walls,
    question: Option<Question<'a>>,
}

/// The result of probing the destination.
enum Walls {
    /// The destination does not confine.
    Absent,
    /// The probes ran.
    Probed(Confinement),
    /// The probes could not be run.
    Failed(String),
    /// The destination is not ready.
    Unready(Unready),
}

/// Starts the services and prepares the processes of these gates, as for the engine itself. `None` where a gate without effects
/// turns out not to hold.
pub(crate) fn arrange<'r, 'a: 'r>(
    ctx: &RunContext<'a>,
    ready: &'r Ready,
    judged: Option<Digest>,
    findings: &mut Findings,
    (services, started): (&mut Services, &mut Option<ServicesStarted>),
) -> Result<Option<Arranged<'r>>, Stop> {
    if let Some(engine) = ctx.installation.engines.get(&ctx.plan.engine)
        && let ProgramCheck::Changed(changed) = program::copy(ctx, engine, judged)?
    {
        findings.insert(Gate::EngineAdmitted, Finding::Missing(changed));
        return Ok(None);
    }
    services.start(ctx, ready, started)?;
    path_shims::plant(ctx, ready)?;
    let shape = shape(ctx, services, ready)?;
    // Its sandbox is made while the destination is probed.
    let question = identity::prepare(ctx, ready, &shape)?;
    Ok(Some(Arranged { shape, question }))
}

/// Probes the destination. Other threads may prepare the run meanwhile.
pub(crate) fn probe_destination<'a>(
    ctx: &RunContext<'_>,
    ready: &Ready,
    Arranged { shape, question }: Arranged<'a>,
) -> Result<Probed<'a>, Stop> {
    Ok(Probed { walls: walls(ctx, ready, &shape)?, question })
}

fn walls(ctx: &RunContext<'_>, ready: &Ready, shape: &Job) -> Result<Walls, Stop> {
    let destination = ready.destination.as_ref();
    if !destination.capabilities().confines() {
        return Ok(Walls::Absent);
    }
    let readiness = match destination.readiness() {
        Ok(readiness) => readiness,
        Err(why) => return Ok(Walls::Failed(why.to_string())),
    };
    let scratch = ctx.dirs.probes();
    std::fs::create_dir(&scratch)
        .map_err(|e| Stop::internal(format!("making {}: {e}", scratch.display())))?;
    let site = ProbeSite {
        scratch: &scratch,
        herma_home: ctx.installation.home.root(),
        user_home: ctx.installation.user_home(),
        cancellation: &ctx.submission.cancellation,
    };
    let failed = match probe(destination, &readiness, shape, site) {
        Ok(confinement) => return Ok(Walls::Probed(confinement)),
        Err(ProbeError::Start(slow @ StartError::Slow { .. })) => {
            return Ok(Walls::Unready(Unready { what: slow.to_string(), next_step: BUSY.to_owned() }));
        }
        Err(failed) => failed,
    };
    // A rehearsal says why nothing could be started, and what to do about it.
    if !ctx.is_over()
        && let Err(unready) = destination.rehearse()
    {
        return Ok(Walls::Unready(unready));
    }
    Ok(Walls::Failed(failed.to_string()))
}

/// Where the gates with effects leave their results.
pub(crate) type GateOutputs<'s> =
    (&'s mut Findings, &'s mut Option<ProbeResults>, &'s mut Option<EnvironmentResults>);

/// Evaluates the gates with effects.
pub(crate) fn evaluate(
    ctx: &RunContext<'_>,
    services: &Services,
    (ready, base): (&Ready, &BaseTree),
    Probed { walls, question }: Probed<'_>,
    without_workspace: Option<Stop>,
    (findings, probe, environment): GateOutputs<'_>,
) -> Result<Option<RunEnvironment>, Stop> {
    ctx.check_cancelled()?;
    let confinement = confinement(ctx, walls, probe.insert(ProbeResults::default()))?;
    let confined = !matches!(confinement, Finding::Missing(_));
    findings.insert(Gate::Confinement, confinement);
    // Failed confinement is the better explanation of a missing workspace; with confinement nothing is asked in vain.
    if let Some(stop) = without_workspace.filter(|_| confined) {
        return Err(stop);
    }
    if !confined {
        return Ok(None);
    }
    // Only behind confinement that holds does code of the project run.
    let built = environment::evaluate(ctx, ready, base, (&mut *findings, environment))?;
    // A gate that is not evaluated blocks as well.
    if !findings.values().any(|finding| matches!(finding, Finding::Missing(_))) {
        let identity = identity::identity(ctx, ready, question);
        ctx.check_cancelled()?;
        let identified = !matches!(identity, Finding::Missing(_));
        findings.insert(Gate::EngineIdentity, identity);
        // The model is asked last: that costs money.
        if identified {
            let shape = run_router::response_shape(ctx, services.router.as_ref(), ready.router.as_ref());
            ctx.check_cancelled()?;
            findings.insert(Gate::ProviderResponseShape, shape);
        }
    }
    Ok(built)
}

/// The job that every process here starts from: the mounts, the limits and the search path of the engine itself.
fn shape(ctx: &RunContext<'_>, services: &Services, ready: &Ready) -> Result<Job, Stop> {
    let engine = ctx.engine()?;
    let mounts = ready.tools.mounts.iter().cloned();
    let mounts = mounts.chain(program::mounts(ctx, engine)).chain(path_shims::mount(ctx)).collect();
    let path = path_shims::path(ctx).into_iter().chain(ready.tools.search_path.iter().cloned()).collect();
    Ok(Job::new(ctx.plan.run_id, Vec::new(), services.job_paths(ctx))
        .with_search_path(path)
        .with_mounts(mounts)
        .with_limits(limits(ctx.contract))
        .with_herma())
}

fn confinement(ctx: &RunContext<'_>, walls: Walls, found: &mut ProbeResults) -> Result<Finding, Stop> {
    let failed = |detail: String| Ok(Finding::Missing(Blocker::ConfinementFailed.because(detail)));
    let confinement = match walls {
        Walls::Absent => {
            let reason = "`host` has no confinement, and only `fake` may run there";
            found.not_applicable = Some(reason.to_owned());
            return Ok(Finding::NotApplicable(reason.to_owned()));
        }
        Walls::Unready(Unready { what, next_step }) => {
            let unready = Blocker::DestinationUnready.because(what);
            return Ok(Finding::Missing(BlockerRecord { next_step, ..unready }));
        }
        Walls::Failed(why) => return failed(why),
        Walls::Probed(confinement) => confinement,
    };
    ctx.remove_aside(ctx.dirs.probes());
    ctx.bundle.write(layout::CONFINEMENT, &pretty(&confinement)?)?;
    let broken: Vec<String> =
        confinement.broken().iter().map(|p| format!("{}: {}", p.name, p.observed)).collect();
    found.confined = true;
    ctx.record(ConfinementProbed { probes: confinement.probes.len(), broken: broken.clone() })?;
    if broken.is_empty() { Ok(Finding::Passed) } else { failed(broken.join("; ")) }
}
