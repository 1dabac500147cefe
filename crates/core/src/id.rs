//! Names of runs.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A run's name: a version 7 UUID, so that names sort by time of creation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$"))]
pub struct RunId(Uuid);

impl RunId {
    /// A name for a run that starts `at` that time; `entropy` makes it unlike any other.
    #[must_use]
    pub fn new(at: Timestamp, entropy: [u8; 10]) -> Self {
        let millis = u64::try_from(at.as_millisecond()).unwrap_or(0);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &entropy).into_uuid())
    }

    /// When the run started, in milliseconds since 1970, as its name says.
    #[must_use]
    pub fn started_at_ms(&self) -> Option<u64> {
        let (seconds, nanoseconds) = self.0.get_timestamp()?.to_unix();
        Some(seconds.checked_mul(1_000)? + u64::from(nanoseconds / 1_000_000))
    }

    /// The last eight digits: short enough to say aloud, and random where the first ones are time.
    #[must_use]
    pub fn short(&self) -> String {
        let text = self.to_string();
        text[text.len() - 8..].to_owned()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not the name of a run.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not the name of a run: expected a version 7 UUID in lower case")]
pub struct BadRunId(String);

impl FromStr for RunId {
    type Err = BadRunId;

    fn from_str(text: &str) -> Result<Self, BadRunId> {
        let bad = || BadRunId(text.chars().take(80).collect());
        let id = Uuid::try_parse(text).map_err(|_| bad())?;
        if id.get_version_num() != 7 || id.as_hyphenated().to_string() != text {
            return Err(bad());
        }
        Ok(Self(id))
    }
}

impl TryFrom<String> for RunId {
    type Error = BadRunId;

    fn try_from(text: String) -> Result<Self, BadRunId> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.to_string()
    }
}
