//! The router's record of each call: one line of `model-calls.jsonl`, chained to the line before it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::budget::Amount;

mod chain;
mod sums;
mod unchained;

pub use chain::{Broken, Chain, LONGEST_LINE, parse_line, read};
pub use sums::{ModelSums, Sums};
pub use unchained::{LONGEST_TEXT, Unchained};

/// A charge.
pub type Charge = Amount;

/// One call of a model, or one that was refused. The fields are in the order of their names, so that serde writes
/// the canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelCall {
    /// The model that says it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<String>,
    /// The model that the client asked for; empty where the request could not be read.
    pub asked: String,
    /// Every upstream that was tried, in order. The last one answered, if any did.
    pub attempts: Vec<Attempt>,
    /// Which call of the run it is, counted as calls begin; none for one that was refused before it could cost anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// Its charge.
    pub charged: Charge,
    /// Which API was called.
    #[serde(rename = "door")]
    pub endpoint: Endpoint,
    /// How it ended.
    pub ended: Ended,
    /// Microseconds until the first byte of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_us: Option<u64>,
    /// Microseconds until its end.
    pub latency_us: u64,
    /// The digest of the line before, without its newline; of nothing, for the first.
    pub prev: Digest,
    /// Why it was refused or failed, as a code for programs: `model_mismatch`, `budget_exhausted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The digest of the request's body as the client sent it.
    pub request: Digest,
    /// The digest of the answer's body as the client got it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Digest>,
    /// The changes of herma to the request, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewrites: Vec<String>,
    /// The run that made the call.
    pub run: String,
    /// The place in the chain, from 0.
    pub seq: u64,
    /// Whether it is charged at its real cost. If not, the cost is unknown, and it is charged at the maximum.
    pub settled: bool,
    /// The status that the client got; 0 if it left before there was one.
    pub status: u16,
    /// Why the answer ended, in the upstream's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// Whether the answer was asked for as a stream.
    pub stream: bool,
    /// When it came in.
    pub time: Timestamp,
    /// How many calls of its client's tools the response asks for. Tools that the provider runs by itself do not count.
    #[serde(default, skip_serializing_if = "crate::units::is_zero")]
    pub tool_calls: u64,
    /// The tokens that it used, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<TokensUsed>,
}

/// One upstream that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// The charge of this attempt.
    pub charged: Charge,
    /// The model that it was asked for.
    pub model: String,
    /// Its outcome: `answered`, or a code that says why it did not answer.
    pub outcome: String,
    /// Its status, where it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Its name in the router's configuration.
    pub upstream: String,
}

/// The tokens that a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokensUsed {
    /// Of the input: what was written to a cache.
    pub cache_write: u64,
    /// Of the input: what was read from a cache.
    pub cached_input: u64,
    /// All tokens of the input.
    pub input: u64,
    /// All tokens of the output.
    pub output: u64,
    /// Of the output: what was reasoning.
    pub reasoning: u64,
}

/// Which API of the router was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST /v1/completions`.
    Completions,
    /// `POST /v1/messages/count_tokens`.
    CountTokens,
    /// `POST /v1/embeddings`.
    Embeddings,
    /// `POST /v1/messages`.
    Messages,
    /// `POST /v1/responses`.
    Responses,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The client got the whole answer, and what it used is known.
    Answered,
    /// The client got the whole answer, which does not say what it used: it is charged at the most.
    Uncounted,
    /// herma refused it; no upstream was asked.
    Refused,
    /// No upstream answered, or the answer was an error.
    Failed,
    /// The answer broke off.
    Cut,
    /// The client left before the answer was whole.
    ClientLeft,
    /// The router died in the middle of it. Written by the next start.
    Interrupted,
}

impl Endpoint {
    /// Its name in records and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
            Self::CountTokens => "count_tokens",
            Self::Embeddings => "embeddings",
            Self::Messages => "messages",
            Self::Responses => "responses",
        }
    }
}

impl Ended {
    /// Its name in records and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Uncounted => "uncounted",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Cut => "cut",
            Self::ClientLeft => "client_left",
            Self::Interrupted => "interrupted",
        }
    }
}

#[cfg(test)]
mod tests;
