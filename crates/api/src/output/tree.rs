//! `herma show --tree`.

use herma_core::contract::ContractId;
use herma_core::engine::EngineName;
use herma_core::{RunId, Status};
use schemars::JsonSchema;
use serde::Serialize;

/// The runs around a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TreeOutput {
    /// `herma.tree/v1`.
    pub schema: &'static str,
    /// The run that was asked about.
    pub run_id: RunId,
    /// The topmost run, with those below it.
    pub tree: TreeNode,
}

/// One run of a tree.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TreeNode {
    /// The run's name.
    pub run_id: RunId,
    /// The contract's name.
    pub contract_id: ContractId,
    /// The engine.
    pub engine: EngineName,
    /// Its verdict.
    pub status: Status,
    /// How many runs it is inside of: 0 for one that a person started.
    pub depth: u8,
    /// The runs that it asked for, in their order.
    pub children: Vec<TreeNode>,
}
