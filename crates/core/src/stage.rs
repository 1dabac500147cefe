//! The proof ladder's rungs.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rung of the proof ladder, 1 to 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u8", into = "u8")]
#[schemars(with = "u8", extend("minimum" = 1, "maximum" = 6))]
pub enum Stage {
    /// Nothing may change; the engine is not started.
    Gated = 1,
    /// A copy of a built-in fixture.
    Fixture = 2,
    /// A copy of an owned local repository.
    CopiedRepo = 3,
    /// A throw-away repository made for the run.
    DisposableRepo = 4,
    /// One new ref with one commit in an admitted repository.
    OwnedRepo = 5,
    /// Nothing may change; compares the lanes' evidence.
    CandidateDefault = 6,
}

/// The scope that a run at some stage may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MutationScope {
    /// Nothing at all.
    None,
    /// A copy of a built-in fixture.
    FixtureCopy,
    /// A copy of a local repository.
    RepositoryCopy,
    /// A repository that was made for the run.
    DisposableRepository,
    /// One new ref with one commit in the target.
    OneNewRef,
}

impl Stage {
    /// All stages, lowest first.
    pub const ALL: [Self; 6] = [
        Self::Gated,
        Self::Fixture,
        Self::CopiedRepo,
        Self::DisposableRepo,
        Self::OwnedRepo,
        Self::CandidateDefault,
    ];

    /// Its name on the ladder.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gated => "gated",
            Self::Fixture => "fixture",
            Self::CopiedRepo => "copied repo",
            Self::DisposableRepo => "disposable repo",
            Self::OwnedRepo => "owned repo",
            Self::CandidateDefault => "candidate",
        }
    }

    /// The scope that a run at this stage may change.
    #[must_use]
    pub fn mutation_scope(self) -> MutationScope {
        match self {
            Self::Gated | Self::CandidateDefault => MutationScope::None,
            Self::Fixture => MutationScope::FixtureCopy,
            Self::CopiedRepo => MutationScope::RepositoryCopy,
            Self::DisposableRepo => MutationScope::DisposableRepository,
            Self::OwnedRepo => MutationScope::OneNewRef,
        }
    }

    /// Whether an engine is started at all.
    #[must_use]
    pub fn starts_engine(self) -> bool {
        !matches!(self, Self::Gated | Self::CandidateDefault)
    }

    /// Whether what passed every check becomes a branch in a repository.
    #[must_use]
    pub fn lands(self) -> bool {
        matches!(self, Self::DisposableRepo | Self::OwnedRepo)
    }

    /// Whether an operator has to accept or reject the result.
    #[must_use]
    pub fn needs_outcome(self) -> bool {
        self == Self::OwnedRepo
    }

    /// The stage before; none for the first.
    #[must_use]
    pub fn before(self) -> Option<Self> {
        Self::ALL.into_iter().rev().find(|stage| *stage < self)
    }

    /// Whether a person's approval is needed before the engine starts.
    #[must_use]
    pub fn needs_approval(self) -> bool {
        matches!(self, Self::DisposableRepo | Self::OwnedRepo)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self as u8).fmt(f)
    }
}

impl TryFrom<u8> for Stage {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|stage| *stage as u8 == number)
            .ok_or_else(|| format!("{number} is not a stage: expected 1 to 6"))
    }
}

impl From<Stage> for u8 {
    fn from(stage: Stage) -> Self {
        stage as u8
    }
}
