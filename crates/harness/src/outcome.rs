//! Keeps the landing of a run whose outcome is pending.

use std::io;

use herma_core::Report;
use herma_home::Home;
use herma_trust::remember_landing;

use crate::facts::Facts;

/// Keeps how to remove what a run landed, until its outcome is given.
pub(crate) fn remember(home: &Home, report: &Report, facts: &Facts) -> io::Result<()> {
    match (&facts.landing, &facts.target_dir) {
        (Some(landing), Some(target_dir)) => remember_landing(home, report, landing, target_dir),
        _ => Ok(()),
    }
}
