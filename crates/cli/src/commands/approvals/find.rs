//! Finds the approval that a person means.

use herma_core::approval::{Approval, ApprovalState, ApprovalStore as _};
use herma_core::{Clock as _, Report};
use herma_harness::{Installation, SystemClock};

use crate::failure::Failure;
use crate::screen::safe_line;

/// How many of a contract's newest approvals are looked through.
const NEWEST: u32 = 50;

/// The approval that a person means by its name, the start of it, its last digits, or `last`.
pub(super) fn find(installation: &Installation, named: &str) -> Result<Approval, Failure> {
    let found = match named {
        "" => Vec::new(),
        "last" => installation.store.approvals(None, 1)?,
        part => installation.store.find_approval(part)?,
    };
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(approval), None) => Ok(approval),
        (Some(_), Some(_)) => {
            Err(Failure::bad_input(format!("more than one approval is called `{}`", safe_line(named)))
                .hint("give more digits; `herma approvals list --all` lists the names"))
        }
        (None, _) if named == "last" => Err(Failure::bad_input("there is no approval yet")
            .hint("ask for one with `herma approvals request CONTRACT --reason TEXT`")),
        (None, _) => Err(Failure::bad_input(format!("there is no approval called `{}`", safe_line(named)))
            .hint("`herma approvals list --all` lists the names")),
    }
}

/// The newest request for what this run was about that nobody has answered yet.
pub(crate) fn open_request(installation: &Installation, report: &Report) -> Option<Approval> {
    let now = SystemClock.now();
    let newest = installation.store.approvals(Some(&report.contract_id), NEWEST).ok()?;
    newest.into_iter().find(|approval| {
        let binding = &approval.request.binding;
        approval.state_at(now) == ApprovalState::Requested
            && binding.contract_digest == report.contract_digest
            && binding.engine == report.engine
            && Some(binding.engine_digest) == report.engine_digest
            && binding.destination == report.destination
    })
}
