//! Makes the workspace: one parentless commit of the base tree, nothing shared with the target.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use herma_engines::{Assignment, Engine};
use herma_git::{ControlFiles, lay_out, make_agent_repository, walk};
use herma_model::blocker::Blocker;
use herma_model::report::Mode;
use herma_model::{EventType, Fault, Gate, Stage};
use serde_json::json;

use crate::error::Stop;
use crate::gates::Ready;
use crate::home::RunDirs;
use crate::installation::Installation;
use crate::run::{Ground, Run};
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

/// Makes the workspace, the engine's directory, and the fresh checkout of the same tree that verification will run on.
/// The engine never sees that one: it is not mounted. Meanwhile its destination is made ready.
pub(crate) fn workspace<'a>(
    run: &mut Run<'_>,
    engine: &dyn Engine,
    ready: &'a Ready,
    ground: &Ground,
) -> Result<(ControlFiles, Staged<'a>), Stop> {
    let Ground { git_dir, baseline, entries } = ground;
    let (workspace, engine_dir, fresh) = (run.dirs.workspace(), run.dirs.engine(), run.dirs.verification());
    for dir in [&workspace, &engine_dir, &fresh] {
        DirBuilder::new().mode(0o700).create(dir)?;
    }
    let script = run.order.script.as_deref();
    let view = ready.destination.view(&supervise::rooms(run));
    engine.prepare(&Assignment { contract: run.contract, script }, &engine_dir, &view)?;
    let staged = supervise::stage(run, engine, ready)?;
    let scratch = engine.scratch_paths();
    std::thread::scope(|scope| {
        let files = scope.spawn(|| lay_out(git_dir, entries, &[&workspace, &fresh]));
        let repository = make_agent_repository(git_dir, baseline, entries, &workspace, scratch);
        files.join().map_err(|_| Stop::panicked("laying out the workspace"))??;
        repository.map_err(Stop::from)
    })?;
    run.facts.baseline_commit = Some(baseline.commit.clone());
    run.record(
        EventType::WorkspacePrepared,
        json!({ "baseline_commit": baseline.commit, "baseline_tree": baseline.tree, "files": entries.len() }),
    )?;
    if run.order.fault == Some(Fault::DirtyCopy) {
        std::fs::write(workspace.join("left-over"), "this was not in the base tree\n")?;
    }
    if run.contract.terms.stage >= Stage::CopiedRepo && !is_the_base_tree(&workspace, ground)? {
        let dirty =
            Blocker::DirtyStartingTree.because("the workspace is not the base tree that it was made from");
        run.record(
            EventType::EngineGateBlocked,
            json!({
                "engine": run.plan.engine,
                "gate": Gate::TargetClean,
                "reason": dirty.detail,
                "mutation_scope": run.contract.terms.mutation_scope(),
                "engine_started": false,
            }),
        )?;
        run.facts.gate_blockers.push(dirty);
        return Err(Stop::Blocked);
    }
    Ok((ControlFiles::read(&workspace)?, staged))
}

/// Whether the copy is what it should be a copy of, file by file.
fn is_the_base_tree(workspace: &Path, ground: &Ground) -> Result<bool, Stop> {
    let found = walk(workspace, ground.git_dir.format())?;
    let expected = ground
        .entries
        .iter()
        .filter(|there| there.entry.mode != Mode::Submodule && !found.oversized.contains(&there.path));
    let nothing_else = found.specials.is_empty() && found.nested_repositories.is_empty();
    Ok(nothing_else && found.entries.iter().eq(expected.map(|there| (&there.path, &there.entry))))
}
