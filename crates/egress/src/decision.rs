//! The decision about one request, and the recorder of decisions.

use std::net::SocketAddr;

use serde::Serialize;

use crate::reason::{Fault, Reason};

/// One decision, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProxyDecision {
    /// The number of the request in this proxy, from 1.
    pub request: u64,
    /// `CONNECT`, or the method of plain HTTP; empty where the request could not be parsed.
    pub method: String,
    /// The requested host, made safe to show; empty where the request could not be parsed.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: EgressVerdict,
    /// The rule that allowed it, as written; `None` where the mode `learn` did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The address of the connection, or the one that it was denied for. Not sent to the client: an agent has no use for
    /// the map of a private network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// More about the reason, in a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// Whether a request passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "snake_case")]
pub enum EgressVerdict {
    /// It passes.
    Allowed,
    /// It does not.
    Denied(Reason),
    /// It was allowed, and the network failed.
    Failed(Fault),
}

/// Records every decision before any byte passes. A request whose decision cannot be recorded does not pass.
pub trait DecisionRecorder: Send + Sync {
    /// Records a decision. It is called on a thread of the proxy, which waits for it.
    fn decided(&self, decided: &ProxyDecision) -> Result<(), Unrecorded>;
}

/// A decision could not be recorded.
#[derive(Debug, thiserror::Error)]
#[error("the decision could not be recorded: {0}")]
pub struct Unrecorded(pub String);
