//! The environment of a run: built once the confinement was probed, checked by a preflight, and shown to the agent and to each
//! verification in a view of its own. No view reaches another one.

mod preflight;
mod rebuild;
mod record;

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::environment::{BaseResult, EnvironmentUse, LayerBuildRecord, SetupOn};
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
use herma_git::{GitError, TreeEntry};
use herma_home::remove_tree;
use serde::{Deserialize, Serialize};

pub(crate) use rebuild::Rebuild;
pub use record::layer as layer_record;

use self::record::RecordDraft;
use crate::context::RunContext;
use crate::environment_views::{View, ViewMaker};
use crate::error::Stop;
use crate::gates::{Findings, Ready};
use crate::installation::Installation;
use crate::journal::StepResult;
use crate::tree_diff::{BaseTree, GivenHistory};

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
    /// Why it was not built again for the patch.
    #[serde(default)]
    pub(crate) rebuild_refused: Option<String>,
}

impl StepResult for EnvironmentResults {
    const KEY: &'static str = "environment";
}

/// The environment that a run was given. Its layers stay in place as long as this value lives.
pub(crate) struct RunEnvironment {
    built: BuiltEnvironment,
    /// The untracked files of the checkout that belong to it.
    files: BTreeSet<RepoPath>,
    views: ViewMaker,
    draft: RecordDraft,
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
    let mut draft = RecordDraft::new(ctx, base)?;
    if let GivenHistory::Unreadable(error) = &base.history {
        findings.insert(Gate::Environment, Finding::Missing(no_history(error)));
        return Ok(None);
    }
    let mut environment = None;
    match &ready.environment {
        None => drop(findings.insert(Gate::Environment, no_environment())),
        Some(prepared) => match build(ctx, ready, prepared, base, &mut draft.layers) {
            Ok(built) => match untracked_files(&built, &base.entries) {
                UntrackedFiles::Of(files) => {
                    findings.insert(Gate::Environment, Finding::Passed);
                    let views = views(ctx, ready, &built)?;
                    environment = Some((built, files, views));
                }
                UntrackedFiles::Tracked(path) => {
                    let why = format!("its commands made {}, which the base tracks", path.shortened());
                    findings
                        .insert(Gate::Environment, Finding::Missing(Blocker::EnvironmentFailed.because(why)));
                    return Ok(None);
                }
            },
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
    let seen =
        preflight::run(ctx, ready, base, environment.as_ref().map(|(built, _, views)| (built, views)))?;
    findings.insert(Gate::Preflight, preflight::finding(ctx, &seen));
    draft.preflight(seen);
    // The report tells only of what is in the bundle.
    draft.write(ctx)?;
    results.used = draft.used();
    results.verify_before = draft.results().to_vec();
    ctx.journal.append(results)?;
    Ok(environment.map(|(built, files, views)| RunEnvironment { built, files, views, draft }))
}

/// Why there is no environment.
pub(crate) enum BuildFailure {
    /// A blocker.
    Failed(BuildError),
    /// The run ends.
    Stopped(Stop),
}

impl RunEnvironment {
    /// Writes the agent's view into its workspace and its home.
    pub(crate) fn write_agents_view(&self, ctx: &RunContext<'_>) -> Result<View, Stop> {
        self.views.write(self.built.top(), &ctx.dirs.home(), &ctx.dirs.workspace())
    }

    /// Writes a view for verification. The agent has seen none of it.
    pub(crate) fn write_view(&self, home: &Path, checkout: &Path) -> Result<View, Stop> {
        self.views.write(self.built.top(), home, checkout)
    }

    /// The view of the nth verification command, with a home of its own.
    pub(crate) fn view_of(&self, ctx: &RunContext<'_>, first: &View, at: usize) -> Result<View, Stop> {
        view_of((&self.built, &self.views), ctx, first, at)
    }

    /// The part that the report repeats.
    pub(crate) fn used(&self) -> Option<EnvironmentUse> {
        self.draft.used()
    }

    /// The untracked files of the checkout that belong to it: they never land, whatever the agent made of them.
    pub(crate) fn files(&self) -> &BTreeSet<RepoPath> {
        &self.files
    }

    /// The changed files that decide what the environment contains, or that take the place of a part of it: with such a patch,
    /// verification would not test in the environment that was built.
    pub(crate) fn changed_inputs(&self, ready: &Ready, patch: &[ChangedFile]) -> Vec<RepoPath> {
        let Some(prepared) = &ready.environment else { return Vec::new() };
        let mut changed = changed_inputs(prepared, patch);
        let in_place = patch.iter().map(|change| &change.path).filter(|path| self.has_at_or_below(path));
        changed.extend(in_place.cloned());
        changed.sort();
        changed.dedup();
        changed
    }

    /// Whether setup saw the sources of the base, so that its files may have been built from them.
    pub(crate) fn has_build_output(&self, ready: &Ready) -> bool {
        let definition = ready.environment.as_ref().map(|prepared| prepared.plan().definition);
        let saw_sources = definition.is_some_and(|definition| definition.setup_on == SetupOn::Base);
        saw_sources && self.built.setup.is_some() && !self.files.is_empty()
    }

    /// Whether it has files in this directory at the top of the checkout.
    pub(crate) fn has_below(&self, name: &str) -> bool {
        RepoPath::new(name).is_some_and(|path| self.has_at_or_below(&path))
    }

    fn has_at_or_below(&self, path: &RepoPath) -> bool {
        let below = |file: &RepoPath| {
            let rest = file.as_bytes().strip_prefix(path.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        let starts = |file: &&RepoPath| file.as_bytes().starts_with(path.as_bytes());
        self.files.range(path..).take_while(starts).any(below)
    }
}

/// The history that the contract asks for cannot be had.
pub(crate) fn no_history(error: &GitError) -> BlockerRecord {
    BlockerRecord {
        next_step:
            "Fetch what is missing (`git fetch --refetch`, or `--unshallow`), or write `history: none`."
                .to_owned(),
        ..Blocker::EnvironmentFailed.because(format!("the history of the base cannot be read: {error}"))
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
    for notice in prepared.notices() {
        ctx.note(notice);
    }
    build_tree(ctx, ready, prepared, base.to_build(), layers)
}

/// Builds the environment for a tree.
fn build_tree(
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
pub(crate) struct BuildSite<'a> {
    pub(crate) installation: &'a Installation,
    pub(crate) destination: &'a dyn Destination,
    /// The name of the destination, for containers with the image.
    pub(crate) place: &'a str,
    pub(crate) run_id: RunId,
    /// A directory for the inputs, which is made anew.
    pub(crate) scratch: &'a Path,
    pub(crate) memory: Option<Bytes>,
    pub(crate) is_cancelled: &'a (dyn Fn() -> bool + Sync),
    pub(crate) note: &'a (dyn Fn(&str) + Sync),
}

impl BuildSite<'_> {
    pub(crate) fn build(
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

fn views(ctx: &RunContext<'_>, ready: &Ready, built: &BuiltEnvironment) -> Result<ViewMaker, Stop> {
    ViewMaker::of(built.top(), &ctx.dirs, ctx.plan.run_id, ready.destination.as_ref())
}

fn view_of(
    (built, views): (&BuiltEnvironment, &ViewMaker),
    ctx: &RunContext<'_>,
    first: &View,
    at: usize,
) -> Result<View, Stop> {
    let name = first.home.file_name().unwrap_or_default().to_string_lossy();
    let of = |at: usize| match at {
        0 => first.home.clone(),
        _ => first.home.with_file_name(format!("{name}-{at}")),
    };
    let Some(before) = at.checked_sub(1) else { return Ok(first.clone()) };
    ctx.remove_aside(of(before));
    views.another_home(built.top(), first, &of(at))
}

/// The files of the environment's checkout. One that the base tracks is refused: where the patch deletes it, the copy would bring it
/// back.
fn untracked_files(built: &BuiltEnvironment, entries: &[TreeEntry]) -> UntrackedFiles {
    let files = built.top().files();
    let tracked = entries.iter().map(|entry| &entry.path).find(|path| files.contains(path));
    tracked.map_or_else(|| UntrackedFiles::Of(files.clone()), |path| UntrackedFiles::Tracked(path.clone()))
}

/// The files of an environment's checkout.
enum UntrackedFiles {
    Of(BTreeSet<RepoPath>),
    /// The base tracks this one.
    Tracked(RepoPath),
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
