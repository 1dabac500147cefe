//! The repository's admission, for engines that may land a branch in it at stage 5.

use herma_core::VERSION;
use herma_core::admission::{
    AbsolutePath, AdmissionDraft, AdmissionId, ReviewTrigger, RiskClass, TargetDraft,
};
use herma_core::report::Admission;
use herma_environments::detect::{RepositoryFiles, detect};
use herma_trust::AdmissionFile;

use crate::agent::keep;
use crate::choices::Landing;
use crate::error::QuickstartError;
use crate::repository::top_of;
use crate::session::Session;

/// The record to be signed, if a flag asks for one and the repository is not admitted.
pub(crate) fn target(session: &Session<'_>) -> Result<Option<AdmissionFile>, QuickstartError> {
    let Some(landing) = &session.choices.landing else { return Ok(None) };
    let id = AdmissionId::Target(landing.name.clone());
    let admissions = session.installation.admissions();
    let found = admissions.look(&id, None, &session.installation.admission_context());
    if found.status == Admission::Admitted {
        return Ok(None);
    }
    let name = &landing.name;
    if admissions.signature(&id)?.is_some() {
        let next = format!("look at it, then: herma admissions revoke target {name} --reason 'set up again'");
        return Err(QuickstartError::missing(found.detail, next));
    }
    if let Ok(read) = admissions.read(&id)
        && read.draft.lacks().is_none()
    {
        return Ok(Some(read));
    }
    let draft = AdmissionDraft::Target(draft(session, landing)?);
    if let Some(lacks) = draft.lacks() {
        return Err(QuickstartError::bad(
            format!("the admission of {id} is a draft; {lacks}"),
            "add --owner TEXT --ownership-evidence TEXT --rationale TEXT",
        ));
    }
    keep(session, &id, draft).map(Some)
}

fn draft(session: &Session<'_>, landing: &Landing) -> Result<TargetDraft, QuickstartError> {
    let choices = session.choices;
    let root = top_of(&choices.directory)
        .ok_or_else(|| QuickstartError::bad("not in a git repository", "name it with --repo DIR"))?;
    let bad = |why: String| QuickstartError::bad(why, "name the paths that may change with --allow 'src/**'");
    let path: AbsolutePath = root.to_string_lossy().parse().map_err(bad)?;
    let allowed = if choices.allow.is_empty() {
        let files = RepositoryFiles::list(&root).map_err(|source| QuickstartError::Io {
            path: root.clone(),
            doing: "listed",
            source,
        })?;
        detect(&files).allowed_paths.iter().filter_map(|path| path.parse().ok()).collect()
    } else {
        choices.allow.clone()
    };
    let release = VERSION.split('.').take(2).collect::<Vec<_>>().join(".");
    Ok(TargetDraft {
        path: Some(path),
        owner: landing.owner.clone(),
        ownership_evidence: landing.ownership_evidence.clone(),
        rationale: landing.rationale.clone(),
        // The only class that can be admitted; the page says it, and the code confirms it.
        risk_class: Some(RiskClass::LowRiskNoncritical),
        allowed_paths: Some(allowed.try_into().map_err(|why: &str| bad(why.to_owned()))?),
        forbidden_paths: Some(Vec::new()),
        forbidden_actions: Some(Vec::new()),
        operator_outcome_required: Some(true),
        review_trigger: Some(ReviewTrigger::HermaVersion(release)),
        ..TargetDraft::new(landing.name.clone())
    })
}
