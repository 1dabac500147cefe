//! Defaults of `herma do`: what a person keeps for all repositories and for one, and how a repository narrows them.
//! docs/settings.md describes the precedence, which `WorkDefaults::over` and `Narrowing::apply` implement.

mod narrowing;
mod partial_limits;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use narrowing::{MAX_BYTES, Narrowing, PlacedNarrowing};
pub use partial_limits::PartialLimits;

use crate::admission::ModelRef;
use crate::contract::Pattern;
use crate::engine::{DestinationKind, EngineName};
use crate::environment::{BadEnvironment, DefinitionPositions, DefinitionRules, EnvironmentDefinition};
use crate::yaml::{self, BadYaml, Page};

/// The values that `herma do` uses if nothing more specific is given. They are no defaults for `herma run`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DoSettings {
    /// The engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineName>,
    /// The model, as `PROVIDER/MODEL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// The destination, if none was chosen for the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<DestinationKind>,
    /// Limits, each in place of a contract's default.
    #[serde(skip_serializing_if = "PartialLimits::is_empty")]
    pub limits: PartialLimits,
}

impl DoSettings {
    /// Whether nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One layer of defaults for work on a repository: flags, a person's defaults for the repository, or detection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkDefaults {
    /// The paths that may change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_paths: Option<Vec<Pattern>>,
    /// The verification commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<Vec<String>>,
    /// The environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentDefinition>,
    /// The engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineName>,
    /// The model, as `PROVIDER/MODEL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// The destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<DestinationKind>,
    /// The limits.
    #[serde(skip_serializing_if = "PartialLimits::is_empty")]
    pub limits: PartialLimits,
}

impl WorkDefaults {
    /// This layer over a lower one: each value of this one, and the lower one's where this one has none.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        Self {
            allowed_paths: self.allowed_paths.or(lower.allowed_paths),
            verify: self.verify.or(lower.verify),
            environment: self.environment.or(lower.environment),
            engine: self.engine.or(lower.engine),
            model: self.model.or(lower.model),
            destination: self.destination.or(lower.destination),
            limits: self.limits.over(lower.limits),
        }
    }
}

impl From<DoSettings> for WorkDefaults {
    fn from(settings: DoSettings) -> Self {
        let DoSettings { engine, model, destination, limits } = settings;
        Self { engine, model, destination, limits, ..Self::default() }
    }
}

/// A person's defaults for one repository, as they are kept in herma's home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepositoryDefaults {
    /// The git directory that the repository shares with its worktrees.
    pub repository: PathBuf,
    /// The defaults.
    #[serde(default)]
    pub defaults: WorkDefaults,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Positions {
    defaults: InnerPositions,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InnerPositions {
    environment: DefinitionPositions,
}

impl RepositoryDefaults {
    /// Reads the text of a file.
    pub fn parse(bytes: &[u8], rules: DefinitionRules<'_>) -> Result<Self, BadEnvironment> {
        const PAGE: Page = Page { part: "the repository's defaults", docs: "docs/settings.md" };
        let text = yaml::text(bytes, "a file of defaults", MAX_BYTES)?;
        let read: Self = yaml::read(text, PAGE)?;
        if let Some(definition) = &read.defaults.environment {
            // The same text was read without an error just now.
            let positions: Positions = yaml::read(text, PAGE).unwrap_or_default();
            definition.check(&positions.defaults.environment, rules)?;
        }
        check_commands(read.defaults.verify.iter().flatten())?;
        Ok(read)
    }
}

fn check_commands<'a>(commands: impl Iterator<Item = &'a String>) -> Result<(), BadYaml> {
    for command in commands {
        if command.trim().is_empty() || command.contains('\0') {
            return Err(BadYaml::new(
                "`verify` has an empty command",
                "expected a shell command, like `npm test`",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
