//! The evidence of the runs of this installation, verified by its own keys.

use herma_core::RunId;
use herma_evidence::verify::CheckList;
use herma_evidence::{ExpectedRun, Trust};
use herma_home::Home;
use herma_store::BlockingStore;

use crate::approvers::Approvers;
use crate::bundle_check::verify_run;

/// The bundles of an installation, its index of runs, and the keys whose signatures count on them.
#[derive(Clone)]
pub struct RunEvidence<'a> {
    /// The home that the bundles are in.
    pub home: &'a Home,
    /// The index of runs.
    pub store: &'a BlockingStore,
    /// The approvers whose signatures count on outcomes.
    pub approvers: Approvers,
}

impl RunEvidence<'_> {
    /// The keys whose signatures count: this installation's on evidence, its approvers' on outcomes.
    #[must_use]
    pub fn trust(&self) -> Trust {
        self.approvers.trust()
    }

    /// The run whose bundle must be in the directory of `run_id`, with the contract that the store has for it.
    #[must_use]
    pub fn expected_run(&self, run_id: RunId) -> ExpectedRun {
        let name = run_id.to_string();
        let found = self.store.call(|store| store.find_runs(&name)).unwrap_or_default();
        let contract_digest = found.iter().find(|run| run.run_id == run_id).map(|run| run.contract_digest);
        ExpectedRun { run_id, contract_digest }
    }

    /// Verifies the bundle of a run of this installation.
    #[must_use]
    pub fn verify(&self, run_id: RunId) -> CheckList {
        verify_run(&self.home.run(run_id).bundle(), &self.expected_run(run_id), &self.trust(), None, None)
    }
}
