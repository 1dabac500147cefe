//! What `herma ladder` prints.

use herma_harness::Rung;
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
