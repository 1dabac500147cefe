//! The environment of a run: built once the confinement was probed, checked by a preflight, and copied for the agent and for
//! each verification. No copy reaches another one.

mod alone;
mod preflight;
mod record;

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::environment::{BaseResult, EnvironmentUse, LayerBuildRecord};
use herma_core::gate::{Finding, Gate};
use herma_core::report::ChangedFile;
use herma_core::units::Bytes;
use herma_core::{RepoPath, RunId};
use herma_destination::{Destination, Limits};
use herma_environments::build::{self, BuildError, BuildProgress, Builder, BuiltEnvironment};
use herma_environments::inputs::select;
use herma_environments::key::LayerKey;
use herma_environments::layers::{LayerKind, LayerStore};
use herma_environments::prepare::PreparedEnvironment;
use herma_git::TreeEntry;
use herma_home::remove_tree;
use serde::{Deserialize, Serialize};

pub use alone::{EnvironmentError, build_environment};
pub use record::layer as layer_record;

use self::record::RecordDraft;
use crate::context::RunContext;
use crate::error::Stop;
use crate::gates::{Findings, Ready};
use crate::installation::Installation;
use crate::journal::StepResult;
use crate::tree_diff::{BaseTree, with_changes};

/// The time that all commands of one layer may take.
const BUILD_TIMEOUT: Duration = Duration::from_mins(30);

/// The environment of a run, for its report.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct EnvironmentResults {
    pub(crate) used: Option<EnvironmentUse>,
    /// How the verification commands ended on the base.
    pub(crate) verify_before: Vec<BaseResult>,
    /// Changed files that decide what the environment contains, where the contract does not allow that.
    pub(crate) changed_inputs: Vec<RepoPath>,
}

impl StepResult for EnvironmentResults {
    const KEY: &'static str = "environment";
}

/// The environment that a run was given. Its layers stay in place as long as this value lives.
pub(crate) struct RunEnvironment {
    built: BuiltEnvironment,
    draft: RecordDraft,
    /// The untracked files of the checkout that belong to it.
    files: BTreeSet<RepoPath>,
    rebuilt: Option<BuiltEnvironment>,
}

/// Evaluates the gates `environment` and `preflight`, where the contract has them. Whether both hold is in the findings.
pub(crate) fn evaluate(
    ctx: &RunContext<'_>,
    ready: &Ready,
    base: &BaseTree,
    (findings, found): (&mut Findings, &mut Option<EnvironmentResults>),
) -> Result<Option<RunEnvironment>, Stop> {
    if !ctx.contract.terms.has_preflight() {
        return Ok(None);
    }
    let results = found.insert(EnvironmentResults::default());
    let mut draft = RecordDraft::new(ctx)?;
    let mut environment = None;
    match &ready.environment {
        None => drop(findings.insert(Gate::Environment, no_environment())),
        Some(prepared) => match build(ctx, ready, prepared, base, &mut draft.layers) {
            Ok(built) => {
                findings.insert(Gate::Environment, Finding::Passed);
                let files = untracked_files(&built, base)?;
                environment = Some((built, files));
            }
            Err(BuildFailure::Stopped(stop)) => return Err(stop),
            Err(BuildFailure::Failed(failed)) => {
                let why = Blocker::EnvironmentFailed.because(failed.to_string());
                draft.failed(&failed);
                draft.write(ctx)?;
                findings.insert(Gate::Environment, Finding::Missing(why));
                return Ok(None);
            }
        },
    }
    let seen = preflight::run(ctx, ready, base, environment.as_ref().map(|(built, _)| built))?;
    findings.insert(Gate::Preflight, preflight::finding(ctx, &seen));
    draft.preflight(seen);
    results.used = draft.used();
    results.verify_before = draft.results().to_vec();
    draft.write(ctx)?;
    ctx.journal.append(results)?;
    Ok(environment.map(|(built, files)| RunEnvironment { built, draft, files, rebuilt: None }))
}

/// Why there is no environment.
enum BuildFailure {
    /// A blocker.
    Failed(BuildError),
    /// The run ends.
    Stopped(Stop),
}

impl RunEnvironment {
    /// Writes the agent's copy into its workspace and its home.
    pub(crate) fn write_agents_copy(&self, ctx: &RunContext<'_>) -> Result<(), Stop> {
        write_copy(&self.built, &ctx.dirs.home(), &ctx.dirs.workspace())
    }

    /// Writes a copy for verification. The agent has seen none of it.
    pub(crate) fn write_copy(&self, home: &Path, checkout: &Path) -> Result<(), Stop> {
        write_copy(self.rebuilt.as_ref().unwrap_or(&self.built), home, checkout)
    }

    /// The untracked files of the checkout that belong to it: they never land, whatever the agent made of them.
    pub(crate) fn files(&self) -> &BTreeSet<RepoPath> {
        &self.files
    }

    /// Builds it again where the patch changes what it is made of, if the contract allows that. Otherwise the result has the
    /// changed files.
    pub(crate) fn follow_patch(
        &mut self,
        ctx: &RunContext<'_>,
        ready: &Ready,
        (base, patch, tree): (&BaseTree, &[ChangedFile], &str),
        found: &mut Option<EnvironmentResults>,
    ) -> Result<Option<BlockerRecord>, Stop> {
        let Some(prepared) = &ready.environment else { return Ok(None) };
        let changed = changed_inputs(prepared, patch);
        if changed.is_empty() {
            return Ok(None);
        }
        let results = found.get_or_insert_default();
        if !prepared.plan().definition.rebuild {
            results.changed_inputs = changed;
            ctx.journal.append(results)?;
            return Ok(None);
        }
        let entries = with_changes(base, patch);
        let patched = build::BaseTree { git_dir: &base.git_dir, tree, entries: &entries };
        match build_for(ctx, ready, prepared, patched, &mut self.draft.rebuilt) {
            Ok(rebuilt) => {
                self.rebuilt = Some(rebuilt);
                results.used = self.draft.used();
                self.draft.write(ctx)?;
                ctx.journal.append(results)?;
                Ok(None)
            }
            Err(BuildFailure::Stopped(stop)) => Err(stop),
            Err(BuildFailure::Failed(failed)) => {
                Ok(Some(Blocker::EnvironmentFailed.because(format!("with the patch: {failed}"))))
            }
        }
    }
}

fn no_environment() -> Finding {
    Finding::NotApplicable("the contract has no environment".to_owned())
}

/// Builds the environment for the base.
fn build(
    ctx: &RunContext<'_>,
    ready: &Ready,
    prepared: &PreparedEnvironment,
    base: &BaseTree,
    layers: &mut Vec<LayerBuildRecord>,
) -> Result<BuiltEnvironment, BuildFailure> {
    let tree = build::BaseTree { git_dir: &base.git_dir, tree: &base.baseline.tree, entries: &base.entries };
    build_for(ctx, ready, prepared, tree, layers)
}

/// Builds the environment for a tree.
fn build_for(
    ctx: &RunContext<'_>,
    ready: &Ready,
    prepared: &PreparedEnvironment,
    tree: build::BaseTree<'_>,
    layers: &mut Vec<LayerBuildRecord>,
) -> Result<BuiltEnvironment, BuildFailure> {
    let scratch = ctx.dirs.environment();
    let site = BuildSite {
        installation: ctx.installation,
        destination: ready.destination.as_ref(),
        place: &ready.place,
        run_id: ctx.plan.run_id,
        scratch: &scratch,
        memory: ctx.contract.terms.limits.memory,
        is_cancelled: &|| ctx.is_over(),
        note: &|text| ctx.note(text),
    };
    let (built, records) = site.build(prepared, tree).map_err(|failure| match failure {
        BuildFailure::Failed(BuildError::Cancelled) => {
            BuildFailure::Stopped(ctx.check_cancelled().err().unwrap_or(Stop::Blocked))
        }
        other => other,
    })?;
    ctx.remove_aside(scratch);
    *layers = records;
    Ok(built)
}

/// Where and for whom an environment is built.
struct BuildSite<'a> {
    installation: &'a Installation,
    destination: &'a dyn Destination,
    /// The name of the destination, for containers with the image.
    place: &'a str,
    run_id: RunId,
    /// A directory for the inputs, which is made anew.
    scratch: &'a Path,
    memory: Option<Bytes>,
    is_cancelled: &'a (dyn Fn() -> bool + Sync),
    note: &'a (dyn Fn(&str) + Sync),
}

impl BuildSite<'_> {
    fn build(
        &self,
        prepared: &PreparedEnvironment,
        tree: build::BaseTree<'_>,
    ) -> Result<(BuiltEnvironment, Vec<LayerBuildRecord>), BuildFailure> {
        let stopped = |e: io::Error| BuildFailure::Stopped(Stop::write(e));
        let store = LayerStore::open(&self.installation.home.environments()).map_err(stopped)?;
        remove_tree(self.scratch).map_err(stopped)?;
        DirBuilder::new().mode(0o700).create(self.scratch).map_err(stopped)?;
        let reused: Mutex<BTreeSet<LayerKey>> = Mutex::default();
        let progress = |step: BuildProgress| {
            (self.note)(&progress_line(&step));
            if let BuildProgress::Reused(key) = step {
                reused.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
            }
        };
        let builder = Builder {
            destination: self.destination,
            destination_name: self.place,
            store: &store,
            clock: Arc::clone(&self.installation.clock),
            run_id: self.run_id,
            timeout: BUILD_TIMEOUT,
            limits: Limits::with_memory(self.memory).within(BUILD_TIMEOUT),
            is_cancelled: self.is_cancelled,
            progress: &progress,
        };
        let built = builder.build(prepared.plan(), tree, self.scratch).map_err(BuildFailure::Failed)?;
        let reused = reused.into_inner().unwrap_or_else(PoisonError::into_inner);
        let layers = std::iter::once(&built.fetch).chain(&built.setup);
        let records = layers.map(|layer| record::layer(layer.record(), reused.contains(&layer.record().key)));
        let records: Result<_, _> = records.collect();
        Ok((built, records.map_err(|e| BuildFailure::Stopped(Stop::internal(e)))?))
    }
}

fn progress_line(step: &BuildProgress) -> String {
    match step {
        BuildProgress::Waiting(_) => "another process builds this environment: waiting for it".to_owned(),
        BuildProgress::Running { kind: LayerKind::Fetch, command } => {
            format!("environment: fetching with `{command}`")
        }
        BuildProgress::Running { kind: LayerKind::Setup, command } => {
            format!("environment: setting up with `{command}`")
        }
        BuildProgress::Reused(_) => "environment: using the one that is there".to_owned(),
    }
}

fn write_copy(built: &BuiltEnvironment, home: &Path, checkout: &Path) -> Result<(), Stop> {
    built.top().write_view(home, checkout).map(drop).map_err(Stop::write)
}

/// The files of the environment's checkout that the base does not track.
fn untracked_files(built: &BuiltEnvironment, base: &BaseTree) -> Result<BTreeSet<RepoPath>, Stop> {
    let tracked: BTreeSet<&RepoPath> = base.entries.iter().map(|entry| &entry.path).collect();
    let mut files = list(&built.top().checkout()).map_err(Stop::write)?;
    files.retain(|path| !tracked.contains(path));
    Ok(files)
}

/// Every file and link below a directory, without following links.
fn list(root: &Path) -> io::Result<BTreeSet<RepoPath>> {
    let mut found = BTreeSet::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                pending.push(path);
            } else if let Ok(below) = path.strip_prefix(root) {
                found.extend(RepoPath::new(below.as_os_str().as_bytes()));
            }
        }
    }
    Ok(found)
}

/// The changed files that decide what the environment contains.
fn changed_inputs(prepared: &PreparedEnvironment, changes: &[ChangedFile]) -> Vec<RepoPath> {
    let entry = |change: &ChangedFile| {
        let entry = change.new.clone().or_else(|| change.old.clone())?;
        Some(TreeEntry { path: change.path.clone(), entry })
    };
    let entries: Vec<TreeEntry> = changes.iter().filter_map(entry).collect();
    select(&entries, prepared.plan().definition).into_iter().map(|entry| entry.path).collect()
}
