//! Why a proof could not be carried out.

use herma_core::cancellation::EndSignal;
use herma_harness::OrderError;
use herma_trust::ApprovalError;

/// A proof could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// Stage 4 and 5 need a person.
    #[error("from stage 4 on every run needs an approval: name an approver")]
    NoApprover,
    /// The fixture is not there.
    #[error("the fixture of the proofs is not built in")]
    NoFixture,
    /// herma was interrupted. A proof that was not completed is not kept, so that an earlier one stays valid.
    #[error("the proof was not carried out: herma was interrupted by {0}")]
    Interrupted(EndSignal),
    /// A run of it could not be started.
    #[error("the proof could not start a run: {0}")]
    Run(OrderError),
    /// An approval of it could not be asked for, or ruled on.
    #[error("the proof could not get an approval: {0}")]
    Ask(ApprovalError),
    /// Something could not be done.
    #[error("the proof could not {doing}: {cause}")]
    Failed {
        /// The operation.
        doing: &'static str,
        /// Why.
        cause: String,
    },
}

impl ProveError {
    #[allow(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
    pub(crate) fn new(doing: &'static str, cause: impl ToString) -> Self {
        Self::Failed { doing, cause: cause.to_string() }
    }
}
