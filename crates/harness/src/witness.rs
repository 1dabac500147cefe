//! The witness step: the state of the target and of the disposable repository after the engine.

use herma_core::report::LandedIn;
use herma_git::{GitError, SourceRepo, SourceState};
use serde::{Deserialize, Serialize};

use crate::error::Stop;
use crate::journal::StepResult;

/// The repositories after the engine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Witnessed {
    pub(crate) source_after: Option<SourceState>,
    pub(crate) disposable_after: Option<SourceState>,
}

impl StepResult for Witnessed {
    const KEY: &'static str = "witnessed";
}

/// Captures the repositories, to be compared with their state before the run.
pub(crate) fn witness(
    source: Option<&SourceRepo>,
    disposable: Option<&SourceRepo>,
    found: &mut Option<Witnessed>,
) -> Result<(), Stop> {
    let witnessed = found.get_or_insert_default();
    if let Some(source) = source {
        witnessed.source_after = Some(source.capture()?);
    }
    if let Some(disposable) = disposable {
        witnessed.disposable_after = Some(disposable.capture()?);
    }
    Ok(())
}

/// Captures a repository once more after something landed there: HEAD, index, status and work tree have to be as they were.
/// `SourceRepo::only_landed` judges the refs.
pub(crate) fn witness_landing(
    place: &SourceRepo,
    kind: LandedIn,
    found: &mut Option<Witnessed>,
) -> Result<(), GitError> {
    let after = place.capture()?;
    let witnessed = found.get_or_insert_default();
    let before = match kind {
        LandedIn::Target => &mut witnessed.source_after,
        LandedIn::Disposable => &mut witnessed.disposable_after,
    };
    if let Some(before) = before {
        let refs = before.refs;
        *before = after;
        before.refs = refs;
    }
    Ok(())
}
