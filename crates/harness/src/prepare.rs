//! Makes the workspace: one parentless commit of the base tree, nothing shared with the target. It is made while the walls
//! are tried, and taken into use when the decision is made.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use herma_core::blocker::Blocker;
use herma_core::event::{EngineGateBlocked, ResumedSession, WorkspacePrepared};
use herma_core::report::Mode;
use herma_core::{Fault, Gate, Stage};
use herma_engines::Engine;
use herma_git::{ControlFiles, GitDir, TreeEntry, lay_out, make_agent_repository, walk};
use herma_home::{RunDirs, remove_tree};

use crate::error::Stop;
use crate::gates::Ready;
use crate::installation::Installation;
use crate::resume::Resumed;
use crate::run::{Ground, Run};
use crate::session;
use crate::supervise::{self, Staged};
use crate::target::FoundTarget;

/// Makes herma's own git directory and lists the base tree.
pub(crate) fn ground(
    installation: &Installation,
    target: &FoundTarget,
    dirs: &RunDirs,
) -> Result<Ground, Stop> {
    let (git_dir, baseline) = target.baseline(installation, &dirs.git())?;
    let entries = git_dir.entries(&baseline.tree)?;
    Ok(Ground { git_dir, baseline, entries })
}

/// A workspace that nobody has used yet, and the walls in which the engine will.
pub(crate) struct Workspace<'a> {
    control_files: ControlFiles,
    staged: Staged<'a>,
}

/// What is made while the walls are tried: the base, and the workspace where an engine will need one.
pub(crate) type Made<'a> = (Ground, Option<Startable<'a>>);

/// The error says why the agent cannot start from what was made.
type Startable<'a> = Result<Workspace<'a>, String>;

/// Makes the workspace, where the stage starts an engine.
pub(crate) fn workspace<'a>(
    run: &Run<'_>,
    ready: &'a Ready,
    ground: &Ground,
) -> Result<Option<Startable<'a>>, Stop> {
    if !run.contract.terms.stage.starts_engine() {
        return Ok(None);
    }
    let made = run.engine().and_then(|engine| make(run, engine, ready, ground));
    if made.is_err() {
        // Half a copy would keep a full disk full while the run's end is written.
        for dir in [run.dirs.workspace(), run.dirs.verification()] {
            let _ = remove_tree(&dir);
        }
    }
    made.map(Some)
}

/// Makes the workspace, the engine's directory, and the fresh checkout of the same tree that verification will run on.
/// The engine never sees that one: it is not mounted. Meanwhile its destination is made ready.
fn make<'a>(
    run: &Run<'_>,
    engine: &dyn Engine,
    ready: &'a Ready,
    ground: &Ground,
) -> Result<Startable<'a>, Stop> {
    let Ground { git_dir, baseline, entries } = ground;
    let (workspace, engine_dir, fresh) = (run.dirs.workspace(), run.dirs.engine(), run.dirs.verification());
    for dir in [&workspace, &engine_dir, &fresh] {
        DirBuilder::new().mode(0o700).create(dir)?;
    }
    let start = match start(run, ground)? {
        Ok(start) => start,
        Err(why) => return Ok(Err(why)),
    };
    let view = ready.destination.view(&supervise::job_paths(run));
    engine.prepare(&run.order.assignment(), &engine_dir, &view)?;
    if let Some(Resumed { run: parent, .. }) = &run.order.resumes
        && let Err(why) = session::take_up(&run.installation.home.run(*parent), engine, &engine_dir)
    {
        return Ok(Err(format!("the session of run {parent} cannot be taken up: {why}")));
    }
    let hidden = match to_hide(&engine.hidden_paths(), start.as_ref().unwrap_or(entries)) {
        Ok(hidden) => hidden,
        Err(name) => return Ok(Err(leads_elsewhere(engine, name))),
    };
    for name in &hidden {
        // What is laid over it has to lie over something, and the files come later.
        DirBuilder::new().create(workspace.join(name))?;
    }
    unless_over(run)?;
    let staged = supervise::stage(run, engine, ready, &hidden)?;
    let scratch = engine.scratch_paths();
    std::thread::scope(|scope| {
        let files = scope.spawn(|| match &start {
            None => lay_out(git_dir, entries, &[&workspace, &fresh]),
            Some(start) => {
                lay_out(git_dir, entries, &[&fresh]).and_then(|()| lay_out(git_dir, start, &[&workspace]))
            }
        });
        let repository = make_agent_repository(git_dir, baseline, entries, &workspace, scratch, &hidden);
        files.join().map_err(|_| Stop::panicked("laying out the workspace"))??;
        repository.map_err(Stop::from)
    })?;
    unless_over(run)?;
    if run.order.fault == Some(Fault::DirtyCopy) {
        std::fs::write(workspace.join("left-over"), "this was not in the base tree\n")?;
    }
    let start = start.as_ref().unwrap_or(entries);
    if run.contract.terms.stage >= Stage::CopiedRepo && !is_tree(&workspace, git_dir, start)? {
        return Ok(Err("the workspace is not the base tree that it was made from".to_owned()));
    }
    Ok(Ok(Workspace { control_files: ControlFiles::read(&workspace)?, staged }))
}

/// A run that goes no further waits for no copy; why it does not is noted where the copy is waited for.
fn unless_over(run: &Run<'_>) -> Result<(), Stop> {
    if run.is_over() { Err(Stop::Blocked) } else { Ok(()) }
}

/// Takes the workspace into use, if the agent can start from it.
pub(crate) fn take_up<'a>(
    run: &mut Run<'_>,
    Ground { baseline, entries, .. }: &Ground,
    workspace: Startable<'a>,
) -> Result<(ControlFiles, Staged<'a>), Stop> {
    let Workspace { control_files, staged } = match workspace {
        Ok(workspace) => workspace,
        Err(why) => return Err(dirty(run, why)?),
    };
    run.facts.baseline_commit = Some(baseline.commit.clone());
    run.base_tree = Some(baseline.tree.clone());
    let resumed = run.order.resumes.as_ref().map(|Resumed { run: parent, resume, work }| ResumedSession {
        run: *parent,
        session: resume.session.to_string(),
        message: resume.message.clone(),
        start_tree: work.as_ref().map(|work| work.tree.clone()),
    });
    run.record(WorkspacePrepared {
        baseline_commit: baseline.commit.clone(),
        baseline_tree: baseline.tree.clone(),
        files: entries.len(),
        resumed,
    })?;
    Ok((control_files, staged))
}

/// What the workspace starts from, where that is not the base tree: what the run that this one resumes made of it. It has
/// to be the very tree that its report names.
fn start(run: &Run<'_>, ground: &Ground) -> Result<Result<Option<Vec<TreeEntry>>, String>, Stop> {
    let Some(Resumed { run: parent, work: Some(work), .. }) = &run.order.resumes else {
        return Ok(Ok(None));
    };
    let why = match ground.git_dir.tree_with_patch(&ground.baseline.tree, &work.patch) {
        Ok(tree) if tree == work.tree => return Ok(Ok(Some(ground.git_dir.entries(&tree)?))),
        Ok(_) => "the target's base is another one now".to_owned(),
        Err(error) => error.to_string(),
    };
    Ok(Err(format!("what run {parent} made cannot be laid on the base: {why}")))
}

/// Which of these directories the tree has, or the one that it has as a link: what an agent finds behind that could lie
/// anywhere in the tree. A file of that name holds nothing that would be run.
fn to_hide<'a>(names: &[&'a str], tree: &[TreeEntry]) -> Result<Vec<&'a str>, &'a str> {
    let is_link = |name: &&&str| {
        tree.iter().any(|there| there.path.as_bytes() == name.as_bytes() && there.entry.mode == Mode::Symlink)
    };
    match names.iter().find(is_link) {
        Some(name) => Err(name),
        None => Ok(names.iter().copied().filter(|name| tree.iter().any(|e| e.lies_below(name))).collect()),
    }
}

fn leads_elsewhere(engine: &dyn Engine, name: &str) -> String {
    format!(
        "`{name}` is a link, and the engine `{}` would run code from where it leads: make it a directory, which is hidden \
         from the agent, or remove it",
        engine.name()
    )
}

/// Takes down that the agent cannot start from what it should start from.
fn dirty(run: &mut Run<'_>, why: String) -> Result<Stop, Stop> {
    let dirty = Blocker::DirtyStartingTree.because(why);
    run.record(EngineGateBlocked {
        engine: run.plan.engine.clone(),
        gate: Gate::TargetClean,
        reason: dirty.detail.clone(),
        mutation_scope: run.contract.terms.mutation_scope(),
        engine_started: false,
    })?;
    run.facts.gate_blockers.push(dirty);
    Ok(Stop::Blocked)
}

/// Whether the copy is what it should be a copy of, file by file.
fn is_tree(workspace: &Path, git_dir: &GitDir, expected: &[TreeEntry]) -> Result<bool, Stop> {
    let found = walk(workspace, git_dir.format())?;
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
