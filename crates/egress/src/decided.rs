//! What was decided about one request, and who is told.

use std::net::SocketAddr;

use serde::Serialize;

use crate::reason::{Fault, Reason};

/// One decision, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decided {
    /// The number of the request in this proxy, from 1.
    pub request: u64,
    /// `CONNECT`, or the method of plain HTTP; nothing where the request could not be read.
    pub method: String,
    /// The host that was asked for, made safe to show; nothing where the request could not be read.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What was decided.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The rule that allowed it, as it is written; nothing where the mode `learn` did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Where the connection goes, or the address that is why it does not. The client is not told of it: an agent has no
    /// use for the map of a private network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// More about the reason, in a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// Whether a request passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "snake_case")]
pub enum Verdict {
    /// It passes.
    Allowed,
    /// It does not.
    Denied(Reason),
    /// It was allowed, and the network did not bring it about.
    Failed(Fault),
}

/// Who is told of every decision, before any byte passes. Where it cannot be recorded, nothing passes.
pub trait Watch: Send + Sync {
    /// Records a decision. It is called on a thread of the proxy, which waits for it.
    fn decided(&self, decided: &Decided) -> Result<(), Unrecorded>;
}

/// A decision could not be recorded.
#[derive(Debug, thiserror::Error)]
#[error("the decision could not be recorded: {0}")]
pub struct Unrecorded(pub String);
