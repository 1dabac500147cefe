//! Finds and lists approvals.

use herma_core::Report;
use herma_core::approval::{Approval, ApprovalState};
use herma_core::store::StoreError;
use herma_core::visible::visible_line;
use herma_harness::Installation;

use crate::output::ApprovalRow;

/// How many of a contract's newest approvals are searched.
const MAX_SEARCHED: u32 = 50;
/// How many of the newest approvals are searched for open ones.
const MAX_LISTED: u32 = 1_000;
/// The name of the newest approval.
const LAST: &str = "last";

/// No single approval has the name.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalLookupError {
    /// Several approvals match.
    #[error("more than one approval is called `{}`", visible_line(.0))]
    Ambiguous(String),
    /// There is no approval at all.
    #[error("there is no approval yet")]
    NoApproval,
    /// No approval matches.
    #[error("there is no approval called `{}`", visible_line(.0))]
    Unknown(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ApprovalLookupError {
    /// The next step for the user; none where none is known.
    #[must_use]
    pub fn next_step(&self) -> Option<&'static str> {
        match self {
            Self::Ambiguous(_) => Some("give more digits; `herma approvals list --all` lists the names"),
            Self::NoApproval => Some("ask for one with `herma approvals request CONTRACT --reason TEXT`"),
            Self::Unknown(_) => Some("`herma approvals list --all` lists the names"),
            Self::Store(_) => None,
        }
    }
}

/// Finds an approval by its id, the start or the last digits of it, or `last`.
pub fn find_approval(installation: &Installation, named: &str) -> Result<Approval, ApprovalLookupError> {
    let found = match named {
        "" => Vec::new(),
        LAST => installation.store.call(|store| store.approvals(None, 1))?,
        part => installation.store.call(|store| store.find_approvals(part))?,
    };
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(approval), None) => Ok(approval),
        (Some(_), Some(_)) => Err(ApprovalLookupError::Ambiguous(named.to_owned())),
        (None, _) if named == LAST => Err(ApprovalLookupError::NoApproval),
        (None, _) => Err(ApprovalLookupError::Unknown(named.to_owned())),
    }
}

/// The newest open request for the run's contract, engine and destination.
#[must_use]
pub fn open_request(installation: &Installation, report: &Report) -> Option<Approval> {
    let now = installation.now();
    let contract = Some(&report.contract_id);
    let newest = installation.store.call(|store| store.approvals(contract, MAX_SEARCHED)).ok()?;
    newest.into_iter().find(|approval| {
        let binding = &approval.request.binding;
        approval.state_at(now) == ApprovalState::Requested
            && binding.contract_digest == report.contract_digest
            && binding.engine == report.engine
            && Some(binding.engine_digest) == report.engine_digest
            && binding.destination == report.destination
    })
}

/// Lists approvals, newest first: all of them, or those that can still be granted or used.
pub fn approval_rows(
    installation: &Installation,
    all: bool,
    limit: u32,
) -> Result<Vec<ApprovalRow>, StoreError> {
    let now = installation.now();
    let searched = if all { limit } else { MAX_LISTED };
    let approvals = installation.store.call(|store| store.approvals(None, searched))?.into_iter();
    let rows = approvals.map(|approval| row(approval.state_at(now), approval));
    let rows =
        rows.filter(|row| all || matches!(row.state, ApprovalState::Requested | ApprovalState::Granted));
    Ok(rows.take(usize::try_from(limit).unwrap_or(usize::MAX)).collect())
}

fn row(state: ApprovalState, approval: Approval) -> ApprovalRow {
    let request = approval.request;
    ApprovalRow {
        approval_id: request.id,
        state,
        contract_id: request.binding.contract_id,
        engine: request.binding.engine,
        target: request.binding.target,
        stage: request.binding.stage,
        requested_by: request.requested_by,
        requested_at: request.requested_at,
        expires_at: request.expires_at,
        approver: approval.ruling.map(|ruling| ruling.record.approver),
    }
}
