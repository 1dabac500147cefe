//! The person who sets herma up, as far as a step needs one.

use herma_core::approver::ApproverName;
use herma_core::secret::Secret;
use herma_trust::{Approver, Approvers};

use crate::page::Page;

/// Answers questions. A command with flags alone answers only what its flags say.
pub trait Person {
    /// A passphrase for a new key.
    fn new_passphrase(&self, name: &ApproverName) -> Result<Secret<String>, Unanswered>;

    /// Opens the key of the approver who signs; the only one if no name is given.
    fn unlock(&self, approvers: &Approvers, name: Option<&ApproverName>) -> Result<Approver, Unanswered>;

    /// A key of this provider. `source` names the variable and the flags that would answer.
    fn credential(&self, provider: &str, sources: &str) -> Result<Secret<String>, Unanswered>;

    /// One of these models; the first where the person has no opinion.
    fn model(&self, upstream: &str, models: &[String]) -> Result<String, Unanswered>;

    /// Reads the page and repeats its code.
    fn confirm(&self, page: &Page) -> Result<(), Unanswered>;
}

/// A question without an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Unanswered {
    /// Whether a signal ended the question.
    pub is_interrupted: bool,
    /// The problem.
    pub what: String,
    /// The next step.
    pub next_step: Option<String>,
}
