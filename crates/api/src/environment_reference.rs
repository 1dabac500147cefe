//! Replaces a contract's reference to an environment by the definition that it refers to.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use herma_core::Contract;
use herma_core::contract::{BadContract, EnvironmentReference, PlacedReference, Target};
use herma_core::environment::{BadEnvironment, EnvironmentDefinition, MAX_BYTES};
use herma_environments::definition::{REPOSITORY_FILE, parse};
use herma_environments::tools::OperatorTool;
use herma_files::open_named;
use herma_git::{Git, GitError, SourceRepo};
use herma_harness::{OperatorSettings, Settings, SettingsError};
use herma_trust::Admissions;

use crate::file_place::at_place;

/// The environment that a contract refers to cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {cause}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// The file is not a definition.
    #[error("{}", at_place(file, bad))]
    Bad {
        /// The file.
        file: PathBuf,
        /// The problem and its place.
        bad: BadEnvironment,
    },
    /// The target has no definition at its base.
    #[error("the base of `{0}` has no file {REPOSITORY_FILE}")]
    NotInRepository(String),
    /// The contract's target is a fixture.
    #[error("`repository` means {REPOSITORY_FILE} of the target, and the target is a fixture")]
    Fixture,
    /// There is no admission of this name.
    #[error("there is no admission of the target `{0}`")]
    NotAdmitted(String),
    /// The contract itself is not valid.
    #[error("{0}")]
    Contract(BadContract),
    /// The operator's settings, which can add tools, cannot be read.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The target cannot be read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The definition cannot be written into the contract.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl ReferenceError {
    pub(crate) fn next_step(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => {
                "name a file that is there; a relative path starts from the contract's directory"
            }
            Self::NotInRepository(_) => {
                "commit the file, or write the definition into the contract; docs/environments.md describes both"
            }
            Self::NotAdmitted(_) => {
                "write one with `herma admit target NAME`, or name the target by its path"
            }
            Self::Git(_) => "correct `target` in the contract",
            Self::Settings(_) => "correct settings.yaml in herma's home",
            Self::Bad { .. } | Self::Fixture | Self::Json(_) | Self::Contract(_) => {
                "docs/environments.md describes every key"
            }
        }
    }
}

/// The tools of the operator's own. A home that is not there has none.
pub(crate) fn own_tools(settings: &Settings) -> Result<Vec<OperatorTool>, SettingsError> {
    let Some(home) = &settings.home else { return Ok(Vec::new()) };
    Ok(OperatorSettings::read(&home.path().join("settings.yaml"))?.own_tools())
}

/// The contract's text with the definition in place of its reference. `dir` is the contract's directory.
pub(crate) fn resolve(
    found: &PlacedReference,
    text: &str,
    dir: &Path,
    settings: &Settings,
) -> Result<String, ReferenceError> {
    let own = own_tools(settings)?;
    let definition = match &found.reference {
        EnvironmentReference::File(name) => of_file(&dir.join(name), &own)?,
        EnvironmentReference::Repository => {
            // The target is read from the contract, which is valid with any definition.
            let text = found.replaced(text, &EnvironmentDefinition::default())?;
            let contract = Contract::parse(text.as_bytes()).map_err(ReferenceError::Contract)?;
            of_repository(&contract, dir, settings, &own)?
        }
    };
    Ok(found.replaced(text, &definition)?)
}

fn of_file(file: &Path, own: &[OperatorTool]) -> Result<EnvironmentDefinition, ReferenceError> {
    let mut bytes = Vec::new();
    open_named(file)
        .and_then(|opened| opened.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|cause| ReferenceError::Unreadable { file: file.to_owned(), cause })?;
    parse(&bytes, own).map_err(|bad| ReferenceError::Bad { file: file.to_owned(), bad })
}

/// The definition of the target itself, at the base that a run now starts from. The work tree is not read.
fn of_repository(
    contract: &Contract,
    dir: &Path,
    settings: &Settings,
    own: &[OperatorTool],
) -> Result<EnvironmentDefinition, ReferenceError> {
    let Target::Repo { repo, base } = &contract.terms.target else { return Err(ReferenceError::Fixture) };
    let name = repo.as_str();
    let root = if repo.is_path() {
        dir.join(name)
    } else {
        let home = settings.home.as_ref();
        let admitted =
            home.and_then(|home| Admissions::target_directory(home.path().join("admissions"), name));
        admitted.ok_or_else(|| ReferenceError::NotAdmitted(name.to_owned()))?
    };
    let git = Git::find(&settings.search_path)?;
    let source = SourceRepo::open(&git, &root, name, base.as_deref())?;
    let bytes = source.file_at_base(REPOSITORY_FILE, MAX_BYTES)?;
    let bytes = bytes.ok_or_else(|| ReferenceError::NotInRepository(name.to_owned()))?;
    parse(&bytes, own).map_err(|bad| ReferenceError::Bad { file: PathBuf::from(REPOSITORY_FILE), bad })
}
