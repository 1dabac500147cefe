//! Why there is no comparison.

use std::io;

use herma_core::RunId;
use herma_core::cancellation::EndSignal;
use herma_core::comparison::ComparisonId;
use herma_core::contract::ContractId;
use herma_core::engine::{DestinationKind, EngineName};

use herma_harness::OrderError;

/// Why lanes could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// Nothing was asked for.
    #[error("a comparison needs a contract, an engine and at least one run")]
    Nothing,
    /// A lane is compared with itself.
    #[error("the engine `{0}` is named twice: name each once")]
    EngineTwice(EngineName),
    /// Two contracts have the same name.
    #[error("the contract `{0}` is named twice: each contract needs an id of its own")]
    ContractTwice(ContractId),
    /// Lanes are compared in the same destination.
    #[error("the contract `{0}` asks for the destination `{dest}`: lanes are compared in `sandbox` only", dest = .1.as_str())]
    Destination(ContractId, DestinationKind),
    /// The lanes were not given the same.
    #[error("the target of `{0}` moved while the lanes were compared: let it rest and compare again")]
    TargetMoved(ContractId),
    /// herma was interrupted.
    #[error("the lanes were not compared to the end: herma was interrupted by {0}")]
    Interrupted(EndSignal),
    /// The evidence of a run cannot be read back.
    #[error("the bundle of run {0} does not hold: {1}")]
    Bundle(RunId, String),
    /// A run could not be started or closed.
    #[error(transparent)]
    Order(#[from] OrderError),
}

/// Why a comparison that was kept cannot be leaned on.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError {
    /// There is none of that name.
    #[error("there is no comparison {0}")]
    NotThere(ComparisonId),
    /// There is one, and it holds no longer.
    #[error("the comparison {0} does not hold: {1}; compare again")]
    Broken(ComparisonId, String),
    /// It cannot be read or written.
    #[error("the comparisons of this installation cannot be used: {0}")]
    Files(#[from] io::Error),
}
