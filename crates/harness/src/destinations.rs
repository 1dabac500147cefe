//! Which destination a run takes place in, and what Docker is used with: what was chosen for a repository, and what the
//! operator said for all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use herma_core::contract::Target;
use herma_core::engine::DestinationKind;
use herma_core::{Contract, Digest};
use herma_destination::{
    Catalog, ContainerOptions, Destination, DestinationCapabilities, ImagePin, Unready, no_image,
};
use herma_git::GitError;
use herma_home::write_durably;
use serde::{Deserialize, Serialize};

use crate::file_reading::read_regular;
use crate::installation::Installation;

/// The largest record that is read.
const MAX_BYTES: u64 = 64 << 10;

/// The choice for a repository. It is kept in herma's home and never in the repository: an agent that may write there on a
/// branch must not choose its own confinement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The git directory that the repository shares with its worktrees. The record is about this one and no other,
    /// whatever its file is called.
    pub repository: PathBuf,
    /// Where runs on it take place, if neither the contract nor a flag says it.
    pub destination: DestinationKind,
    /// Docker's image.
    pub image: Option<ImagePin>,
    /// Docker's runtime.
    pub runtime: Option<String>,
}

/// A choice could not be read or made.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// There is no repository to choose for.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Only Docker has images and runtimes.
    #[error("the destination `{}` has neither image nor runtime: they are Docker's", .0.as_str())]
    NotDocker(DestinationKind),
    /// No image was chosen.
    #[error("{}", no_image().what)]
    NoImage,
    /// The record cannot be read or written.
    #[error("{}: {cause}", file.display())]
    File {
        /// Which file.
        file: PathBuf,
        /// The error of the system, or the problem.
        cause: io::Error,
    },
}

impl ChoiceError {
    /// The next step for a person.
    #[must_use]
    pub fn next_step(&self) -> String {
        let step = match self {
            Self::Git(_) => "name a git repository: `--repo DIR`",
            Self::NotDocker(_) => "leave --image and --runtime out, or choose `docker`",
            Self::NoImage => return no_image().next_step,
            Self::File { .. } => "remove the file, then choose again with `herma destination set`",
        };
        step.to_owned()
    }
}

impl Installation {
    /// A destination by its kind, as a repository's choice and the operator's settings say; or why there is none.
    pub fn destination(
        &self,
        kind: DestinationKind,
        choice: Option<&Choice>,
    ) -> Result<Box<dyn Destination>, Unready> {
        self.destinations().open(kind, self.container_options(choice))
    }

    /// Every destination, with the settings of this installation.
    pub(crate) fn destinations(&self) -> Catalog {
        Catalog {
            herma: self.settings.herma.clone(),
            search_path: self.settings.search_path.clone(),
            docker_socket: self.settings.docker_host.clone(),
            docker_files: self.home.root().join("docker"),
        }
    }

    /// The image and the runtime of containers: the repository's choice, then the operator's settings.
    #[must_use]
    pub fn container_options(&self, choice: Option<&Choice>) -> ContainerOptions {
        let image = choice.and_then(|choice| choice.image.clone());
        let runtime = choice.and_then(|choice| choice.runtime.clone());
        ContainerOptions {
            image: image.or_else(|| self.operator.docker_image.clone()),
            runtime: runtime.or_else(|| self.operator.docker_runtime.clone()),
        }
    }

    /// The git directory of the repository around this directory, which all of its worktrees share.
    pub fn repository(&self, inside: &Path) -> Result<PathBuf, ChoiceError> {
        Ok(self.git.common_dir(inside)?)
    }

    /// The choice for the repository around this directory; none where nothing was chosen.
    pub fn choice_in(&self, inside: &Path) -> Result<Option<Choice>, ChoiceError> {
        // Nothing was ever chosen: git does not have to be asked.
        if !self.choices().is_dir() {
            return Ok(None);
        }
        match self.git.common_dir(inside) {
            Ok(repository) => self.read_choice(&repository),
            // A directory that is not a repository has no choice; another gate decides whether it may be a target.
            Err(_) => Ok(None),
        }
    }

    /// The choice for the repository of a contract.
    pub fn choice_for(
        &self,
        contract: &Contract,
        contract_dir: &Path,
    ) -> Result<Option<Choice>, ChoiceError> {
        match &contract.terms.target {
            Target::Fixture(_) => Ok(None),
            Target::Repo { repo, .. } if repo.is_path() => self.choice_in(&contract_dir.join(repo.as_str())),
            Target::Repo { repo, .. } => {
                let found = self.admissions().find_target(repo.as_str(), &self.admission_context());
                found.record.map_or(Ok(None), |record| self.choice_in(&record.path))
            }
        }
    }

    /// Chooses for the repository around this directory.
    pub fn choose(
        &self,
        inside: &Path,
        destination: DestinationKind,
        image: Option<ImagePin>,
        runtime: Option<String>,
    ) -> Result<Choice, ChoiceError> {
        let needs_image = DestinationCapabilities::of(destination).needs_image();
        if !needs_image && (image.is_some() || runtime.is_some()) {
            return Err(ChoiceError::NotDocker(destination));
        }
        if needs_image && image.is_none() && self.operator.docker_image.is_none() {
            return Err(ChoiceError::NoImage);
        }
        let choice = Choice { repository: self.git.common_dir(inside)?, destination, image, runtime };
        let file = self.choice_file(&choice.repository);
        let write = || {
            fs::create_dir_all(self.choices())?;
            write_durably(&file, &serde_json::to_vec_pretty(&choice)?)
        };
        write().map_err(|cause| ChoiceError::File { file: file.clone(), cause })?;
        Ok(choice)
    }

    /// A choice that cannot be read is an error: a chosen confinement must not silently be replaced.
    fn read_choice(&self, repository: &Path) -> Result<Option<Choice>, ChoiceError> {
        let file = self.choice_file(repository);
        let read = || -> io::Result<Choice> {
            let choice: Choice = serde_json::from_slice(&read_regular(&file, MAX_BYTES)?)?;
            if choice.repository == repository {
                return Ok(choice);
            }
            Err(io::Error::other("it is about another repository"))
        };
        match read() {
            Ok(choice) => Ok(Some(choice)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(ChoiceError::File { file: file.clone(), cause }),
        }
    }

    fn choices(&self) -> PathBuf {
        self.home.root().join("destinations")
    }

    fn choice_file(&self, repository: &Path) -> PathBuf {
        let digest = Digest::of(repository.as_os_str().as_encoded_bytes()).to_string();
        self.choices().join(format!("{}.json", digest.trim_start_matches("sha256:")))
    }
}
