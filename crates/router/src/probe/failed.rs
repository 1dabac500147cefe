//! A probe that could not find out anything.

use herma_core::Blocker;
use herma_core::blocker::BlockerRecord;

use herma_dialect::endpoint::Endpoint;

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
    /// The probe was cancelled.
    #[error("the probe of the model was cancelled")]
    GivenUp,
    /// The router itself does not answer.
    #[error("the router could not be asked: {0}")]
    Router(String),
    /// The router did not let the question through.
    #[error("{}", refused(*status, message))]
    Refused {
        /// Its status: 401 for the token, 403 for the model, 429 for a budget.
        status: u16,
        /// Its message.
        message: String,
    },
    /// The permitted output is too little for a probe.
    #[error(
        "the model answered with no content, but it had only {allowed} tokens for it and not {asked}: raise the budget, or \
         the model's `ceiling`"
    )]
    TooLittleOutput {
        /// The permitted output.
        allowed: u64,
        /// The required output.
        asked: u64,
    },
    /// The model's provider takes no question at this API; it may at another.
    #[error("the provider takes no question at {}: {why}", name(*.endpoint))]
    NotTaken {
        /// Where it was asked.
        endpoint: Endpoint,
        /// The reason.
        why: String,
    },
    /// The model's provider does not answer.
    #[error("the provider does not answer at {}: {why}", name(*.endpoint))]
    Unavailable {
        /// Where it was asked.
        endpoint: Endpoint,
        /// The reason.
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

impl ProbeFailed {
    /// The record of its blocker, with the next step that fits the cause.
    #[must_use]
    pub fn record(&self) -> BlockerRecord {
        let record = self.blocker().because(self.to_string());
        match self {
            Self::Unavailable { .. } | Self::NotTaken { .. } => BlockerRecord {
                next_step: "Check the address and the key of the model's upstream in router.toml; `herma router probe \
                            PROVIDER/MODEL` asks it again. The contract need not change."
                    .to_owned(),
                ..record
            },
            Self::NotStarted | Self::Router(_) => {
                BlockerRecord { next_step: "Run the contract again.".to_owned(), ..record }
            }
            Self::NoDoor | Self::GivenUp | Self::Refused { .. } | Self::TooLittleOutput { .. } => record,
        }
    }
}

/// A budget is the contract's own; anything else is about the router.
fn refused(status: u16, message: &str) -> String {
    match status {
        429 => message.to_owned(),
        _ => format!("the router refused to ask the model, with status {status}: {message}"),
    }
}

/// The name of an API as people write it.
pub(super) fn name(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Chat => "chat",
        Endpoint::Responses => "responses",
        Endpoint::Messages => "messages",
        Endpoint::Completions => "completions",
        Endpoint::Embeddings => "embeddings",
        Endpoint::CountTokens => "count_tokens",
    }
}
