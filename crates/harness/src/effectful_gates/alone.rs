//! The confinement probes without a run, for a person who wants to see them.

use std::fmt::Display;

use herma_core::RunId;
use herma_destination::probe::{ProbeSite, probe};
use herma_destination::{Confinement, Destination, Job, JobPaths, Unready};
use herma_home::remove_tree;

use crate::installation::Installation;

/// Runs every probe in a destination, as before the engine of a run without toolchains. The error says why that could not
/// be done, and what to do about it; that is not a pass.
pub fn probe_alone(
    installation: &Installation,
    destination: &dyn Destination,
) -> Result<Confinement, Unready> {
    let readiness = destination.readiness()?;
    let mut entropy = [0; 10];
    getrandom::fill(&mut entropy).map_err(|e| cannot(&e))?;
    let run_id = RunId::new(installation.clock.now(), entropy);
    let home = &installation.home;
    // Marked like a run: if herma is killed meanwhile, the next command takes away what was planted.
    let active = home.activate(run_id).map_err(|e| cannot(&e))?;
    let dirs = home.run(run_id);
    dirs.create().map_err(|e| cannot(&e))?;
    let paths = JobPaths::new(dirs.workspace()).with_engine_dir(dirs.engine());
    let shape = Job::new(run_id, Vec::new(), paths).with_herma();
    let site = ProbeSite {
        scratch: dirs.root(),
        herma_home: home.root(),
        user_home: installation.user_home(),
        cancellation: &installation.cancellation,
    };
    let found = probe(destination, &readiness, &shape, site);
    remove_tree(dirs.root()).map_err(|e| cannot(&e))?;
    active.done().map_err(|e| cannot(&e))?;
    found.map_err(|why| {
        // Where nothing can be started, a rehearsal says why.
        destination.rehearse().err().unwrap_or_else(|| cannot(&why))
    })
}

fn cannot(why: &dyn Display) -> Unready {
    Unready {
        what: why.to_string(),
        next_step: "see whether herma's home can be written, and what `herma doctor` says".to_owned(),
    }
}
