//! A probe that could not find out anything.

use herma_core::Blocker;

use crate::door::Door;

/// A probe that could not find out anything about the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeFailed {
    /// There is no API to ask at.
    #[error(
        "the model was not asked: no API was named at which it converses; name chat, responses or messages"
    )]
    NoDoor,
    /// The system gives no thread to ask on.
    #[error("the model was not asked: the system gives no thread to ask on; try again with less load")]
    NotStarted,
    /// herma was told to end before there was an answer.
    #[error("the model was not asked to the end: herma was told to end")]
    GivenUp,
    /// The router itself does not answer.
    #[error("the router could not be asked: {0}")]
    Router(String),
    /// The router did not let the question through.
    #[error("the router refused to ask the model, with status {status}: {message}")]
    Refused {
        /// Its status: 401 for the token, 403 for the model, 429 for a budget.
        status: u16,
        /// What it said.
        message: String,
    },
    /// What may be asked for is too little to find out.
    #[error(
        "the model answered with no content, but it had only {allowed} tokens for it and not {asked}: raise the budget, or \
         the model's `ceiling`"
    )]
    TooLittleOutput {
        /// What the router allowed.
        allowed: u64,
        /// What is needed.
        asked: u64,
    },
    /// The model's provider takes no question at this API; it may at another.
    #[error("the provider takes no question at {}: {why}", name(*.door))]
    NotTaken {
        /// Where it was asked.
        door: Door,
        /// What came instead.
        why: String,
    },
    /// The model's provider does not answer.
    #[error("the provider does not answer at {}: {why}", name(*.door))]
    Unavailable {
        /// Where it was asked.
        door: Door,
        /// What came instead.
        why: String,
    },
}

impl ProbeFailed {
    /// The blocker of a run that depends on the model.
    #[must_use]
    pub fn blocker(&self) -> Blocker {
        match self {
            Self::Refused { status: 403, .. } => Blocker::ModelNotAdmitted,
            Self::Refused { status: 429, .. } | Self::TooLittleOutput { .. } => Blocker::BudgetExhausted,
            Self::GivenUp => Blocker::Interrupted,
            Self::NoDoor
            | Self::NotStarted
            | Self::Router(_)
            | Self::Refused { .. }
            | Self::NotTaken { .. }
            | Self::Unavailable { .. } => Blocker::ProviderUnavailable,
        }
    }
}

/// The name of an API as people write it.
pub(super) fn name(door: Door) -> &'static str {
    match door {
        Door::Chat => "chat",
        Door::Responses => "responses",
        Door::Messages => "messages",
        Door::Completions => "completions",
        Door::Embeddings => "embeddings",
        Door::CountTokens => "count_tokens",
    }
}
