//! The workspace: the base tree in one parentless commit or with its history, sharing nothing with the target. It is made while the gates with
//! effects are evaluated, and taken into use once the decision is made.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::content::MissingList;
use herma_core::event::{EngineGateBlocked, ResumedSession, WorkspacePrepared};
use herma_core::report::Mode;
use herma_core::{Digest, Fault, Gate, RepoPath, Stage};
use herma_engines::Engine;
use herma_git::{AgentHead, ControlFiles, TreeEntry, lay_out_watched, make_agent_repository, walk_with};
use serde::{Deserialize, Serialize};

use crate::context::RunContext;
use crate::copy_progress::CopyProgress;
use crate::environment::RunEnvironment;
use crate::environment_views::View;
use crate::error::Stop;
use crate::gates::Ready;
use crate::journal::StepResult;
use crate::kept_workspace::{self, KeptTree};
use crate::order::{Resumed, Work};
use crate::services::Services;
use crate::session;
use crate::supervise::{self, StagedEngine};
use crate::tree_diff::BaseTree;
use herma_home::remove_tree;

/// The workspace of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WorkspaceResults {
    pub(crate) baseline_commit: Option<String>,
    /// Submodules and LFS files of the base that the target does not have.
    #[serde(default)]
    pub(crate) missing_content: Option<MissingList>,
    /// Why the agent cannot start from the workspace.
    pub(crate) dirty: Option<BlockerRecord>,
}

impl StepResult for WorkspaceResults {
    const KEY: &'static str = "workspace";
}

/// A workspace that no process has used yet, and the engine that waits to start in it.
pub(crate) struct FreshWorkspace<'a> {
    control_files: ControlFiles,
    /// The tree that it has, where that is not the base.
    start: Option<StartedFrom>,
    staged: StagedEngine<'a>,
}

/// The state of the workspace before the decision.
pub(crate) enum WorkspaceState<'a> {
    /// The stage starts no engine.
    NotNeeded,
    /// The agent cannot start from it, for this reason.
    Unusable(String),
    /// The engine can start in it.
    Ready(Box<FreshWorkspace<'a>>),
}

/// A workspace that the engine starts in.
pub(crate) struct TakenUp<'a> {
    pub(crate) control_files: ControlFiles,
    pub(crate) staged: StagedEngine<'a>,
    /// The agent's view of the environment.
    pub(crate) view: Option<View>,
}

/// The tree of a workspace that starts with the work of another run.
struct StartedFrom {
    tree: String,
    /// The digest of the kept workspace that it was read from.
    kept_workspace: Option<Digest>,
}

/// The tree that the workspace starts with.
enum StartTree {
    Base,
    /// The work of the run that this one resumes.
    Resumed(StartedFrom, Vec<TreeEntry>),
    Unusable(String),
}

/// Makes the workspace, where the stage starts an engine.
pub(crate) fn make<'a>(
    ctx: &RunContext<'_>,
    services: &Services,
    ready: &'a Ready,
    base: &BaseTree,
) -> Result<WorkspaceState<'a>, Stop> {
    if !ctx.contract.terms.stage.starts_engine() {
        return Ok(WorkspaceState::NotNeeded);
    }
    let made = ctx.engine().and_then(|engine| make_for(ctx, services, engine, ready, base));
    if made.is_err() {
        // Half a copy would keep a full disk full while the report is written.
        for dir in [ctx.dirs.workspace(), ctx.dirs.verification()] {
            let _ = remove_tree(&dir);
        }
    }
    made
}

/// Makes the workspace, the engine's directory, and the fresh checkout of the same tree for verification, which the engine never
/// sees. Meanwhile the engine's destination is prepared.
fn make_for<'a>(
    ctx: &RunContext<'_>,
    services: &Services,
    engine: &dyn Engine,
    ready: &'a Ready,
    base: &BaseTree,
) -> Result<WorkspaceState<'a>, Stop> {
    let BaseTree { git_dir, baseline, entries, .. } = base;
    let head = base.history().map_or(AgentHead::Baseline(baseline), AgentHead::Base);
    let (workspace, engine_dir, fresh) = (ctx.dirs.workspace(), ctx.dirs.engine(), ctx.dirs.verification());
    let homes = [ctx.dirs.home(), ctx.dirs.verification_home()];
    let homes = homes.iter().filter(|_| ctx.contract.terms.environment.is_some());
    for dir in [&workspace, &engine_dir, &fresh].into_iter().chain(homes) {
        DirBuilder::new().mode(0o700).create(dir)?;
    }
    let resumed = match start_tree(ctx, base)? {
        StartTree::Base => None,
        StartTree::Resumed(from, tree) => Some((from, tree)),
        StartTree::Unusable(why) => return Ok(WorkspaceState::Unusable(why)),
    };
    let (started_from, resumed) = resumed.unzip();
    let start = resumed.as_ref().unwrap_or(entries);
    let view = ready.destination.view(&services.job_paths(ctx));
    engine.prepare(&ctx.order.assignment(), &engine_dir, &view)?;
    if let Some(Resumed { run: parent, resume: Some(_), .. }) = &ctx.order.resumes
        && let Err(why) = session::take_up(&ctx.installation.home.run(*parent), engine, &engine_dir)
    {
        let why = format!("the session of run {parent} cannot be taken up: {why}");
        return Ok(WorkspaceState::Unusable(why));
    }
    let hidden = match to_hide(&engine.hidden_paths(), start) {
        Ok(hidden) => hidden,
        Err(name) => return Ok(WorkspaceState::Unusable(leads_elsewhere(engine, name))),
    };
    for name in &hidden {
        // A mount needs a directory to cover, and the files come later.
        DirBuilder::new().create(workspace.join(name))?;
    }
    unless_over(ctx)?;
    let staged = supervise::stage(ctx, services, engine, ready, &hidden)?;
    let scratch = engine.scratch_paths();
    let progress = CopyProgress::new(entries.len(), |text| ctx.note(text));
    let wrote = |files: usize| progress.add(files);
    let lay_out = |tree: &[TreeEntry], roots: &[&Path]| lay_out_watched(git_dir, tree, roots, &wrote);
    std::thread::scope(|scope| {
        let files = scope.spawn(|| match &resumed {
            None => lay_out(entries, &[&workspace, &fresh]),
            Some(start) => lay_out(entries, &[&fresh]).and_then(|()| lay_out(start, &[&workspace])),
        });
        let repository = make_agent_repository(git_dir, head, entries, &workspace, scratch, &hidden);
        files.join().map_err(|_| Stop::panicked("laying out the workspace"))??;
        repository.map_err(Stop::from)
    })?;
    unless_over(ctx)?;
    if ctx.order.fault == Some(Fault::DirtyCopy) {
        std::fs::write(workspace.join("left-over"), "this was not in the base tree\n")?;
    }
    if ctx.contract.terms.stage >= Stage::CopiedRepo && !is_tree(&workspace, base, start)? {
        let why = "the workspace is not the base tree that it was made from";
        return Ok(WorkspaceState::Unusable(why.to_owned()));
    }
    let control_files = ControlFiles::read(&workspace)?;
    let fresh = FreshWorkspace { control_files, start: started_from, staged };
    Ok(WorkspaceState::Ready(Box::new(fresh)))
}

/// A cancelled run makes no copy; the thread that waits for the copy says why.
fn unless_over(ctx: &RunContext<'_>) -> Result<(), Stop> {
    if ctx.is_over() { Err(Stop::Blocked) } else { Ok(()) }
}

/// The workspace step: takes the workspace into use.
pub(crate) fn take_up<'a>(
    ctx: &RunContext<'_>,
    base: &BaseTree,
    (workspace, environment): (FreshWorkspace<'a>, Option<&RunEnvironment>),
    found: &mut Option<WorkspaceResults>,
) -> Result<TakenUp<'a>, Stop> {
    let FreshWorkspace { control_files, start, mut staged } = workspace;
    let mut view = None;
    if let Some(environment) = environment {
        let hidden = ctx.engine()?.hidden_paths();
        if let Some(name) = hidden.into_iter().find(|name| environment.has_below(name)) {
            let why = format!("the environment has files in `{name}`, which the engine would run");
            return Err(refuse(ctx, why, found));
        }
        let made = view.insert(environment.write_agents_view(ctx)?);
        staged = staged.with_overlays(made.overlays.clone());
    }
    let BaseTree { baseline, entries, missing, .. } = base;
    let missing_content = MissingList::of(missing);
    *found = Some(WorkspaceResults {
        baseline_commit: Some(baseline.commit.clone()),
        missing_content: missing_content.clone(),
        dirty: None,
    });
    let resumed = ctx.order.resumes.as_ref().map(|resumed| ResumedSession {
        run: resumed.run,
        session: resumed.resume.as_ref().map(|resume| resume.session.to_string()),
        message: resumed.message.clone(),
        start_tree: start.as_ref().map(|start| start.tree.clone()),
        kept_workspace: start.as_ref().and_then(|start| start.kept_workspace),
    });
    ctx.record(WorkspacePrepared {
        baseline_commit: baseline.commit.clone(),
        baseline_tree: baseline.tree.clone(),
        files: entries.len(),
        missing_content,
        resumed,
    })?;
    Ok(TakenUp { control_files, staged, view })
}

/// Records that the agent cannot start from the workspace, and stops the run.
pub(crate) fn refuse(ctx: &RunContext<'_>, why: String, found: &mut Option<WorkspaceResults>) -> Stop {
    let dirty = Blocker::DirtyStartingTree.because(why);
    let recorded = ctx.record(EngineGateBlocked {
        engine: ctx.plan.engine.clone(),
        gate: Gate::TargetClean,
        reason: dirty.detail.clone(),
        mutation_scope: ctx.contract.terms.mutation_scope(),
        engine_started: false,
    });
    *found = Some(WorkspaceResults { dirty: Some(dirty), ..WorkspaceResults::default() });
    recorded.err().unwrap_or(Stop::Blocked)
}

/// The tree that the workspace starts with: where this run resumes another one, the very tree that the other one's report names, or
/// that of the workspace that it left.
fn start_tree(ctx: &RunContext<'_>, base: &BaseTree) -> Result<StartTree, Stop> {
    let Some(Resumed { run: parent, work: Some(work), .. }) = &ctx.order.resumes else {
        return Ok(StartTree::Base);
    };
    let (patch, wanted) = match work {
        Work::Patch { patch, tree } => (patch, tree),
        Work::Workspace(kept) => {
            return Ok(match kept_workspace::read(ctx, base, kept)? {
                Ok(KeptTree { tree, entries, digest }) => {
                    StartTree::Resumed(StartedFrom { tree, kept_workspace: Some(digest) }, entries)
                }
                Err(why) => {
                    StartTree::Unusable(format!("run {parent} left a workspace that cannot be used: {why}"))
                }
            });
        }
    };
    let why = match base.git_dir.tree_with_patch(&base.baseline.tree, patch) {
        Ok(tree) if tree == *wanted => {
            let entries = base.git_dir.entries(&tree)?;
            return Ok(StartTree::Resumed(StartedFrom { tree, kept_workspace: None }, entries));
        }
        Ok(_) => "the target's base is another one now".to_owned(),
        Err(error) => error.to_string(),
    };
    Ok(StartTree::Unusable(format!("what run {parent} made cannot be laid on the base: {why}")))
}

/// The directories of these that the tree has, or the one that it has as a link, which could lead anywhere in the tree. A file of
/// that name holds nothing that an engine would run.
fn to_hide<'a>(names: &[&'a str], tree: &[TreeEntry]) -> Result<Vec<&'a str>, &'a str> {
    let is_link = |name: &&&str| {
        tree.iter().any(|there| there.path.as_bytes() == name.as_bytes() && there.entry.mode == Mode::Symlink)
    };
    match names.iter().find(is_link) {
        Some(name) => Err(name),
        None => Ok(names.iter().copied().filter(|name| tree.iter().any(|e| e.is_below(name))).collect()),
    }
}

fn leads_elsewhere(engine: &dyn Engine, name: &str) -> String {
    format!(
        "`{name}` is a link, and the engine `{}` would run code from where it leads: make it a directory, which is hidden \
         from the agent, or remove it",
        engine.name()
    )
}

/// Whether the workspace equals the expected tree, file by file.
fn is_tree(workspace: &Path, base: &BaseTree, expected: &[TreeEntry]) -> Result<bool, Stop> {
    let is_known = |path: &RepoPath, bytes: u64| base.has_file(path, bytes);
    let found = walk_with(workspace, base.git_dir.format(), &BTreeSet::new(), &is_known)?;
    let expected = base.git_dir.checked_out(expected);
    let expected = expected
        .iter()
        .filter(|there| there.entry.mode != Mode::Submodule && !found.oversized.contains(&there.path));
    let nothing_else = found.specials.is_empty()
        && found.nested_repositories.is_empty()
        && found.unreadable.is_empty()
        && found.too_deep.is_empty();
    Ok(nothing_else && found.entries.iter().eq(expected.map(|there| (&there.path, &there.entry))))
}

#[cfg(test)]
mod tests {
    use herma_core::RepoPath;
    use herma_core::report::Entry;

    use super::*;

    fn tree(paths: &[(&str, Mode)]) -> Vec<TreeEntry> {
        let entry = |&(path, mode): &(&str, Mode)| TreeEntry {
            path: RepoPath::new(path).unwrap(),
            entry: Entry { mode, id: String::new() },
        };
        paths.iter().map(entry).collect()
    }

    #[test]
    fn a_directory_is_hidden_and_a_link_is_refused() {
        let hide = |tree: &[TreeEntry]| to_hide(&[".agent"], tree).map(|names| names.len());
        assert_eq!(hide(&tree(&[(".agent/plugins/x.js", Mode::File)])), Ok(1));
        assert_eq!(hide(&tree(&[(".agent", Mode::Symlink), ("b/x.js", Mode::File)])), Err(".agent"));
        // Nothing is run from a file, from what is empty, or from what only begins like it.
        for there in [(".agent", Mode::File), (".agent", Mode::Submodule), (".agents/x.js", Mode::File)] {
            assert_eq!(hide(&tree(&[there])), Ok(0), "{there:?}");
        }
    }
}
