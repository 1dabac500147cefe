//! Makes the workspace: one parentless commit of the base tree, nothing shared with the target.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;

use herma_engines::Assignment;
use herma_git::{Baseline, ControlFiles, GitDir, TreeEntry, lay_out, make_agent_repository};
use herma_model::EventType;
use serde_json::json;

use crate::error::Stop;
use crate::home::RunDirs;
use crate::installation::Installation;
use crate::run::{Ground, Run};
use crate::target::FoundTarget;

/// What the workspace will hold, in herma's own git directory.
pub(crate) struct Base {
    git_dir: GitDir,
    baseline: Baseline,
    entries: Vec<TreeEntry>,
}

/// Makes herma's own git directory and lists the base tree.
pub(crate) fn base(installation: &Installation, target: &FoundTarget, dirs: &RunDirs) -> Result<Base, Stop> {
    let (git_dir, baseline) = target.baseline(installation, &dirs.git())?;
    let entries = git_dir.entries(&baseline.tree)?;
    Ok(Base { git_dir, baseline, entries })
}

/// Makes the workspace and the engine's directory.
pub(crate) fn workspace(run: &mut Run<'_>, base: Base) -> Result<Ground, Stop> {
    let Base { git_dir, baseline, entries } = base;
    let (workspace, engine_dir) = (run.dirs.workspace(), run.dirs.engine());
    for dir in [&workspace, &engine_dir] {
        DirBuilder::new().mode(0o700).create(dir)?;
    }
    if let Some(engine) = run.installation.engines.get(&run.plan.engine) {
        let script = run.order.script.as_deref();
        engine.prepare(&Assignment { contract: run.contract, script }, &engine_dir)?;
        let scratch = engine.scratch_paths();
        std::thread::scope(|scope| {
            let files = scope.spawn(|| lay_out(&git_dir, &entries, &workspace));
            let repository = make_agent_repository(&git_dir, &baseline, &entries, &workspace, scratch);
            files.join().map_err(|_| Stop::panicked("laying out the workspace"))??;
            repository.map_err(Stop::from)
        })?;
    }
    run.facts.baseline_commit = Some(baseline.commit.clone());
    run.record(
        EventType::WorkspacePrepared,
        json!({ "baseline_commit": baseline.commit, "baseline_tree": baseline.tree, "files": entries.len() }),
    )?;
    let control_files = ControlFiles::read(&workspace)?;
    Ok(Ground { git_dir, baseline, entries, control_files })
}

/// Lays out the fresh checkout of the baseline that verification will run on.
pub(crate) fn checkout(ground: &Ground, dirs: &RunDirs) -> Result<(), Stop> {
    DirBuilder::new().mode(0o700).create(dirs.verification())?;
    lay_out(&ground.git_dir, &ground.entries, &dirs.verification())?;
    Ok(())
}
