//! The payload of `egress.decided`.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::Action;
use crate::egress_use::EgressUse;

/// `egress.decided`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum EgressDecided {
    /// The totals, once the proxy has ended.
    Totals {
        /// All decisions of the proxy.
        sums: EgressUse,
    },
    /// One decision.
    Decision(EgressDecision),
}

/// One decision of the egress proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EgressDecision {
    /// The number of the request in this proxy, from 1.
    pub request: u64,
    /// `CONNECT`, or the method of plain HTTP.
    pub method: String,
    /// The host that was asked for.
    pub host: String,
    /// The port.
    pub port: u16,
    /// `allowed`, `denied` or `failed`.
    pub verdict: String,
    /// The reason of a denial, or the fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The rule that allowed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The address of the connection, or the one that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// More about the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The outward actions that a denied connection could have been.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub could_be: Option<Vec<Action>>,
    /// Those of them that are forbidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forbidden: Option<BTreeSet<Action>>,
}
