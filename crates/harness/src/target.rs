//! The target of a contract, found and read.

use std::path::Path;
use std::sync::Arc;

use herma_core::admission::TargetAdmission;
use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::content::MissingContent;
use herma_core::contract::{Risk, Target, Terms};
use herma_core::environment::History;
use herma_core::{Contract, Digest, Stage};
use herma_fixtures::Fixture;
use herma_git::{
    BaseHistory, Baseline, GitDir, GitError, NotPlain, ObjectFormat, SourceRepo, SourceState, TreeEntry,
    is_plain,
};
use herma_trust::{AdmissionFinding, import_fixture};

use crate::installation::Installation;
use crate::parent_run::ParentRun;
use crate::parent_snapshot;

/// The target of a contract, found.
pub(crate) enum FoundTarget {
    /// A repository that is built into herma.
    Fixture(&'static Fixture),
    /// A local repository.
    Repo(Box<FoundRepo>),
    /// The workspace of the run that asked for this one.
    Workspace(Arc<ParentRun>),
}

/// A local repository that was found, with what it was before the run.
pub(crate) struct FoundRepo {
    /// Its name in contracts, reports and messages; never its path.
    name: String,
    pub(crate) source: SourceRepo,
    pub(crate) before: SourceState,
    /// The record that lets it in, where it was named by one.
    pub(crate) admission: Option<Admitted>,
}

/// The record of a target's admission.
pub(crate) struct Admitted {
    pub(crate) record: TargetAdmission,
    digest: Option<Digest>,
}

impl FoundTarget {
    /// Finds the target, or says why it may not be worked on.
    pub(crate) fn find(
        installation: &Installation,
        contract: &Contract,
        contract_dir: &Path,
        admission: Option<AdmissionFinding<TargetAdmission>>,
    ) -> Result<Self, BlockerRecord> {
        let terms = &contract.terms;
        not_critical(contract)?;
        match &terms.target {
            Target::Fixture(name) if terms.stage == Stage::OwnedRepo => Err(Blocker::TargetNotAdmitted
                .because(format!("stage 5 lands in an admitted repository, and `{name}` is a fixture"))),
            Target::Fixture(name) => herma_fixtures::find(name.as_str())
                .map(Self::Fixture)
                .ok_or_else(|| Blocker::TargetNotAdmitted.because(format!("there is no fixture `{name}`"))),
            Target::Repo { repo, .. } if repo.is_path() && terms.stage.lands() => {
                Err(Blocker::TargetNotAdmitted.because(format!(
                    "`{repo}` is a path; from stage 4 on a target is named by its admission"
                )))
            }
            Target::Repo { repo, base } if repo.is_path() => {
                let root = contract_dir.join(repo.as_str());
                Self::open(installation, &root, repo.as_str(), base.as_deref(), None)
            }
            Target::Repo { repo, base } => {
                let admitted = let_in(repo.as_str(), admission)?;
                let path = admitted.record.path.clone();
                Self::open(installation, &path, repo.as_str(), base.as_deref(), Some(admitted))
            }
        }
    }

    /// The target of a child: what its parent works on.
    pub(crate) fn of_parent(contract: &Contract, parent: &Arc<ParentRun>) -> Result<Self, BlockerRecord> {
        not_critical(contract)?;
        Ok(Self::Workspace(Arc::clone(parent)))
    }

    fn open(
        installation: &Installation,
        root: &Path,
        name: &str,
        base: Option<&str>,
        admission: Option<Admitted>,
    ) -> Result<Self, BlockerRecord> {
        // Ownership comes first: git itself refuses, with many words, to look into somebody else's repository.
        if !owned(root) {
            return Err(Blocker::UnownedRepository
                .because(format!("`{name}` belongs to another user than the one who runs herma")));
        }
        if admission.is_some() {
            is_plain(root).map_err(|error| not_plain(name, &error))?;
        }
        let unreadable = |e: GitError| Blocker::TargetNotAdmitted.because(e.to_string());
        let source = SourceRepo::open(&installation.git, root, name, base).map_err(unreadable)?;
        if admission.is_some() {
            source.is_at(root).map_err(|error| not_plain(name, &error))?;
        }
        let before = source.capture().map_err(unreadable)?;
        Ok(Self::Repo(Box::new(FoundRepo { name: name.to_owned(), source, before, admission })))
    }

    /// Its name in contracts, reports and messages; never its path.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Fixture(fixture) => format!("fixture:{}", fixture.name),
            Self::Repo(repo) => repo.name.clone(),
            Self::Workspace(parent) => format!("workspace:{}", parent.run),
        }
    }

    /// The digest of its admission.
    pub(crate) fn admission_digest(&self) -> Option<Digest> {
        match self {
            Self::Fixture(_) | Self::Workspace(_) => None,
            Self::Repo(repo) => repo.admission.as_ref()?.digest,
        }
    }

    /// The base of the run: a commit, or for a fixture the digest of its files.
    pub(crate) fn base(&self) -> String {
        match self {
            Self::Fixture(fixture) => fixture_digest(fixture).to_string(),
            Self::Repo(repo) => repo.source.base_commit().to_owned(),
            Self::Workspace(parent) => parent.base_tree.clone(),
        }
    }

    /// The contract's terms with the admission's paths and actions in place of its own: both apply to a run.
    pub(crate) fn narrowed(&self, terms: &Terms) -> Option<Terms> {
        let Self::Repo(repo) = self else { return None };
        let record = &repo.admission.as_ref()?.record;
        Some(Terms {
            allowed_paths: record.allowed_paths.clone(),
            forbidden_paths: record.forbidden_paths.clone(),
            forbidden_actions: record.forbidden_actions.clone(),
            ..terms.clone()
        })
    }

    /// Makes herma's own git directory with the baseline in it.
    pub(crate) fn baseline(
        &self,
        installation: &Installation,
        git_dir: &Path,
    ) -> Result<(GitDir, Baseline), GitError> {
        match self {
            Self::Fixture(fixture) => {
                let git_dir = GitDir::create(&installation.git, git_dir, ObjectFormat::Sha1, None)?;
                let baseline = import_fixture(&git_dir, fixture)?;
                Ok((git_dir, baseline))
            }
            Self::Repo(repo) => repo.source.make_git_dir(git_dir),
            Self::Workspace(parent) => parent_snapshot::baseline(installation, git_dir, parent),
        }
    }

    /// The same git directory with the submodules and LFS files that the target has, and what it does not have of them.
    pub(crate) fn with_content(
        &self,
        git_dir: GitDir,
        entries: &[TreeEntry],
    ) -> Result<(GitDir, Vec<MissingContent>), GitError> {
        match self {
            Self::Repo(repo) => repo.source.with_content(git_dir, entries),
            Self::Fixture(_) => Ok((git_dir, Vec::new())),
            Self::Workspace(parent) => Ok((git_dir.with_content_of(&parent.content), Vec::new())),
        }
    }

    /// The history that checkouts of the baseline get; none if none is wanted.
    pub(crate) fn history(
        &self,
        git_dir: &GitDir,
        baseline: &Baseline,
        wanted: History,
    ) -> Result<Option<BaseHistory>, GitError> {
        match self {
            _ if wanted == History::None => Ok(None),
            Self::Repo(repo) => repo.source.history(git_dir, wanted),
            Self::Fixture(_) | Self::Workspace(_) => BaseHistory::of_baseline(git_dir, baseline).map(Some),
        }
    }
}

/// The history that a contract gives to checkouts.
pub(crate) fn wanted_history(contract: &Contract) -> History {
    contract.terms.environment.as_ref().map_or(History::None, |definition| definition.history)
}

fn not_critical(contract: &Contract) -> Result<(), BlockerRecord> {
    if contract.terms.risk == Risk::Critical {
        return Err(Blocker::CriticalRepository.because("the contract's risk is critical"));
    }
    Ok(())
}

/// The contract's repository, for a process that did not start the run. It is looked for where it was then: a record
/// that was changed meanwhile decides about new runs, not about what became of this one.
pub(crate) fn find_again(
    installation: &Installation,
    contract: &Contract,
    target_dir: Option<&Path>,
) -> Option<SourceRepo> {
    let Target::Repo { repo, base } = &contract.terms.target else { return None };
    SourceRepo::open(&installation.git, target_dir?, repo.as_str(), base.as_deref()).ok()
}

/// The record, if it lets the target in.
fn let_in(name: &str, found: Option<AdmissionFinding<TargetAdmission>>) -> Result<Admitted, BlockerRecord> {
    let refuse = |blocker: Blocker, why: String| BlockerRecord {
        next_step: format!(
            "Write its admission with `herma admit target {name}` and have it signed with `herma admit sign target {name}`."
        ),
        ..blocker.because(why)
    };
    let Some(AdmissionFinding { blocker, digest, detail, record, .. }) = found else {
        return Err(refuse(Blocker::TargetNotAdmitted, format!("there is no admission of `{name}`")));
    };
    match (blocker, record) {
        (None, Some(record)) => Ok(Admitted { record, digest }),
        (blocker, _) => Err(refuse(blocker.unwrap_or(Blocker::TargetNotAdmitted), detail)),
    }
}

/// An admitted repository is in one place. One that is partly elsewhere could be redirected after its
/// admission.
fn not_plain(name: &str, error: &NotPlain) -> BlockerRecord {
    BlockerRecord {
        next_step: format!(
            "Put `{name}` back as it was admitted, or write a new admission with `herma admit target {name}`."
        ),
        ..Blocker::TargetNotAdmitted.because(format!("`{name}` is not where it was admitted: {error}"))
    }
}

/// The digest over paths, modes and contents of a fixture.
fn fixture_digest(fixture: &Fixture) -> Digest {
    let mut bytes = Vec::new();
    for file in fixture.files {
        bytes.extend_from_slice(file.path.as_bytes());
        bytes.extend_from_slice(format!("\0{}\0", file.mode.as_str()).as_bytes());
        bytes.extend_from_slice(Digest::of(file.bytes).as_bytes());
    }
    Digest::of(&bytes)
}

/// Whether the directory and its git directory belong to the user who runs herma. A missing one belongs to nobody else.
fn owned(root: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let uid = rustix::process::geteuid().as_raw();
    [root.to_owned(), root.join(".git")]
        .iter()
        .all(|path| std::fs::symlink_metadata(path).map_or(true, |meta| meta.uid() == uid))
}
