//! Builds the environment of a contract without a run, for a person who wants to have it, or to see why it fails.

use herma_core::RunId;
use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::environment::LayerBuildRecord;
use herma_destination::{Unready, inside_a_run};
use herma_environments::build;
use herma_home::remove_tree;

use crate::effectful_gates::probe_alone;
use crate::environment::{BuildFailure, BuildSite};
use crate::error::{OrderError, Stop};
use crate::gates::{self, EnvironmentPlace};
use crate::installation::Installation;
use crate::order::Order;
use crate::tree_diff::base_tree;

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
    /// A file could not be read or written.
    #[error(transparent)]
    Internal(#[from] OrderError),
}

/// Builds what is missing of the environment of an order's contract. No gate of the engine is asked, and nothing is run but the
/// commands of the environment.
pub fn build_environment(
    installation: &Installation,
    order: &Order,
    note: &(dyn Fn(&str) + Sync),
) -> Result<Vec<LayerBuildRecord>, EnvironmentError> {
    let EnvironmentPlace { target, destination, environment, place } =
        gates::environment_place(installation, order).map_err(EnvironmentError::Blocked)?;
    let prepared = environment.ok_or(EnvironmentError::NoEnvironment)?;
    if inside_a_run() {
        let why = Blocker::RecursionDepth.because("this herma was started inside a run");
        return Err(EnvironmentError::Blocked(why));
    }
    // Code of the project runs only behind confinement that holds, as in a run.
    let probed = probe_alone(installation, destination.as_ref());
    let probed = probed.map_err(|Unready { what, next_step }| {
        let unready = Blocker::DestinationUnready.because(what);
        EnvironmentError::Blocked(BlockerRecord { next_step, ..unready })
    })?;
    if let Some(broken) = probed.broken().first() {
        let why = Blocker::ConfinementFailed.because(format!("{}: {}", broken.name, broken.observed));
        return Err(EnvironmentError::Blocked(why));
    }
    let mut entropy = [0; 10];
    getrandom::fill(&mut entropy).map_err(OrderError::Random)?;
    let run_id = RunId::new(installation.clock.now(), entropy);
    // Marked like a run: if herma is killed meanwhile, the next command removes what was made.
    let active = installation.home.activate(run_id).map_err(OrderError::home)?;
    let dirs = installation.home.run(run_id);
    dirs.create().map_err(OrderError::home)?;
    let built = base_tree(installation, &target, &dirs).map_err(BuildFailure::Stopped).and_then(|base| {
        let tree =
            build::BaseTree { git_dir: &base.git_dir, tree: &base.baseline.tree, entries: &base.entries };
        let site = BuildSite {
            installation,
            destination: destination.as_ref(),
            place: &place,
            run_id,
            scratch: &dirs.environment(),
            memory: order.contract.terms.limits.memory,
            is_cancelled: &|| installation.cancellation.is_cancelled(),
            note,
        };
        site.build(&prepared, tree)
    });
    remove_tree(dirs.root()).map_err(OrderError::home)?;
    active.done().map_err(OrderError::home)?;
    match built {
        Ok((_, records)) => Ok(records),
        Err(BuildFailure::Failed(error)) => Err(error.into()),
        Err(BuildFailure::Stopped(Stop::Blocked)) => Err(build::BuildError::Cancelled.into()),
        Err(BuildFailure::Stopped(stop)) => Err(OrderError::from(stop).into()),
    }
}
