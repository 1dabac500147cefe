//! An environment that is built again for a patch that changes an input, where the contract permits it.

use herma_core::RepoPath;
use herma_core::environment::RebuildRecord;
use herma_environments::build::BaseTree as BuildTree;
use herma_environments::rebuild::refusal;

use super::record::failure;
use super::{BuildFailure, RunEnvironment, UntrackedFiles, build_tree, untracked_files};
use crate::context::RunContext;
use crate::error::Stop;
use crate::gates::Ready;

/// The environment of a patch that changes inputs.
pub(crate) enum Rebuild {
    /// It was built, and verification uses it.
    Done(Box<RunEnvironment>),
    /// There is none, for this reason.
    Refused(String),
}

impl RunEnvironment {
    /// Builds the environment again for the result. `tree` is its tree, with entries.
    pub(crate) fn rebuild(
        &mut self,
        ctx: &RunContext<'_>,
        ready: &Ready,
        tree: BuildTree<'_>,
        changed: &[RepoPath],
    ) -> Result<Rebuild, Stop> {
        let Some(prepared) = &ready.environment else {
            return Ok(Rebuild::Refused("there is none".to_owned()));
        };
        if let Some(why) = refusal(prepared.plan().definition, changed) {
            return Ok(Rebuild::Refused(why));
        }
        if let Some(part) = changed.iter().find(|path| self.has_at_or_below(path)) {
            return Ok(Rebuild::Refused(format!("{} takes the place of a part of it", part.shortened())));
        }
        ctx.note("environment: building it again for the patch, which changes an input");
        let mut record =
            RebuildRecord { changed_inputs: changed.to_vec(), layers: Vec::new(), failure: None };
        let mut draft = self.draft.clone();
        let built = match build_tree(ctx, ready, prepared, tree, &mut record.layers) {
            Ok(built) => built,
            Err(BuildFailure::Stopped(stop)) => return Err(stop),
            Err(BuildFailure::Failed(error)) => {
                record.failure = Some(failure(&error));
                self.draft.rebuilt = Some(record);
                self.draft.write(ctx)?;
                return Ok(Rebuild::Refused(error.to_string()));
            }
        };
        draft.rebuilt = Some(record);
        draft.write(ctx)?;
        match untracked_files(&built, tree.entries) {
            UntrackedFiles::Of(files) => {
                let views = self.views.clone();
                Ok(Rebuild::Done(Box::new(Self { built, files, views, draft })))
            }
            UntrackedFiles::Tracked(path) => Ok(Rebuild::Refused(format!(
                "its commands made {}, which the result tracks",
                path.shortened()
            ))),
        }
    }
}
