//! The target: admitted, and clean.

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::contract::Target;
use herma_core::decision::AdmissionSeen;
use herma_core::gate::Finding;
use herma_core::{Contract, RepoPath};
use herma_evidence::Redactor;
use herma_git::StatusSummary;

use super::{Case, Judged};
use crate::installation::Installation;
use crate::target::FoundTarget;

/// How much of a path is shown in a reason.
const LONGEST_PATH: usize = 120;

/// The target that was found.
pub(super) struct TargetSeen {
    pub(super) found: Result<FoundTarget, BlockerRecord>,
    pub(super) seen: Option<AdmissionSeen>,
}

pub(super) fn find(case: Case<'_>) -> TargetSeen {
    let Case { installation, order, .. } = case;
    if let Some(parent) = case.occasion.child_of {
        return TargetSeen { found: FoundTarget::of_parent(&order.contract, parent), seen: None };
    }
    let terms = &order.contract.terms;
    let admission = match &terms.target {
        Target::Repo { repo, .. } if !repo.is_path() => {
            Some(installation.admissions().find_target(repo.as_str(), &installation.admission_context()))
        }
        _ => None,
    };
    let seen = admission.as_ref().map(|found| AdmissionSeen {
        kind: "target".to_owned(),
        name: match &terms.target {
            Target::Repo { repo, .. } => repo.to_string(),
            Target::Fixture(name) => name.to_string(),
        },
        status: found.status,
        digest: found.digest,
    });
    TargetSeen {
        found: FoundTarget::find(installation, &order.contract, &order.contract_dir, admission),
        seen,
    }
}

pub(super) fn clean(contract: &Contract, target: &FoundTarget) -> Judged {
    match (&contract.terms.target, target) {
        (Target::Fixture(_), _) => {
            Ok(Finding::NotApplicable("a fixture is built in and cannot be dirty".to_owned()))
        }
        (Target::Repo { .. }, FoundTarget::Workspace(_)) => {
            Ok(Finding::NotApplicable("a child starts from its parent's workspace as it is".to_owned()))
        }
        (Target::Repo { .. }, FoundTarget::Repo(found)) if found.before.clean => Ok(Finding::Passed),
        (Target::Repo { repo, .. }, FoundTarget::Repo(found)) => {
            Err(Blocker::DirtyStartingTree.because(dirty(repo.as_str(), &found.before.listed)))
        }
        (Target::Repo { repo, .. }, FoundTarget::Fixture(_)) => {
            Err(Blocker::TargetNotAdmitted.because(format!("`{repo}` is no repository")))
        }
    }
}

/// The changed paths. Anybody can have named these files.
fn dirty(repo: &str, listed: &StatusSummary) -> String {
    let redactor = Redactor::default();
    let show = |path: &RepoPath| shortened(&redactor.redact(&path.to_string()));
    let shown: Vec<String> = listed.first.iter().map(show).collect();
    let more = match listed.count.saturating_sub(shown.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("tracked files of `{repo}` have uncommitted changes: {}{more}", shown.join(", "))
}

fn shortened(path: &str) -> String {
    match path.char_indices().nth(LONGEST_PATH) {
        None => path.to_owned(),
        Some((end, _)) => format!("{}…", &path[..end]),
    }
}

/// Whether a target that was named by its admission is still admitted.
pub(super) fn still_admitted(installation: &Installation, contract: &Contract) -> Result<(), BlockerRecord> {
    let Target::Repo { repo, .. } = &contract.terms.target else { return Ok(()) };
    if repo.is_path() {
        return Ok(());
    }
    let found = installation.admissions().find_target(repo.as_str(), &installation.admission_context());
    match found.blocker {
        Some(blocker) => Err(blocker.because(found.detail)),
        None => Ok(()),
    }
}
