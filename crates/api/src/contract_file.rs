//! Reads and validates a contract before a run is created.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use herma_core::Contract;
use herma_core::contract::{BadContract, MAX_BYTES, PlacedReference, Target};
use herma_environments::definition::with_rules;
use herma_evidence::secrets;
use herma_files::open_named;
use herma_fixtures::Fixture;
use herma_harness::{Settings, SettingsError};
use herma_rules::PathRules;
use herma_trust::check_egress;

use crate::environment_reference::{ReferenceError, own_tools, resolve};
use crate::file_place::at_place;

/// A valid contract, its text, and the directory that its relative paths start from.
#[derive(Clone, Debug)]
pub struct ReadContract {
    /// The contract, parsed.
    pub contract: Contract,
    /// The text, which goes into the bundle as it is.
    pub text: String,
    /// The directory that relative paths start from.
    pub dir: PathBuf,
}

/// A contract, a fixture or a script that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ContractError {
    /// There is no such built-in fixture.
    #[error("there is no fixture `{0}`")]
    UnknownFixture(String),
    /// The contract's file cannot be read.
    #[error("{}: cannot be read: {cause}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// The text is not a contract.
    #[error("{}", at_place(file, bad))]
    Bad {
        /// The file.
        file: PathBuf,
        /// The problem and its place.
        bad: BadContract,
    },
    /// A path pattern of the contract is not valid.
    #[error("{}: {problem}", file.display())]
    PathRules {
        /// The file.
        file: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The environment that the contract refers to cannot be used.
    #[error("{}:{line}:{column}: environment: {cause}", file.display())]
    Environment {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// The cause.
        cause: Box<ReferenceError>,
    },
    /// The operator's settings, which can add tools, cannot be read.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The contract holds a secret.
    #[error("{}:{line}:{column}: the contract holds what looks like a secret ({rule})", file.display())]
    Secret {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The rule that found it.
        rule: String,
    },
    /// The file is not UTF-8.
    #[error("{}: is not UTF-8", .0.display())]
    NotUtf8(PathBuf),
    /// The script cannot be read.
    #[error("--script {named}: {cause}")]
    Script {
        /// The name or file.
        named: String,
        /// The error of the system.
        cause: io::Error,
    },
    /// The path has no absolute form.
    #[error(transparent)]
    WorkingDirectory(io::Error),
}

impl ContractError {
    /// The next step for the user; none where none is known.
    #[must_use]
    pub fn next_step(&self) -> Option<String> {
        match self {
            Self::UnknownFixture(_) => {
                let known: Vec<_> = herma_fixtures::all().iter().map(|fixture| fixture.name).collect();
                Some(format!("there are: {}", known.join(", ")))
            }
            Self::Unreadable { .. } => Some(
                "name a contract's file, or fixture:NAME for a built-in one; `herma contract new` writes one"
                    .to_owned(),
            ),
            Self::Bad { .. } => Some(
                "docs/contract.md describes every key; `herma contract new` writes a contract to start from"
                    .to_owned(),
            ),
            Self::Environment { cause, .. } => Some(cause.next_step().to_owned()),
            Self::Settings(_) => Some("correct settings.yaml in herma's home".to_owned()),
            Self::Secret { .. } => Some("take it out: a contract goes into the evidence as it is".to_owned()),
            Self::Script { .. } => Some(
                "name a file, or one of the fixture's scripts; docs/fake.md describes what a script can say"
                    .to_owned(),
            ),
            Self::PathRules { .. } | Self::NotUtf8(_) | Self::WorkingDirectory(_) => None,
        }
    }
}

/// Reads a contract from a file, or from a built-in fixture as `fixture:NAME`. An environment that is defined elsewhere is
/// written into the text.
pub fn read_contract(named: &str, settings: &Settings) -> Result<ReadContract, ContractError> {
    if let Some(name) = named.strip_prefix("fixture:") {
        let fixture = find_fixture(name)?;
        return parse(Path::new(named), fixture.contract.to_owned(), PathBuf::from("/"), settings);
    }
    let path = Path::new(named);
    let text = read_text(path)?;
    let dir = std::path::absolute(path).map_err(ContractError::WorkingDirectory)?;
    let dir = dir.parent().unwrap_or(Path::new("/")).to_owned();
    parse(path, text, dir, settings)
}

/// Reads a contract that no file has. `named` stands for the file in messages.
pub(crate) fn contract_of_text(
    named: &str,
    text: String,
    dir: PathBuf,
    settings: &Settings,
) -> Result<ReadContract, ContractError> {
    parse(Path::new(named), text, dir, settings)
}

/// A built-in fixture by name.
pub fn find_fixture(name: &str) -> Result<&'static Fixture, ContractError> {
    herma_fixtures::find(name).ok_or_else(|| ContractError::UnknownFixture(name.to_owned()))
}

/// A script of the contract's fixture by name, or a file.
pub fn find_script(contract: &Contract, named: &str) -> Result<String, ContractError> {
    if let Target::Fixture(fixture) = &contract.terms.target
        && let Some(script) = find_fixture(fixture.as_str())?.script(named)
    {
        return Ok(script.to_owned());
    }
    let read = |file: File| io::read_to_string(file.take(MAX_BYTES));
    open_named(Path::new(named))
        .and_then(read)
        .map_err(|cause| ContractError::Script { named: named.to_owned(), cause })
}

fn parse(
    path: &Path,
    text: String,
    dir: PathBuf,
    settings: &Settings,
) -> Result<ReadContract, ContractError> {
    let bad = |bad| ContractError::Bad { file: path.to_owned(), bad };
    let text = match PlacedReference::find(&text).map_err(bad)? {
        None => text,
        Some(found) => resolve(&found, &text, &dir, settings).map_err(|cause| match cause {
            ReferenceError::Contract(problem) => bad(problem),
            cause => {
                let (file, cause) = (path.to_owned(), Box::new(cause));
                ContractError::Environment { file, line: found.line, column: found.column, cause }
            }
        })?,
    };
    let contract = Contract::parse(text.as_bytes()).map_err(bad)?;
    check_egress(&contract, &text).map_err(bad)?;
    if contract.terms.environment.is_some() {
        let own = own_tools(settings)?;
        with_rules(&own, |rules| contract.check_environment(text.as_bytes(), rules)).map_err(bad)?;
    }
    PathRules::compile(&contract.terms)
        .map_err(|bad| ContractError::PathRules { file: path.to_owned(), problem: bad.to_string() })?;
    if let Some(finding) = secrets::scan(text.as_bytes()).first() {
        let before = &text.as_bytes()[..usize::try_from(finding.offset).unwrap_or(0)];
        let lines: Vec<&[u8]> = before.split(|b| *b == b'\n').collect();
        let (line, column) = (lines.len(), 1 + lines.last().map_or(0, |line| line.len()));
        let (file, rule) = (path.to_owned(), finding.rule.to_string());
        return Err(ContractError::Secret { file, line, column, rule });
    }
    Ok(ReadContract { contract, text, dir })
}

/// The text of a file that is not too large.
fn read_text(path: &Path) -> Result<String, ContractError> {
    let unreadable = |cause| ContractError::Unreadable { file: path.to_owned(), cause };
    let bad = |bad| ContractError::Bad { file: path.to_owned(), bad };
    let file = open_named(path).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    if size > MAX_BYTES {
        return Err(bad(BadContract::too_large("a contract", size, MAX_BYTES)));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    // The parser names the line of the first byte that is not UTF-8.
    String::from_utf8(bytes).map_err(|e| match Contract::parse(e.as_bytes()) {
        Err(problem) => bad(problem),
        Ok(_) => ContractError::NotUtf8(path.to_owned()),
    })
}
