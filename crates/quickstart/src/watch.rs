//! Shows the progress of a set-up.

use herma_api::output::{QuickstartFinding, QuickstartStep, QuickstartStepName};
use herma_core::engine::EngineName;
use herma_ladder::ClimbWatch;

use crate::page::Page;

/// Receives the progress.
pub trait Watch: ClimbWatch + Sync {
    /// Existing and missing parts.
    fn inspected(&self, engine: &EngineName, findings: &[QuickstartFinding]);

    /// A step begins that takes time.
    fn begun(&self, step: QuickstartStepName);

    /// Progress within a step.
    fn note(&self, text: &str);

    /// The records to be signed.
    fn page(&self, page: &Page);

    /// A step is over.
    fn step_done(&self, step: &QuickstartStep);
}
