//! Resolves the destination of a run: the contract, then the request, then the repository's choice.

use herma_core::engine::DestinationKind;
use herma_harness::{ChoiceError, Installation};

use crate::contract_file::ReadContract;

/// The destination of a run cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum DestinationError {
    /// The request contradicts the contract. Ignoring it would run something else than was asked for.
    #[error("the contract says `destination: {}`, and --destination says `{}`", contract.as_str(), requested.as_str())]
    Contradiction {
        /// The contract's destination.
        contract: DestinationKind,
        /// The requested one.
        requested: DestinationKind,
    },
    /// The repository's choice cannot be read.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
}

impl DestinationError {
    /// The next step for the user.
    #[must_use]
    pub fn next_step(&self) -> String {
        match self {
            Self::Contradiction { .. } => {
                "leave --destination out, or change `destination` in the contract, which makes it another contract"
                    .to_owned()
            }
            Self::Choice(error) => error.next_step(),
        }
    }
}

/// The destination that is requested or was chosen for the repository; none where the contract or the default decides.
pub fn resolve_destination(
    requested: Option<DestinationKind>,
    installation: &Installation,
    read: &ReadContract,
) -> Result<Option<DestinationKind>, DestinationError> {
    match (requested, read.contract.terms.destination) {
        (Some(requested), Some(contract)) if requested != contract => {
            return Err(DestinationError::Contradiction { contract, requested });
        }
        (None, None) => {}
        (requested, _) => return Ok(requested),
    }
    let chosen = installation.choice_for(&read.contract, &read.dir)?;
    Ok(chosen.map(|choice| choice.destination))
}
