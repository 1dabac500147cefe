//! Removes old workspaces, sessions and environments, and bundles that nothing names. It is planned first, and shown.

mod age;
mod named;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use herma_core::store::{RunQuery, RunSummary, StoreError};
use herma_core::trust::TrustHead;
use herma_core::{Digest, RunId, Timestamp};
use herma_environments::layers::LayerStore;
use herma_evidence::layout;
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_harness::Installation;

pub use self::age::{Age, BadAge};
pub(crate) use self::named::in_use;
use self::named::{Named, head_of, named_by_bundle};
use crate::output::{GcBundle, GcEnvironment, GcKept, GcOutput, GcWorkspace};

/// How many runs the store returns at a time.
const PAGE: u32 = 1_000;

/// The limits of a collection.
#[derive(Clone, Copy, Debug)]
pub struct GcLimits {
    /// For workspaces, sessions and environments.
    pub older_than: Age,
    /// For bundles; none are removed without it.
    pub bundles_older_than: Option<Age>,
}

/// Nothing, or not everything, was collected.
#[derive(Debug, thiserror::Error)]
pub enum GcError {
    /// The store could not list the runs.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A directory could not be read or removed.
    #[error("{what}: {cause}")]
    Io {
        /// The directory.
        what: String,
        /// The cause.
        cause: io::Error,
    },
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> GcError {
    let what = what.into();
    move |cause| GcError::Io { what, cause }
}

/// Lists what would be removed. Nothing is changed.
pub fn plan_gc(installation: &Installation, limits: &GcLimits) -> Result<GcOutput, GcError> {
    let runs = all_runs(installation)?;
    let active: BTreeSet<RunId> =
        installation.home.active_runs().map_err(failed("the active runs"))?.into_iter().collect();
    let in_use = in_use(installation).map_err(failed("the active runs"))?;
    let now = installation.now();
    let ended_before = |run: &RunSummary, limit: Option<Timestamp>| {
        let ended = run.finished_at.filter(|_| run.status.is_some() && !active.contains(&run.run_id));
        ended.zip(limit).is_some_and(|(ended, limit)| ended <= limit)
    };
    let old = limits.older_than.before(now);
    let mut output = GcOutput { schema: "herma.gc/v1", ..GcOutput::default() };
    for run in runs.iter().filter(|run| ended_before(run, old) && !in_use.contains(&run.run_id)) {
        let dirs = installation.home.run(run.run_id);
        let kept = dirs.kept();
        if !kept.is_empty() {
            let bytes = kept.iter().map(|(_, dir)| bytes_below(dir)).sum();
            let kept = kept.into_iter().map(|(name, _)| name).collect();
            output.workspaces.push(GcWorkspace { run_id: run.run_id, kept, bytes });
        }
    }
    output.environments = environments(installation, old)?;
    if let Some(age) = limits.bundles_older_than {
        let limit = age.before(now);
        let old: Vec<&RunSummary> = runs.iter().filter(|run| ended_before(run, limit)).collect();
        plan_bundles(installation, &old, &in_use, &mut output)?;
    }
    let bytes = [
        output.workspaces.iter().map(|workspace| workspace.bytes).sum::<u64>(),
        output.environments.iter().map(|environment| environment.bytes).sum(),
        output.bundles.iter().map(|bundle| bundle.bytes).sum(),
    ];
    output.bytes = bytes.into_iter().sum();
    Ok(output)
}

/// Removes what a new plan with the same limits lists, as far as the shown plan listed it too.
pub fn collect_garbage(
    installation: &Installation,
    limits: &GcLimits,
    shown: &GcOutput,
) -> Result<GcOutput, GcError> {
    let mut output = plan_gc(installation, limits)?;
    let is_shown = |run: RunId| shown.workspaces.iter().any(|other| other.run_id == run);
    output.workspaces.retain(|workspace| is_shown(workspace.run_id));
    output.environments.retain(|layer| shown.environments.iter().any(|other| other.key == layer.key));
    output.bundles.retain(|bundle| shown.bundles.iter().any(|other| other.run_id == bundle.run_id));
    for workspace in &output.workspaces {
        let what = format!("what run {} keeps", workspace.run_id);
        installation.home.discard(workspace.run_id, installation.now()).map_err(failed(what))?;
    }
    if !output.environments.is_empty() {
        let store = LayerStore::open(&installation.home.environments()).map_err(failed("environments"))?;
        let mut removed = Vec::new();
        for layer in std::mem::take(&mut output.environments) {
            let what = format!("the environment {}", layer.key);
            // One that a process uses by now stays.
            if store.remove(&layer.key.hex()).map_err(failed(what))? {
                removed.push(layer);
            }
        }
        output.environments = removed;
    }
    for bundle in &output.bundles {
        let what = format!("the bundle of run {}", bundle.run_id);
        let removed = installation.home.remove_bundle(bundle.run_id, bundle.attestation, installation.now());
        removed.map_err(failed(what))?;
    }
    output.removed = true;
    Ok(output)
}

/// Every run that the store knows.
fn all_runs(installation: &Installation) -> Result<Vec<RunSummary>, StoreError> {
    let mut all: Vec<RunSummary> = Vec::new();
    loop {
        let before = all.last().map(|run| run.run_id);
        let query = RunQuery { limit: PAGE, before, status: None };
        let page = installation.store.call(|store| store.runs(&query))?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// The environments that were used last before the limit. One whose last use is unknown stays.
fn environments(
    installation: &Installation,
    limit: Option<Timestamp>,
) -> Result<Vec<GcEnvironment>, GcError> {
    let store = LayerStore::open(&installation.home.environments()).map_err(failed("environments"))?;
    let layers = store.list().map_err(failed("environments"))?;
    let old = layers.into_iter().filter(|layer| {
        !layer.in_use && layer.last_used.zip(limit).is_some_and(|(used, limit)| used <= limit)
    });
    old.map(|layer| {
        let key = format!("sha256:{}", layer.record.key.name()).parse();
        let key: Digest = key.map_err(|_| failed("environments")(io::Error::other("a key is no digest")))?;
        Ok(GcEnvironment { key, bytes: layer.record.tree.bytes })
    })
    .collect()
}

/// Divides the bundles of old runs into those that nothing names and the others.
fn plan_bundles(
    installation: &Installation,
    old: &[&RunSummary],
    in_use: &BTreeSet<RunId>,
    output: &mut GcOutput,
) -> Result<(), GcError> {
    let mut named = Named::read(installation);
    let home = &installation.home;
    let discarded: BTreeSet<RunId> = output.workspaces.iter().map(|workspace| workspace.run_id).collect();
    let on_disk = runs_on_disk(&home.root().join("runs"))?;
    let mut candidates = BTreeSet::new();
    for run in old.iter().filter(|run| on_disk.contains(&run.run_id)) {
        let dirs = home.run(run.run_id);
        let bundle = dirs.bundle();
        if fs::symlink_metadata(&bundle).is_err() {
            continue;
        }
        candidates.insert(run.run_id);
        if run.stage.needs_outcome() || fs::symlink_metadata(bundle.join(layout::OUTCOME)).is_ok() {
            named.add(run.run_id, "an outcome");
        }
        if !dirs.kept().is_empty() && !discarded.contains(&run.run_id) {
            named.add(run.run_id, "a kept workspace or session");
        }
    }
    for run in in_use {
        named.add(*run, "a run under way");
    }
    keep_heads(installation, &on_disk, &mut named);
    follow(installation, &on_disk, &candidates, &mut named);
    output.unreadable.clone_from(&named.unreadable);
    for run in candidates {
        let bundle = home.run(run).bundle();
        let because = named.runs.get(&run).into_iter().flatten().map(|record| (*record).to_owned());
        let mut because: Vec<String> = because.collect();
        if !named.unreadable.is_empty() {
            because.push("a record that cannot be read".to_owned());
        }
        if because.is_empty() {
            let attestation = read_regular(&bundle.join(layout::ATTESTATION), MAX_RECORD_BYTES);
            let attestation = Digest::of(&attestation.map_err(failed(format!("the bundle of run {run}")))?);
            output.bundles.push(GcBundle { run_id: run, attestation, bytes: bytes_below(&bundle) });
        } else {
            output.kept_bundles.push(GcKept { run_id: run, because });
        }
    }
    Ok(())
}

/// The runs that have a bundle.
fn runs_on_disk(runs: &Path) -> Result<BTreeSet<RunId>, GcError> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(runs).map_err(failed("the runs"))? {
        let entry = entry.map_err(failed("the runs"))?;
        let Some(run) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if fs::symlink_metadata(entry.path().join("bundle")).is_ok() {
            found.insert(run);
        }
    }
    Ok(found)
}

/// The newest bundle that names each head of the trust chain stays: with it, a chain that is rolled back behind that head is noticed.
fn keep_heads(installation: &Installation, on_disk: &BTreeSet<RunId>, named: &mut Named) {
    let mut newest: BTreeMap<(u64, String), RunId> = BTreeMap::new();
    for run in on_disk {
        match head_of(&installation.home.run(*run).bundle()) {
            Ok(Some(head)) if head != TrustHead::empty() => {
                newest.insert((head.sequence, head.digest.to_string()), *run);
            }
            Ok(_) => {}
            // It has not ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => named.unreadable.push(format!("the attestation of run {run}: {error}")),
        }
    }
    for run in newest.into_values() {
        named.add(run, "a head of the trust chain");
    }
}

/// Adds the runs that the bundles that stay name, and those that these name.
fn follow(
    installation: &Installation,
    on_disk: &BTreeSet<RunId>,
    candidates: &BTreeSet<RunId>,
    named: &mut Named,
) {
    let stays = |named: &Named, run: &RunId| !candidates.contains(run) || named.runs.contains_key(run);
    let mut pending: Vec<RunId> = on_disk.iter().copied().filter(|run| stays(named, run)).collect();
    let mut read: BTreeSet<RunId> = pending.iter().copied().collect();
    while let Some(run) = pending.pop() {
        match named_by_bundle(&installation.home.run(run).bundle()) {
            Ok(others) => {
                for other in others.into_iter().filter(|other| *other != run) {
                    named.add(other, "the bundle of another run");
                    if on_disk.contains(&other) && read.insert(other) {
                        pending.push(other);
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !candidates.contains(&run) => {}
            Err(error) => named.unreadable.push(format!("the bundle of run {run}: {error}")),
        }
    }
}

/// The bytes of all files below a directory, as far as they can be read.
fn bytes_below(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => bytes_below(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}
