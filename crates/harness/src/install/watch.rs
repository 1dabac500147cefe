//! What the way to the registry let through and denied while something was fetched.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use herma_egress::decided::{Decided, Unrecorded, Verdict, Watch};

/// How many different denials are told.
const MOST: usize = 16;

/// Remembers what was denied, to say why nothing came.
#[derive(Debug, Default)]
pub(super) struct Denials(Mutex<BTreeSet<String>>);

impl Denials {
    /// What was denied, in words.
    pub(super) fn told(&self) -> String {
        let denied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        denied.iter().cloned().collect::<Vec<_>>().join("; ")
    }
}

impl Watch for Denials {
    fn decided(&self, decided: &Decided) -> Result<(), Unrecorded> {
        let why = match decided.verdict {
            Verdict::Allowed => return Ok(()),
            Verdict::Denied(reason) => reason.word(),
            Verdict::Failed(fault) => fault.word(),
        };
        let mut denied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if denied.len() < MOST {
            let detail =
                if decided.detail.is_empty() { String::new() } else { format!(", {}", decided.detail) };
            denied.insert(format!("{}:{}: {why}{detail}", decided.host, decided.port));
        }
        Ok(())
    }
}
