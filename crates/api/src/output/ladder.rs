//! Output of `herma ladder` and `herma prove`.

use herma_core::Status;
use herma_ladder::{ClimbStep, Rung};
use schemars::JsonSchema;
use serde::Serialize;

/// Every stage of every engine.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LadderOutput {
    /// `herma.ladder/v1`.
    pub schema: &'static str,
    /// One for each engine and stage.
    pub rungs: Vec<Rung>,
}

/// The steps of `herma prove --up-to` and `herma prove --stale`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProofsOutput {
    /// `herma.proofs/v1`.
    pub schema: &'static str,
    /// `pass` where every stage is proven now; it says nothing of stages that are not listed.
    pub status: Status,
    /// One for each engine and stage, in the order in which they were looked at.
    pub steps: Vec<ClimbStep>,
}
