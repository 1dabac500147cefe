//! Builds the environment of a contract without a run, for a person who wants to have it, to see why it fails, or to work in it.

use std::io;

use herma_core::RunId;
use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::environment::LayerBuildRecord;
use herma_destination::{StartError, Unready, inside_a_run};
use herma_environments::build::{self, BuiltEnvironment};
use herma_home::{RunDirs, remove_tree};

use crate::effectful_gates::probe_alone;
use crate::environment::{BuildFailure, BuildSite, no_history};
use crate::error::{OrderError, Stop};
use crate::gates::{self, EnvironmentPlace};
use crate::installation::Installation;
use crate::order::Order;
use crate::target::wanted_history;
use crate::tree_diff::{BaseTree, GivenHistory, base_tree, missing_note};

/// The environment of a contract could not be built.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The contract has none.
    #[error("the contract has no `environment`")]
    NoEnvironment,
    /// Target, destination, tools or registries are not there.
    #[error("{}: {}", .0.blocker, .0.detail)]
    Blocked(BlockerRecord),
    /// A command failed.
    #[error(transparent)]
    Build(#[from] build::BuildError),
    /// The shell could not be started.
    #[error("the shell could not be started: {0}")]
    Start(#[from] StartError),
    /// The shell was lost from sight.
    #[error("the shell could not be attended: {0}")]
    Shell(io::Error),
    /// A file could not be read or written.
    #[error(transparent)]
    Internal(#[from] OrderError),
}

/// A base and an environment that were prepared without a run. Their directories are removed when the caller is done.
pub(crate) struct EnvironmentSite<'a> {
    pub(crate) run_id: RunId,
    pub(crate) dirs: &'a RunDirs,
    pub(crate) base: &'a BaseTree,
    pub(crate) place: &'a EnvironmentPlace,
    /// None where the contract has no environment.
    pub(crate) built: Option<(BuiltEnvironment, Vec<LayerBuildRecord>)>,
}

/// Builds what is missing of the environment of an order's contract. No gate of the engine is asked, and nothing is run but the
/// commands of the environment.
pub fn build_environment(
    installation: &Installation,
    order: &Order,
    note: &(dyn Fn(&str) + Sync),
) -> Result<Vec<LayerBuildRecord>, EnvironmentError> {
    with_environment(installation, order, note, |site| {
        site.built.map(|(_, layers)| layers).ok_or(EnvironmentError::NoEnvironment)
    })
}

/// Prepares the base and the environment of an order's contract behind probed confinement, and calls `then`.
pub(crate) fn with_environment<T>(
    installation: &Installation,
    order: &Order,
    note: &(dyn Fn(&str) + Sync),
    then: impl FnOnce(EnvironmentSite<'_>) -> Result<T, EnvironmentError>,
) -> Result<T, EnvironmentError> {
    let place = gates::environment_place(installation, order).map_err(EnvironmentError::Blocked)?;
    if inside_a_run() {
        let why = Blocker::RecursionDepth.because("this herma was started inside a run");
        return Err(EnvironmentError::Blocked(why));
    }
    check_confinement(installation, &place)?;
    let mut entropy = [0; 10];
    getrandom::fill(&mut entropy).map_err(OrderError::Random)?;
    let run_id = RunId::new(installation.clock.now(), entropy);
    // Marked like a run: if herma is killed meanwhile, the next command removes what was made.
    let active = installation.home.activate(run_id).map_err(OrderError::home)?;
    let dirs = installation.home.run(run_id);
    dirs.create().map_err(OrderError::home)?;
    let ended = base_tree(installation, (&place.target, wanted_history(&order.contract)), &dirs);
    let ended = ended.map_err(stopped).and_then(|base| {
        if let Some(text) = missing_note(&base.missing) {
            note(&text);
        }
        if let GivenHistory::Unreadable(error) = &base.history {
            return Err(EnvironmentError::Blocked(no_history(error)));
        }
        let built = build(installation, order, (&place, &base), (run_id, &dirs), note)?;
        then(EnvironmentSite { run_id, dirs: &dirs, base: &base, place: &place, built })
    });
    remove_tree(dirs.root()).map_err(OrderError::home)?;
    active.done().map_err(OrderError::home)?;
    ended
}

/// Code of the project runs only behind confinement that holds, as in a run.
fn check_confinement(installation: &Installation, place: &EnvironmentPlace) -> Result<(), EnvironmentError> {
    let probed = probe_alone(installation, place.destination.as_ref());
    let probed = probed.map_err(|Unready { what, next_step }| {
        let unready = Blocker::DestinationUnready.because(what);
        EnvironmentError::Blocked(BlockerRecord { next_step, ..unready })
    })?;
    match probed.broken().first() {
        None => Ok(()),
        Some(broken) => {
            let why = Blocker::ConfinementFailed.because(format!("{}: {}", broken.name, broken.observed));
            Err(EnvironmentError::Blocked(why))
        }
    }
}

fn build(
    installation: &Installation,
    order: &Order,
    (place, base): (&EnvironmentPlace, &BaseTree),
    (run_id, dirs): (RunId, &RunDirs),
    note: &(dyn Fn(&str) + Sync),
) -> Result<Option<(BuiltEnvironment, Vec<LayerBuildRecord>)>, EnvironmentError> {
    let Some(prepared) = &place.environment else { return Ok(None) };
    for notice in prepared.notices() {
        note(notice);
    }
    let site = BuildSite {
        installation,
        destination: place.destination.as_ref(),
        place: &place.place,
        run_id,
        scratch: &dirs.environment(),
        memory: order.contract.terms.limits.memory,
        is_cancelled: &|| installation.cancellation.is_cancelled(),
        note,
    };
    match site.build(prepared, base.to_build()) {
        Ok(built) => Ok(Some(built)),
        Err(BuildFailure::Failed(error)) => Err(error.into()),
        Err(BuildFailure::Stopped(stop)) => Err(stopped(stop)),
    }
}

pub(crate) fn stopped(stop: Stop) -> EnvironmentError {
    match stop {
        Stop::Blocked => build::BuildError::Cancelled.into(),
        stop => OrderError::from(stop).into(),
    }
}
