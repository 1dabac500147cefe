//! Reads an environment definition, with the table of tools and the secret scanner at hand.

use std::path::Path;

use herma_core::environment::{BadEnvironment, DefinitionRules, EnvironmentDefinition, MAX_BYTES};
use herma_core::report::Mode;
use herma_evidence::secrets::scan;
use herma_files::read_regular;
use herma_git::{GitDir, GitError, TreeEntry, lay_out};

use crate::tools::{OperatorTool, TOOLS};

/// The definition in a repository itself.
pub const REPOSITORY_FILE: &str = ".herma/environment.yaml";

/// The definition of a repository could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryDefinitionError {
    /// It is not a definition.
    #[error("{REPOSITORY_FILE}: {0}")]
    Bad(#[from] BadEnvironment),
    /// The base could not be read.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Reads a definition from a file's bytes; `own` are the tools that the operator added.
pub fn parse(bytes: &[u8], own: &[OperatorTool]) -> Result<EnvironmentDefinition, BadEnvironment> {
    let known: Vec<&str> =
        TOOLS.iter().map(|row| row.name).chain(own.iter().map(|tool| tool.name.as_str())).collect();
    let secret_rule = |text: &str| scan(text.as_bytes()).first().map(|found| found.rule);
    EnvironmentDefinition::parse(bytes, DefinitionRules { tools: &known, secret_rule: &secret_rule })
}

/// Reads the definition that a repository has at its base, through `scratch`, an empty directory. The work tree is not read.
pub fn read_at_base(
    git_dir: &GitDir,
    entries: &[TreeEntry],
    scratch: &Path,
    own: &[OperatorTool],
) -> Result<Option<EnvironmentDefinition>, RepositoryDefinitionError> {
    let is_file = |entry: &&TreeEntry| {
        entry.path.as_bytes() == REPOSITORY_FILE.as_bytes()
            && matches!(entry.entry.mode, Mode::File | Mode::Executable)
    };
    let Some(entry) = entries.iter().find(is_file) else { return Ok(None) };
    lay_out(git_dir, std::slice::from_ref(entry), &[scratch])?;
    let file = scratch.join(REPOSITORY_FILE);
    // One byte more than a definition has is enough to refuse it.
    let bytes = read_regular(&file, MAX_BYTES + 1).map_err(|cause| GitError::File {
        doing: "read",
        path: file.clone(),
        cause,
    })?;
    Ok(Some(parse(&bytes, own)?))
}
