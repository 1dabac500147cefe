//! Output of commands about the trust chain.

use herma_core::trust::TrustHead;
use schemars::JsonSchema;
use serde::Serialize;

/// `herma trust --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrustOutput {
    /// `herma.trust/v1`.
    pub schema: &'static str,
    /// Where the chain ends.
    pub head: TrustHead,
    /// How many bundles and signed admissions of this home agree with it.
    pub witnesses: usize,
    /// The head that the bundle of `--against` names, which the chain contains.
    pub compared: Option<TrustHead>,
}
