//! The target of a contract, found and read.

use std::path::Path;

use herma_fixtures::Fixture;
use herma_git::{Baseline, GitDir, GitError, NewFile, ObjectFormat, SourceRepo, SourceState};
use herma_model::blocker::{Blocker, BlockerRecord};
use herma_model::contract::{RepoRef, Risk, Target};
use herma_model::{Contract, RepoPath};

use crate::installation::Installation;

/// The target of a contract, found.
pub(crate) enum FoundTarget {
    /// A repository that is built into herma.
    Fixture(&'static Fixture),
    /// A local repository.
    Repo(Box<FoundRepo>),
}

/// A local repository that was found, with what it was before the run.
pub(crate) struct FoundRepo {
    pub(crate) source: SourceRepo,
    pub(crate) before: SourceState,
}

impl FoundTarget {
    /// Finds the target, or says why it may not be worked on.
    pub(crate) fn find(
        installation: &Installation,
        contract: &Contract,
        contract_dir: &Path,
    ) -> Result<Self, BlockerRecord> {
        if contract.terms.risk == Risk::Critical {
            return Err(Blocker::CriticalRepository.because("the contract's risk is critical"));
        }
        match &contract.terms.target {
            Target::Fixture(name) => herma_fixtures::find(name.as_str())
                .map(Self::Fixture)
                .ok_or_else(|| Blocker::TargetNotAdmitted.because(format!("there is no fixture `{name}`"))),
            Target::Repo { repo, .. } if !repo.is_path() => Err(Blocker::TargetNotAdmitted.because(format!(
                "`{repo}` is the name of an admission, and there is none; a path starts with `./` or `../`"
            ))),
            Target::Repo { repo, base } => Self::open(installation, contract_dir, repo, base.as_deref())
                .map_err(|e| match e {
                    OpenTarget::Unowned => Blocker::UnownedRepository
                        .because(format!("`{repo}` belongs to another user than the one who runs herma")),
                    OpenTarget::Git(e) => Blocker::TargetNotAdmitted.because(e.to_string()),
                }),
        }
    }

    fn open(
        installation: &Installation,
        contract_dir: &Path,
        repo: &RepoRef,
        base: Option<&str>,
    ) -> Result<Self, OpenTarget> {
        let root = contract_dir.join(repo.as_str());
        // Ownership comes first: git itself refuses, with many words, to look into somebody else's repository.
        if !owned(&root) {
            return Err(OpenTarget::Unowned);
        }
        let source = SourceRepo::open(&installation.git, &root, repo.as_str(), base)?;
        let before = source.capture()?;
        Ok(Self::Repo(Box::new(FoundRepo { source, before })))
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
        }
    }
}

/// The contract's repository, for a process that did not start the run.
pub(crate) fn find_again(
    installation: &Installation,
    contract: &Contract,
    contract_dir: &Path,
) -> Option<SourceRepo> {
    let Target::Repo { repo, base } = &contract.terms.target else { return None };
    SourceRepo::open(&installation.git, &contract_dir.join(repo.as_str()), repo.as_str(), base.as_deref())
        .ok()
}

enum OpenTarget {
    Unowned,
    Git(GitError),
}

impl From<GitError> for OpenTarget {
    fn from(error: GitError) -> Self {
        Self::Git(error)
    }
}

/// Whether the directory and its git directory belong to who runs herma. What is not there belongs to nobody else.
fn owned(root: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let uid = rustix::process::geteuid().as_raw();
    [root.to_owned(), root.join(".git")]
        .iter()
        .all(|path| std::fs::symlink_metadata(path).map_or(true, |meta| meta.uid() == uid))
}

/// Records a fixture as one parentless commit.
pub(crate) fn import_fixture(git_dir: &GitDir, fixture: &Fixture) -> Result<Baseline, GitError> {
    let paths: Vec<RepoPath> = fixture.files.iter().filter_map(|file| RepoPath::new(file.path)).collect();
    let files: Vec<NewFile<'_>> = paths
        .iter()
        .zip(fixture.files)
        .map(|(path, file)| NewFile { path, mode: file.mode, content: file.bytes })
        .collect();
    git_dir.import(&files)
}
