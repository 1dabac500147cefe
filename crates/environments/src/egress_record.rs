//! The decisions of the egress proxy, as they are recorded with a layer.

use serde::{Deserialize, Serialize};

/// The verdict of an allowed request.
pub(crate) const ALLOWED: &str = "allowed";

/// Decisions about one host and port that are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressRecord {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// `allowed`, or the reason of the denial or failure.
    pub verdict: String,
    /// How often.
    pub count: u64,
}

impl EgressRecord {
    pub(crate) fn is_denied(&self) -> bool {
        self.verdict != ALLOWED
    }

    pub(crate) fn text(&self) -> String {
        format!("{}:{} ({})", self.host, self.port, self.verdict)
    }
}
