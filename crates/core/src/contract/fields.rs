//! The values of a contract's front matter. Each refuses what it cannot mean while it is being parsed, so that the
//! error points at the line.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::budget::Amount;
use crate::checked_text::{Pattern, check_name, checked_text};
use crate::units::{Bytes, Span, Tokens, Usd};

checked_text!(
    /// The contract's name.
    ContractId,
    |text| check_name(text, "a contract's id")
);

checked_text!(
    /// The name of a built-in fixture.
    FixtureName,
    |text| check_name(text, "a fixture's name")
);

checked_text!(
    /// A repository: a path relative to the contract (it has a `/` or starts with `.`), or the name of an admission.
    RepoRef,
    |text| {
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err("`repo` is a path relative to the contract, like `../my-repo`".to_owned());
        }
        if text.starts_with(['/', '~']) {
            return Err(format!(
                "`{text}` is absolute: `repo` is a path relative to the contract, so that no bundle ever holds an \
                 absolute one"
            ));
        }
        Ok(())
    }
);

impl RepoRef {
    /// The contract's own directory.
    #[must_use]
    pub fn here() -> Self {
        Self(".".to_owned())
    }

    /// Whether it is a path; else it is the name of a target admission.
    #[must_use]
    pub fn is_path(&self) -> bool {
        self.0.starts_with('.') || self.0.contains('/')
    }
}

/// At least one pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<Pattern>", into = "Vec<Pattern>")]
#[schemars(with = "Vec<Pattern>", extend("minItems" = 1))]
pub struct Patterns(Vec<Pattern>);

impl Patterns {
    /// The patterns.
    #[must_use]
    pub fn as_slice(&self) -> &[Pattern] {
        &self.0
    }
}

impl TryFrom<Vec<Pattern>> for Patterns {
    type Error = &'static str;

    fn try_from(patterns: Vec<Pattern>) -> Result<Self, &'static str> {
        if patterns.is_empty() {
            return Err(
                "`allowed_paths` is empty: name at least one path that may change, for example `src/**`",
            );
        }
        Ok(Self(patterns))
    }
}

impl From<Patterns> for Vec<Pattern> {
    fn from(patterns: Patterns) -> Self {
        patterns.0
    }
}

/// The target of a contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "TargetFields", into = "TargetFields")]
#[schemars(with = "TargetFields")]
pub enum Target {
    /// A repository that is built into herma.
    Fixture(FixtureName),
    /// A git repository.
    Repo {
        /// Where it is.
        repo: RepoRef,
        /// The revision to start from; the checked-out one if nothing is said.
        base: Option<String>,
    },
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TargetFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fixture: Option<FixtureName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repo: Option<RepoRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<String>,
}

impl TryFrom<TargetFields> for Target {
    type Error = String;

    fn try_from(fields: TargetFields) -> Result<Self, String> {
        match fields {
            TargetFields { fixture: Some(name), repo: None, base: None } => Ok(Self::Fixture(name)),
            TargetFields { fixture: None, repo: Some(repo), base } => match base {
                Some(base) if base.starts_with('-') || base.chars().any(|c| c.is_control() || c == ' ') => {
                    Err(format!("`{}` is not a revision", base.escape_debug()))
                }
                base => Ok(Self::Repo { repo, base }),
            },
            _ => Err("`target` is either { fixture: NAME } or { repo: PATH, base: REVISION }".to_owned()),
        }
    }
}

impl From<Target> for TargetFields {
    fn from(target: Target) -> Self {
        match target {
            Target::Fixture(name) => Self { fixture: Some(name), repo: None, base: None },
            Target::Repo { repo, base } => Self { fixture: None, repo: Some(repo), base },
        }
    }
}

/// How much is at stake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// A mistake costs little.
    #[default]
    Low,
    /// A mistake costs time.
    Medium,
    /// A mistake costs money or trust.
    High,
    /// A mistake must not happen.
    Critical,
}

/// Programs that verification needs, mounted read-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Toolchain {
    /// `python3` and its standard library.
    Python,
    /// `cargo` and `rustc`.
    Rust,
}

/// How long a run may take and how much it may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// From start to end of the engine, and again for verification.
    pub total: Span,
    /// Until the engine's first output.
    pub startup: Span,
    /// Between two outputs of the engine.
    pub idle: Span,
    /// Memory of each process; at least 128MiB.
    pub memory: Option<Bytes>,
    /// Model tokens.
    #[serde(deserialize_with = "number_or_text")]
    pub tokens: Option<Tokens>,
    /// Model cost.
    #[serde(deserialize_with = "number_or_text")]
    pub usd: Option<Usd>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            total: Span(20 * 60_000),
            startup: Span(60_000),
            idle: Span(5 * 60_000),
            memory: None,
            tokens: None,
            usd: None,
        }
    }
}

impl Limits {
    /// Which budget is exceeded, in words; none where nothing is. The router sets aside the most that a call can cost, as far
    /// as that can be known before it: a provider may count more, as for pictures.
    #[must_use]
    pub fn overspent(&self, charged: Amount) -> Option<String> {
        if let Some(most) = self.tokens.filter(|most| charged.tokens > most.0) {
            return Some(format!(
                "{} tokens were charged, and `limits.tokens` is {}",
                charged.tokens, most.0
            ));
        }
        let most = self.usd.filter(|most| charged.micro_usd > most.0)?;
        Some(format!("{} USD were charged, and `limits.usd` is {most}", Usd(charged.micro_usd)))
    }
}

/// People write `tokens: 5000` and `usd: 2.50` without quotes, which YAML reads as numbers.
pub(crate) fn number_or_text<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: fmt::Display,
{
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a number, like 5000 or 2.50, or a text, like 200k")]
    enum Written {
        Whole(u64),
        Decimal(f64),
        Text(String),
    }
    let text = match Option::<Written>::deserialize(deserializer)? {
        None => return Ok(None),
        Some(Written::Whole(n)) => n.to_string(),
        Some(Written::Decimal(n)) => n.to_string(),
        Some(Written::Text(text)) => text,
    };
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

/// The model that an engine may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelChoice {
    /// The provider that serves it.
    pub provider: String,
    /// Its exact name.
    pub model: String,
    /// Models to fall back to, in order: `PROVIDER/MODEL`, or only a model's name for one of the same provider.
    #[serde(default)]
    pub fallback: Vec<String>,
    /// Models for side work, such as titles, named in the same way.
    #[serde(default)]
    pub auxiliary: Vec<String>,
}

impl ModelChoice {
    /// The provider and the name of a model of `fallback` or `auxiliary`. The part before the first `/` is the
    /// provider.
    #[must_use]
    pub fn named<'a>(&'a self, model: &'a str) -> (&'a str, &'a str) {
        model.split_once('/').unwrap_or((&self.provider, model))
    }
}
