//! Why an approval could not be requested, granted or denied.

use herma_core::approval::{ApprovalId, ApprovalState};
use herma_core::blocker::BlockerRecord;
use herma_core::store::StoreError;
use herma_core::{Stage, Timestamp};

use crate::chain::TrustError;

/// An approval could not be asked for, granted or denied.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// The stage needs none.
    #[error("stage {0} needs no approval")]
    NotNeeded(Stage),
    /// The engine, target or destination that would be approved is not ready.
    #[error("there is nothing to approve yet: {}", .0.detail)]
    NotReady(BlockerRecord),
    /// Separation of duties asks for a signed request.
    #[error("separation_of_duties is on, so that a request is signed by who makes it: name an approver")]
    Unsigned,
    /// The requester cannot rule on its own request.
    #[error("separation_of_duties is on: `{0}` asked for this approval and cannot rule on it")]
    SamePerson(String),
    /// The clock is behind the time of the request.
    #[error(
        "approval {id} was asked for at {asked}, and the clock says {now}: nobody rules on what is still to come"
    )]
    Early {
        /// The approval.
        id: ApprovalId,
        /// The time of the request.
        asked: Timestamp,
        /// The time now.
        now: Timestamp,
    },
    /// It is not open for a ruling any more.
    #[error("approval {id} is {}, so that nobody can rule on it any more", state.as_str())]
    Final {
        /// The approval.
        id: ApprovalId,
        /// Its state.
        state: ApprovalState,
    },
    /// There is no such approval.
    #[error("there is no approval {0}")]
    Unknown(ApprovalId),
    /// The record could not be signed.
    #[error("the record could not be signed: {0}")]
    Sign(#[from] serde_json::Error),
    /// The trust chain cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
}
