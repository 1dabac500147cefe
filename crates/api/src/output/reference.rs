//! Output of `herma show` of a reference.

use herma_core::reference::Reference;
use schemars::JsonSchema;
use serde::Serialize;

/// A file of a bundle, or a record.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReferenceOutput {
    /// `herma.reference/v1`.
    pub schema: ReferenceSchema,
    /// The reference.
    pub reference: Reference,
    /// Whether it verifies now.
    pub verifies: bool,
    /// Why it does not.
    pub problem: Option<String>,
    /// Its content.
    pub text: String,
}

/// The version of the output's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum ReferenceSchema {
    /// The first version.
    #[serde(rename = "herma.reference/v1")]
    V1,
}
