//! The counters of a proxy.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::decision::EgressVerdict;
use crate::reason::{Fault, Reason};

/// Why a tunnel was cut by the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// One side broke off.
    Broken,
    /// Nothing moved for too long.
    Idle,
    /// It lasted too long, or its grant ended.
    Lifetime,
    /// The run has moved as many bytes as it may.
    Bytes,
    /// The client sent more than its one request.
    Ahead,
}

impl Cut {
    /// Its code in records, responses and metrics.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Idle => "idle",
            Self::Lifetime => "lifetime",
            Self::Bytes => "bytes",
            Self::Ahead => "ahead",
        }
    }
}

/// The counters of a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Requests that passed.
    pub allowed: u64,
    /// Requests that did not, by reason.
    pub denied: BTreeMap<Reason, u64>,
    /// Requests that were allowed and failed in the network, by fault.
    pub failed: BTreeMap<Fault, u64>,
    /// Tunnels that were cut, by cause.
    pub cut: BTreeMap<Cut, u64>,
    /// Bytes from the client.
    pub bytes_out: u64,
    /// Bytes to the client.
    pub bytes_in: u64,
    /// Tunnels and exchanges that are open.
    pub open: usize,
}

impl Counts {
    pub(super) fn count(&mut self, verdict: EgressVerdict) {
        match verdict {
            EgressVerdict::Allowed => self.allowed += 1,
            EgressVerdict::Denied(reason) => *self.denied.entry(reason).or_default() += 1,
            EgressVerdict::Failed(fault) => *self.failed.entry(fault).or_default() += 1,
        }
    }

    /// How many requests were denied, for whatever reason.
    #[must_use]
    pub fn all_denied(&self) -> u64 {
        self.denied.values().sum()
    }
}
