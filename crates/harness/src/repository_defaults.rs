//! A person's defaults for one repository: kept in herma's home, and read by `herma do`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use herma_core::Digest;
use herma_core::defaults::{MAX_BYTES, RepositoryDefaults, WorkDefaults};
use herma_core::environment::BadEnvironment;
use herma_environments::definition::with_rules;
use herma_evidence::secrets::scan;
use herma_git::GitError;
use herma_home::write_durably;

use crate::file_reading::read_regular;
use crate::installation::Installation;

/// The defaults of a repository could not be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum DefaultsError {
    /// There is no repository.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The file cannot be read or written.
    #[error("{}: {cause}", file.display())]
    File {
        /// Which file.
        file: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// The file is not one of defaults.
    #[error("{}", placed(file, bad))]
    Bad {
        /// Which file.
        file: PathBuf,
        /// The problem and its place.
        bad: BadEnvironment,
    },
}

fn placed(file: &Path, bad: &BadEnvironment) -> String {
    let expected = if bad.expected.is_empty() { String::new() } else { format!("; {}", bad.expected) };
    match (bad.line, bad.column) {
        (Some(line), Some(column)) => {
            format!("{}:{line}:{column}: {}{expected}", file.display(), bad.problem)
        }
        _ => format!("{}: {}{expected}", file.display(), bad.problem),
    }
}

impl DefaultsError {
    /// The next step for a person.
    #[must_use]
    pub fn next_step(&self) -> String {
        match self {
            Self::Git(_) => "name a git repository: `--repo DIR`".to_owned(),
            Self::File { file, .. } | Self::Bad { file, .. } => {
                format!("correct {}, or remove it for no defaults", file.display())
            }
        }
    }
}

impl Installation {
    /// The defaults of the repository around this directory; those of none where nothing was kept. Worktrees share them.
    pub fn repository_defaults(&self, inside: &Path) -> Result<WorkDefaults, DefaultsError> {
        let repository = self.git.common_dir(inside)?;
        let file = self.defaults_file(&repository);
        let bytes = match read_regular(&file, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(WorkDefaults::default()),
            Err(cause) => return Err(DefaultsError::File { file, cause }),
        };
        let own_tools = self.operator.own_tools();
        let kept = with_rules(&own_tools, |rules| RepositoryDefaults::parse(&bytes, rules))
            .map_err(|bad| DefaultsError::Bad { file: file.clone(), bad })?;
        if kept.repository != repository {
            let cause = io::Error::other("it is about another repository");
            return Err(DefaultsError::File { file, cause });
        }
        Ok(kept.defaults)
    }

    /// Keeps these defaults for the repository around this directory, in place of those before. Returns the file, which is
    /// written only if something changes.
    pub fn keep_repository_defaults(
        &self,
        inside: &Path,
        defaults: &WorkDefaults,
    ) -> Result<PathBuf, DefaultsError> {
        let repository = self.git.common_dir(inside)?;
        let file = self.defaults_file(&repository);
        let failed = |cause| DefaultsError::File { file: file.clone(), cause };
        let kept = RepositoryDefaults { repository, defaults: defaults.clone() };
        // JSON is YAML, which is what a person may edit.
        let mut text = serde_json::to_vec_pretty(&kept).map_err(|e| failed(e.into()))?;
        text.push(b'\n');
        if let Some(found) = scan(&text).first() {
            let why = format!("the defaults hold what looks like a secret ({})", found.rule);
            return Err(failed(io::Error::other(why)));
        }
        // Nothing is kept that could not be read again.
        let own_tools = self.operator.own_tools();
        with_rules(&own_tools, |rules| RepositoryDefaults::parse(&text, rules))
            .map_err(|bad| DefaultsError::Bad { file: file.clone(), bad })?;
        if read_regular(&file, MAX_BYTES).is_ok_and(|known| known == text) {
            return Ok(file);
        }
        fs::create_dir_all(self.home.repository_defaults())
            .and_then(|()| write_durably(&file, &text))
            .map_err(failed)?;
        Ok(file)
    }

    fn defaults_file(&self, repository: &Path) -> PathBuf {
        let digest = Digest::of(repository.as_os_str().as_encoded_bytes());
        self.home.repository_defaults().join(format!("{}.yaml", digest.hex()))
    }
}
