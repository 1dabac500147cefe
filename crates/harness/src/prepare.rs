//! Makes the workspace: one parentless commit of the base tree, nothing shared with the target.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;

use herma_engines::Assignment;
use herma_git::{ControlFiles, lay_out, make_agent_repository};
use herma_model::EventType;
use serde_json::json;

use crate::error::Stop;
use crate::home::RunDirs;
use crate::installation::Installation;
use crate::run::{Ground, Run};
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
/// The engine never sees that one: it is not mounted.
pub(crate) fn workspace(run: &mut Run<'_>, ground: &Ground) -> Result<ControlFiles, Stop> {
    let Ground { git_dir, baseline, entries } = ground;
    let (workspace, engine_dir, fresh) = (run.dirs.workspace(), run.dirs.engine(), run.dirs.verification());
    for dir in [&workspace, &engine_dir, &fresh] {
        DirBuilder::new().mode(0o700).create(dir)?;
    }
    if let Some(engine) = run.installation.engines.get(&run.plan.engine) {
        let script = run.order.script.as_deref();
        engine.prepare(&Assignment { contract: run.contract, script }, &engine_dir)?;
        let scratch = engine.scratch_paths();
        std::thread::scope(|scope| {
            let files = scope.spawn(|| lay_out(git_dir, entries, &[&workspace, &fresh]));
            let repository = make_agent_repository(git_dir, baseline, entries, &workspace, scratch);
            files.join().map_err(|_| Stop::panicked("laying out the workspace"))??;
            repository.map_err(Stop::from)
        })?;
    }
    run.facts.baseline_commit = Some(baseline.commit.clone());
    run.record(
        EventType::WorkspacePrepared,
        json!({ "baseline_commit": baseline.commit, "baseline_tree": baseline.tree, "files": entries.len() }),
    )?;
    Ok(ControlFiles::read(&workspace)?)
}
