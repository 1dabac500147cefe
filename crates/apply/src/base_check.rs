//! The conditions on target and repository.

use std::io;
use std::path::Path;

use herma_core::admission::{AdmissionDraft, RiskClass};
use herma_core::contract::{Risk, Target};
use herma_core::event::Event;
use herma_core::{Contract, Report, Stage};
use herma_files::{MAX_RECORD_BYTES, read_regular};
use herma_git::SourceRepo;
use herma_harness::Installation;
use herma_trust::{AdmissionFile, Admissions};
use serde::Deserialize;

use crate::error::ApplyError;

/// The part of a run's plan that names its contract.
#[derive(Deserialize)]
struct Planned {
    contract_text: String,
}

/// Refuses runs whose target is no repository of a person.
pub(crate) fn is_of_a_repository(
    report: &Report,
    contract: &Contract,
    first: Option<&Event>,
) -> Result<(), ApplyError> {
    let refuse = |why: &str| Err(ApplyError::NoRepository { run: report.run_id, why: why.to_owned() });
    match first {
        None => return refuse("its first event cannot be read"),
        Some(event) if event.data.contains_key("depth") => {
            return refuse("it is a child run, whose work is part of its parent's patch");
        }
        Some(_) => {}
    }
    why_no_repository(contract).map_or(Ok(()), refuse)
}

/// Why the result of this contract cannot become a change of a person's repository.
fn why_no_repository(contract: &Contract) -> Option<&'static str> {
    match (&contract.terms.target, contract.terms.stage) {
        (Target::Fixture(_), _) => Some("its target is a fixture, which is built into herma"),
        (_, Stage::OwnedRepo) => Some("it landed on a branch of its own: merge that branch"),
        _ => None,
    }
}

/// The commit that is checked out, if its files are those that the run started from. The evidence names the tree of the base, and
/// herma's commit of that tree has the same name in every run.
pub(crate) fn unmoved_base(
    installation: &Installation,
    report: &Report,
    directory: &Path,
) -> Result<String, ApplyError> {
    let source = open(installation, directory)?;
    let scratch = tempfile::tempdir().map_err(ApplyError::Record)?;
    let (_, baseline) = source.make_git_dir(&scratch.path().join("git"))?;
    if report.baseline_commit.as_ref() != Some(&baseline.commit) {
        return Err(ApplyError::BaseMoved {
            run: report.run_id,
            directory: directory.to_owned(),
            head: source.base_commit().to_owned(),
        });
    }
    Ok(source.base_commit().to_owned())
}

/// The repository at its HEAD.
pub(crate) fn open(installation: &Installation, directory: &Path) -> Result<SourceRepo, ApplyError> {
    let name = directory.display().to_string();
    Ok(SourceRepo::open(installation.git(), directory, &name, None)?)
}

/// Refuses a repository on which something critical depends, as a contract or any record of a target says, signed or not. A target
/// that the contract names by its admission must be in the place of that admission.
pub(crate) fn is_not_protected(
    installation: &Installation,
    contract: &Contract,
    directory: &Path,
) -> Result<(), ApplyError> {
    let protected = |why: String| Err(ApplyError::Protected { directory: directory.to_owned(), why });
    if contract.terms.risk == Risk::Critical {
        return protected("the contract's risk is critical".to_owned());
    }
    let admissions = installation.admissions();
    let listed = match admissions.list() {
        Ok(listed) => listed,
        Err(error) => return protected(format!("its admissions cannot be read: {error}")),
    };
    for admission in listed.into_iter().filter(|listed| listed.kind.as_str() == "target") {
        let draft = match AdmissionFile::read(&admission.file) {
            Ok(AdmissionFile { draft: AdmissionDraft::Target(draft), .. }) => draft,
            Ok(_) => continue,
            Err(error) => return protected(format!("an admission cannot be read: {error}")),
        };
        let is_here = draft.path.as_deref().is_some_and(|path| is_same(path, directory));
        if is_here && matches!(draft.risk_class, Some(RiskClass::Moderate | RiskClass::Critical)) {
            return protected("its admission names a risk class that is not low".to_owned());
        }
    }
    match &contract.terms.target {
        Target::Repo { repo, .. } if !repo.is_path() => {
            let admitted = Admissions::target_directory(installation.home.admissions(), repo.as_str());
            match admitted {
                Some(path) if is_same(&path, directory) => Ok(()),
                _ => protected(format!("the target `{repo}` is not admitted at this place")),
            }
        }
        _ => Ok(()),
    }
}

fn is_same(path: &Path, directory: &Path) -> bool {
    path == directory || path.canonicalize().is_ok_and(|path| path == directory)
}

/// Refuses while a run of stage 5 works on this repository, or on one that cannot be told.
pub(crate) fn no_landing(installation: &Installation, directory: &Path) -> Result<(), ApplyError> {
    for run in installation.home.active_runs().map_err(ApplyError::Record)? {
        let under_way = || Err(ApplyError::Landing(format!("run {run} of stage 5 is under way")));
        let bytes = match read_regular(&installation.home.run(run).plan(), MAX_RECORD_BYTES) {
            Ok(bytes) => bytes,
            // It has not started yet, or has been closed.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => return under_way(),
        };
        let contract = serde_json::from_slice::<Planned>(&bytes).ok();
        let contract = contract.and_then(|plan| Contract::parse(plan.contract_text.as_bytes()).ok());
        let Some(contract) = contract else { return under_way() };
        let Target::Repo { repo, .. } = &contract.terms.target else { continue };
        let place = Admissions::target_directory(installation.home.admissions(), repo.as_str());
        if contract.terms.stage == Stage::OwnedRepo && place.is_none_or(|path| is_same(&path, directory)) {
            return under_way();
        }
    }
    Ok(())
}
