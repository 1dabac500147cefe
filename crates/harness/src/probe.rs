//! The gates with effects: they start processes inside the destination, and only if all other gates hold.

mod alone;
mod identity;

use herma_destination::probe::{Grounds, probe};
use herma_destination::{Job, Limits, Stdin};
use herma_evidence::layout;
use herma_model::EventType;
use herma_model::blocker::{Blocker, BlockerRecord};
use herma_model::engine::DestinationKind;
use herma_model::gate::{Finding, Gate};
use serde_json::json;

pub use alone::probe_alone;

use crate::attempts;
use crate::egress;
use crate::error::Stop;
use crate::gates::{Findings, Ready};
use crate::governance;
use crate::models;
use crate::program;
use crate::run::{Run, pretty};
use crate::supervise;

/// Evaluates the gates with effects. It comes to them only if all others hold.
pub(crate) fn evaluate(run: &mut Run<'_>, ready: &Ready, findings: &mut Findings) -> Result<(), Stop> {
    if let Some(engine) = run.installation.engines.get(&run.plan.engine)
        && let Err(swapped) = program::copy(run, engine)?
    {
        findings.insert(Gate::EngineAdmitted, Finding::Missing(swapped));
        return Ok(());
    }
    models::start(run, ready.router.as_ref())?;
    egress::start(run, &ready.egress)?;
    governance::start(run)?;
    attempts::plant(run, ready)?;
    let shape = shape(run, ready)?;
    // Its walls are made while they are tried.
    let question = identity::prepare(run, ready, &shape)?;
    let confinement = confinement(run, ready, &shape)?;
    let confined = !matches!(confinement, Finding::Missing(_));
    findings.insert(Gate::Confinement, confinement);
    // The engine's program is asked who it is only behind walls that hold; what is not asked blocks as well.
    if confined {
        let identity = identity::identity(run, ready, question);
        run.heed()?;
        let identified = !matches!(identity, Finding::Missing(_));
        findings.insert(Gate::EngineIdentity, identity);
        // The model is asked last: that costs something.
        if identified {
            let shape = models::response_shape(run, ready.router.as_ref());
            run.heed()?;
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
    Ok(Job {
        run_id: run.plan.run_id,
        argv: Vec::new(),
        env: Vec::new(),
        path: attempts::path(run).into_iter().chain(ready.toolchains.path.iter().cloned()).collect(),
        rooms: supervise::rooms(run),
        mounts: ready
            .toolchains
            .mounts
            .iter()
            .cloned()
            .chain(program::mounts(run, engine))
            .chain(attempts::mount(run))
            .collect(),
        hidden: Vec::new(),
        stdin: Stdin::Null,
        limits: Limits::with_memory(run.contract.terms.limits.memory),
        herma: true,
    })
}

fn confinement(run: &mut Run<'_>, ready: &Ready, shape: &Job) -> Result<Finding, Stop> {
    let destination = ready.destination.as_ref();
    if destination.kind() == DestinationKind::Host {
        let reason = "`host` has no walls, and only `fake` may run there";
        run.facts.not_applicable.insert(layout::CONFINEMENT.to_owned(), reason.to_owned());
        return Ok(Finding::NotApplicable(reason.to_owned()));
    }
    let failed = |detail: String| Ok(Finding::Missing(Blocker::ConfinementFailed.because(detail)));
    let readiness = match destination.readiness() {
        Ok(readiness) => readiness,
        Err(why) => return failed(why.to_string()),
    };
    let home = &run.installation.home;
    let user_home = run.installation.user_home();
    let scratch = run.dirs.probes();
    std::fs::create_dir(&scratch)
        .map_err(|e| Stop::Internal(format!("making {}: {e}", scratch.display())))?;
    let interruption = &run.installation.interruption;
    let grounds = Grounds { scratch: &scratch, herma_home: home.root(), user_home, interruption };
    let probed = probe(destination, &readiness, shape, grounds);
    run.remove_aside(scratch);
    run.heed()?;
    let confinement = match probed {
        Ok(confinement) => confinement,
        Err(why) => {
            // Nothing could be started: a rehearsal says why, and what to do about it.
            return match destination.rehearse() {
                Ok(_) => failed(why.to_string()),
                Err(unready) => Ok(Finding::Missing(BlockerRecord {
                    next_step: unready.next_step,
                    ..Blocker::DestinationUnready.because(unready.what)
                })),
            };
        }
    };
    run.bundle.write(layout::CONFINEMENT, &pretty(&confinement)?)?;
    let broken: Vec<String> =
        confinement.broken().iter().map(|p| format!("{}: {}", p.name, p.observed)).collect();
    run.facts.confined = true;
    run.record(
        EventType::ConfinementProbed,
        json!({ "probes": confinement.probes.len(), "broken": broken }),
    )?;
    if broken.is_empty() { Ok(Finding::Passed) } else { failed(broken.join("; ")) }
}
