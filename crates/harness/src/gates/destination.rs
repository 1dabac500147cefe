//! The destination and the toolchains: where the engine would run, and with what.

use herma_core::Contract;
use herma_core::Stage;
use herma_core::blocker::{Blocker, BlockerRecord};
use herma_destination::toolchain::{self, Toolchains};
use herma_destination::{Destination, Unready};
use herma_environments::build::JobSettings;
use herma_environments::prepare::PreparedEnvironment;

use super::Case;
use crate::installation::Installation;

type WithWalls = (Box<dyn Destination>, Vec<String>);

/// The destination, if it is ready and may be used for this engine at this stage.
pub(super) fn find(case: Case<'_>) -> Result<WithWalls, BlockerRecord> {
    let Case { installation, order, .. } = case;
    let kind = order.destination();
    let unready = |what: String| Blocker::DestinationUnready.because(what);
    let blocked = |why: Unready| BlockerRecord {
        next_step: why.next_step,
        ..Blocker::DestinationUnready.because(why.what)
    };
    let choice = case
        .choice
        .as_ref()
        .map_err(|why| blocked(Unready { what: why.to_string(), next_step: why.next_step() }))?;
    let destination = installation.destination(kind, choice.as_ref()).map_err(blocked)?;
    if let Some(engine) = installation.engines.get(&order.engine)
        && !kind.confines()
        && !engine.may_run_unconfined()
    {
        return Err(unready(format!("`{}` may not run on `{}`", order.engine, kind.as_str())));
    }
    let stage = order.contract.terms.stage;
    if !kind.confines() && stage > Stage::CopiedRepo {
        return Err(unready(format!("stage {stage} lands in a repository, and `host` has no confinement")));
    }
    match destination.readiness() {
        Ok(ready) => Ok((destination, ready.walls)),
        Err(why) => Err(blocked(why)),
    }
}

/// The settings of every job: those of the environment, then the toolchains.
pub(super) fn job_settings(toolchains: Toolchains, environment: Option<&PreparedEnvironment>) -> JobSettings {
    let mut settings = environment.map(|found| found.plan().job_settings()).unwrap_or_default();
    for mount in toolchains.mounts {
        if !settings.mounts.contains(&mount) {
            settings.mounts.push(mount);
        }
    }
    settings.search_path.extend(toolchains.path);
    settings
}

/// The contract's toolchains.
pub(super) fn find_toolchains(
    installation: &Installation,
    contract: &Contract,
) -> Result<Toolchains, BlockerRecord> {
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
