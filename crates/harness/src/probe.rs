//! The gates with effects: they start processes inside the destination, and only if all other gates hold.

mod alone;
mod identity;

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::event::ConfinementProbed;
use herma_core::gate::{Finding, Gate};
use herma_destination::probe::{ProbeError, ProbeSite, probe};
use herma_destination::{Confinement, Job, StartError, Unready};
use herma_evidence::layout;

pub use alone::probe_alone;

use self::identity::Question;
use crate::attempts;
use crate::egress;
use crate::error::Stop;
use crate::gates::{Findings, Ready};
use crate::governance;
use crate::models;
use crate::program;
use crate::run::{Run, pretty};
use crate::supervise;

/// What to do where the walls could not be made in time.
const BUSY: &str = "Run the contract again when the machine is less busy. If it happens on an idle machine, \
                    `herma destinations` tries out what bubblewrap needs.";

/// What is asked behind the walls, and by whom; nothing of it runs yet.
pub(crate) struct Arranged<'a> {
    shape: Job,
    question: Option<Question<'a>>,
}

/// Walls that were tried, and what is asked behind them.
pub(crate) struct Tried<'a> {
    walls: Walls,
    question: Option<Question<'a>>,
}

/// What came of trying the walls.
enum Walls {
    /// There are none.
    Absent,
    /// Their probes were run, or could not be.
    Probed(Result<Confinement, String>),
    /// They cannot be made here.
    Unready(Unready),
}

/// Arranges the gates with effects: what the engine can call is there, as it will be for the engine. It comes to them only if
/// all others hold; `None` where one turns out not to.
pub(crate) fn arrange<'r, 'a: 'r>(
    run: &mut Run<'a>,
    ready: &'r Ready,
    findings: &mut Findings,
) -> Result<Option<Arranged<'r>>, Stop> {
    if let Some(engine) = run.installation.engines.get(&run.plan.engine)
        && let Err(swapped) = program::copy(run, engine)?
    {
        findings.insert(Gate::EngineAdmitted, Finding::Missing(swapped));
        return Ok(None);
    }
    models::start(run, ready.router.as_ref())?;
    egress::start(run, &ready.egress)?;
    governance::start(run)?;
    attempts::plant(run, ready)?;
    let shape = shape(run, ready)?;
    // Its walls are made while they are tried.
    let question = identity::prepare(run, ready, &shape)?;
    Ok(Some(Arranged { shape, question }))
}

/// Tries the walls, beside whatever else is done for the run.
pub(crate) fn try_walls<'a>(
    run: &Run<'_>,
    ready: &Ready,
    Arranged { shape, question }: Arranged<'a>,
) -> Result<Tried<'a>, Stop> {
    Ok(Tried { walls: walls(run, ready, &shape)?, question })
}

fn walls(run: &Run<'_>, ready: &Ready, shape: &Job) -> Result<Walls, Stop> {
    let destination = ready.destination.as_ref();
    if !destination.capabilities().confines() {
        return Ok(Walls::Absent);
    }
    let readiness = match destination.readiness() {
        Ok(readiness) => readiness,
        Err(why) => return Ok(Walls::Probed(Err(why.to_string()))),
    };
    let scratch = run.dirs.probes();
    std::fs::create_dir(&scratch)
        .map_err(|e| Stop::Internal(format!("making {}: {e}", scratch.display())))?;
    let site = ProbeSite {
        scratch: &scratch,
        herma_home: run.installation.home.root(),
        user_home: run.installation.user_home(),
        cancellation: &run.submission.cancellation,
    };
    let probed = match probe(destination, &readiness, shape, site) {
        Err(ProbeError::Start(slow @ StartError::Slow { .. })) => {
            return Ok(Walls::Unready(Unready { what: slow.to_string(), next_step: BUSY.to_owned() }));
        }
        probed => probed.map_err(|why| why.to_string()),
    };
    if probed.is_err() && !run.is_over() {
        // Nothing could be started: a rehearsal says why, and what to do about it.
        if let Err(unready) = destination.rehearse() {
            return Ok(Walls::Unready(unready));
        }
    }
    Ok(Walls::Probed(probed))
}

/// Evaluates the gates with effects.
pub(crate) fn evaluate(
    run: &mut Run<'_>,
    ready: &Ready,
    Tried { walls, question }: Tried<'_>,
    without_workspace: Option<Stop>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    run.check_cancelled()?;
    let confinement = confinement(run, walls)?;
    let confined = !matches!(confinement, Finding::Missing(_));
    findings.insert(Gate::Confinement, confinement);
    // Walls that do not hold say more of why there is no workspace; with others nobody is asked in vain.
    if let Some(stop) = without_workspace.filter(|_| confined) {
        return Err(stop);
    }
    // The engine's program is asked who it is only behind walls that hold; what is not asked blocks as well.
    if confined {
        let identity = identity::identity(run, ready, question);
        run.check_cancelled()?;
        let identified = !matches!(identity, Finding::Missing(_));
        findings.insert(Gate::EngineIdentity, identity);
        // The model is asked last: that costs something.
        if identified {
            let shape = models::response_shape(run, ready.router.as_ref());
            run.check_cancelled()?;
            findings.insert(Gate::ProviderResponseShape, shape);
        }
    }
    Ok(())
}

/// What every process here is started with: the mounts, the limits and the search path of the engine itself.
fn shape(run: &Run<'_>, ready: &Ready) -> Result<Job, Stop> {
    let Some(engine) = run.installation.engines.get(&run.plan.engine) else {
        return Err(Stop::Internal("the engine is gone".to_owned()));
    };
    let mounts = ready.toolchains.mounts.iter().cloned();
    let mounts = mounts.chain(program::mounts(run, engine)).chain(attempts::mount(run)).collect();
    let path = attempts::path(run).into_iter().chain(ready.toolchains.path.iter().cloned()).collect();
    Ok(Job::new(run.plan.run_id, Vec::new(), supervise::job_paths(run))
        .with_search_path(path)
        .with_mounts(mounts)
        .with_limits(supervise::limits(run.contract))
        .with_herma())
}

fn confinement(run: &mut Run<'_>, walls: Walls) -> Result<Finding, Stop> {
    let failed = |detail: String| Ok(Finding::Missing(Blocker::ConfinementFailed.because(detail)));
    let confinement = match walls {
        Walls::Absent => {
            let reason = "`host` has no walls, and only `fake` may run there";
            run.facts.not_applicable.insert(layout::CONFINEMENT.to_owned(), reason.to_owned());
            return Ok(Finding::NotApplicable(reason.to_owned()));
        }
        Walls::Unready(Unready { what, next_step }) => {
            let unready = Blocker::DestinationUnready.because(what);
            return Ok(Finding::Missing(BlockerRecord { next_step, ..unready }));
        }
        Walls::Probed(Err(why)) => return failed(why),
        Walls::Probed(Ok(confinement)) => confinement,
    };
    run.remove_aside(run.dirs.probes());
    run.bundle.write(layout::CONFINEMENT, &pretty(&confinement)?)?;
    let broken: Vec<String> =
        confinement.broken().iter().map(|p| format!("{}: {}", p.name, p.observed)).collect();
    run.facts.confined = true;
    run.record(ConfinementProbed { probes: confinement.probes.len(), broken: broken.clone() })?;
    if broken.is_empty() { Ok(Finding::Passed) } else { failed(broken.join("; ")) }
}
