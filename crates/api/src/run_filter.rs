//! Which runs a list shows: by default a person's own work, without proofs, comparisons and demos.

use std::collections::HashSet;
use std::path::Path;

use herma_core::contract::Target;
use herma_core::decision::Purpose;
use herma_core::engine::EngineName;
use herma_core::store::{RunQuery, RunSummary, StoreError};
use herma_core::{Contract, Decision, Digest, RunId, Status, Timestamp};
use herma_evidence::layout;
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_harness::Installation;
use herma_ladder::Comparisons;

/// How many runs are read of the store at once.
const PAGE: u32 = 200;

/// The runs that are wanted.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// Whether proofs, comparisons and demos are wanted too.
    pub all: bool,
    /// Only runs of contracts of this name.
    pub contract: Option<String>,
    /// Only runs of this engine.
    pub engine: Option<EngineName>,
    /// Only runs on this repository: as contracts name it, or the last part of that.
    pub repository: Option<String>,
    /// Only runs with this verdict.
    pub status: Option<Status>,
    /// Only runs that started at that time or later.
    pub since: Option<Timestamp>,
}

/// The runs that were found.
#[derive(Clone, Debug, Default)]
pub struct FoundRuns {
    /// They, newest first.
    pub runs: Vec<RunSummary>,
    /// How many proofs, comparisons and demos were left out before the last of them.
    pub left_out: usize,
    /// Whether there may be more.
    pub has_more: bool,
}

/// Finds at most `limit` runs, newest first, that were recorded before this one.
pub fn find_runs(
    installation: &Installation,
    filter: &RunFilter,
    before: Option<RunId>,
    limit: usize,
) -> Result<FoundRuns, StoreError> {
    let others = if filter.all { OtherWork::default() } else { OtherWork::of(installation) };
    let mut found = FoundRuns::default();
    let mut before = before;
    loop {
        let query = RunQuery { limit: PAGE, before, status: filter.status };
        let page = installation.store.call(|store| store.runs(&query))?;
        let is_last = page.len() < PAGE as usize;
        for run in page {
            before = Some(run.run_id);
            if !filter.takes(installation, &run) {
                continue;
            }
            if !filter.all && others.has(installation, &run) {
                found.left_out += 1;
                continue;
            }
            if found.runs.len() == limit {
                found.has_more = true;
                return Ok(found);
            }
            found.runs.push(run);
        }
        if is_last {
            return Ok(found);
        }
    }
}

impl RunFilter {
    /// Whether every run is wanted.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        let Self { all, contract, engine, repository, status, since } = self;
        *all && contract.is_none()
            && engine.is_none()
            && repository.is_none()
            && status.is_none()
            && since.is_none()
    }

    fn takes(&self, installation: &Installation, run: &RunSummary) -> bool {
        let bundle = || installation.home.run(run.run_id).bundle();
        self.contract.as_ref().is_none_or(|name| run.contract_id.as_str() == name)
            && self.engine.as_ref().is_none_or(|name| run.engine == *name)
            && self.since.is_none_or(|since| run.started_at >= since)
            && self.repository.as_ref().is_none_or(|name| is_on(&bundle(), name))
    }
}

/// Whether the contract of a bundle is about this repository.
fn is_on(bundle: &Path, name: &str) -> bool {
    let wanted = name.trim_end_matches('/');
    target_name(bundle).is_some_and(|target| target == wanted || last_part(&target) == last_part(wanted))
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The repository of a bundle's contract, or `fixture:NAME`.
#[must_use]
pub fn target_name(bundle: &Path) -> Option<String> {
    let text = read_regular(&bundle.join(layout::CONTRACT), MAX_RECORD_BYTES).ok()?;
    match Contract::parse(&text).ok()?.terms.target {
        Target::Fixture(name) => Some(format!("fixture:{name}")),
        Target::Repo { repo, .. } => Some(repo.as_str().trim_end_matches('/').to_owned()),
    }
}

/// The runs that are not a person's own work.
#[derive(Default)]
struct OtherWork {
    /// The digests of the built-in contracts, which demos run.
    demos: HashSet<Digest>,
    compared: HashSet<RunId>,
}

impl OtherWork {
    fn of(installation: &Installation) -> Self {
        let digest = |text: &str| Contract::parse(text.as_bytes()).ok()?.digest().ok();
        let demos = herma_fixtures::all().iter().filter_map(|fixture| digest(fixture.contract)).collect();
        Self { demos, compared: Comparisons::of(installation).compared_runs() }
    }

    fn has(&self, installation: &Installation, run: &RunSummary) -> bool {
        self.demos.contains(&run.contract_digest)
            || self.compared.contains(&run.run_id)
            || is_proof(&installation.home.run(run.run_id).bundle())
    }
}

/// Whether the decision of a bundle says that the run is a case of a proof.
fn is_proof(bundle: &Path) -> bool {
    let read = read_regular(&bundle.join(layout::DECISION), MAX_RECORD_BYTES);
    let decision = read.ok().and_then(|bytes| serde_json::from_slice::<Decision>(&bytes).ok());
    decision.is_some_and(|decision| decision.purpose == Purpose::Proof)
}
