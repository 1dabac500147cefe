//! Names of engines and destinations, and how an engine ended.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of an engine: lower-case letters, digits and hyphens, starting with a letter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^[a-z][a-z0-9-]{0,31}$"))]
pub struct EngineName(String);

impl EngineName {
    /// The default engine. It is a constant: nothing in herma can switch it.
    pub const DEFAULT: &'static str = "fake";

    /// The default engine's name.
    #[must_use]
    pub fn fake() -> Self {
        Self(Self::DEFAULT.to_owned())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for EngineName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let sound = text.len() <= 32
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(letters);
        sound.then_some(Self(text)).ok_or_else(|| {
            "an engine's name is 1 to 32 lower-case letters, digits and hyphens, starting with a letter"
                .to_owned()
        })
    }
}

impl std::str::FromStr for EngineName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::try_from(text.to_owned())
    }
}

impl From<EngineName> for String {
    fn from(name: EngineName) -> Self {
        name.0
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where an engine's process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DestinationKind {
    /// On this machine without confinement: for `fake` only.
    Host,
    /// In bubblewrap's namespaces.
    Sandbox,
    /// In a container.
    Docker,
    /// In a pod.
    Kubernetes,
}

impl DestinationKind {
    /// Every destination.
    pub const ALL: [Self; 4] = [Self::Host, Self::Sandbox, Self::Docker, Self::Kubernetes];

    /// Whether isolation layers surround the process, so that a run there owes confinement probes.
    #[must_use]
    pub fn confines(self) -> bool {
        self != Self::Host
    }

    /// The name as it is written in files and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Sandbox => "sandbox",
            Self::Docker => "docker",
            Self::Kubernetes => "kubernetes",
        }
    }
}

/// How the engine's process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EngineExit {
    /// Its exit code, where it exited by itself.
    pub code: Option<i32>,
    /// The signal that ended it, where one did.
    pub signal: Option<i32>,
    /// Why it ended.
    pub ended_by: EndedBy,
    /// Its own report about its work. A log line: it can make the verdict worse, never better.
    pub result: Option<EngineResult>,
    /// How many lines of its output were not understood, such as those that are too long. They are in its log.
    #[serde(default)]
    pub unread_lines: u64,
}

/// Why an engine's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// It exited by itself.
    Exited,
    /// Its result was in and it lingered, so herma stopped it.
    EarlyStop,
    /// No sign of life within the startup limit.
    StartupLimit,
    /// Silent for longer than the idle limit.
    IdleLimit,
    /// Took longer than the total limit.
    TotalLimit,
    /// herma was cancelled, and ended it.
    Interrupted,
}

/// An engine's own report about its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineResult {
    /// It thinks that it is done.
    Completed,
    /// It says that it could not do it.
    Failed,
    /// Its own reviewer rejected the work.
    Rejected,
}
