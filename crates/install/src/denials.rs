//! The connections that the egress proxy denied while a package was fetched.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use herma_egress::decision::{DecisionRecorder, EgressVerdict, ProxyDecision, Unrecorded};

/// How many different denials are reported.
const MAX_DENIALS: usize = 16;

/// Collects denied connections, for the error when fetching fails.
#[derive(Debug, Default)]
pub(crate) struct Denials(Mutex<BTreeSet<String>>);

impl Denials {
    /// The denied connections as text.
    pub(crate) fn summary(&self) -> String {
        let denied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        denied.iter().cloned().collect::<Vec<_>>().join("; ")
    }
}

impl DecisionRecorder for Denials {
    fn decided(&self, decided: &ProxyDecision) -> Result<(), Unrecorded> {
        let why = match decided.verdict {
            EgressVerdict::Allowed => return Ok(()),
            EgressVerdict::Denied(reason) => reason.code(),
            EgressVerdict::Failed(fault) => fault.code(),
        };
        let mut denied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if denied.len() < MAX_DENIALS {
            let detail =
                if decided.detail.is_empty() { String::new() } else { format!(", {}", decided.detail) };
            denied.insert(format!("{}:{}: {why}{detail}", decided.host, decided.port));
        }
        Ok(())
    }
}
