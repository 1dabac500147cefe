//! The capabilities of a model, as far as they were observed.

use herma_core::Blocker;
use herma_core::model_call::{Endpoint, TokensUsed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The capabilities of a model, as far as they were observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capabilities {
    /// Whether it answers with content.
    pub content: Support,
    /// The APIs at which it answered.
    pub endpoints: Vec<Endpoint>,
    /// The APIs at which it did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The model that says it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_answered: Option<String>,
    /// Whether it answered with reasoning and nothing else.
    pub reasoning_only: bool,
    /// Whether a stream comes as a stream, and comes to its end.
    pub streaming: Support,
    /// Whether it calls a tool that it is given, with arguments that can be read.
    pub tool_calls: Support,
    /// The usage of all questions together, as far as the answers have it.
    pub used: TokensUsed,
}

/// Whether a model can do something. Where it was asked at several APIs, it can only if it can at each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// It did.
    Yes,
    /// It did not, and why.
    No(String),
    /// It was not asked, because an earlier question showed enough.
    NotAsked,
}

/// An API at which the model did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Which one.
    pub endpoint: Endpoint,
    /// Why it did not.
    pub why: String,
}

impl Support {
    /// Whether it is certain that the model can.
    #[must_use]
    pub fn is_yes(&self) -> bool {
        *self == Self::Yes
    }

    /// Takes over what was seen at one API more.
    pub(super) fn also(&mut self, other: Self) {
        if !matches!(self, Self::No(_)) && other != Self::NotAsked {
            *self = other;
        }
    }
}

impl Capabilities {
    /// Why no run can depend on this model, with the observation; none if one can. The caller judges missing streams and
    /// tool calls.
    #[must_use]
    pub fn blocker(&self) -> Option<(Blocker, &str)> {
        let why = match &self.content {
            Support::Yes => return None,
            Support::No(why) => why,
            Support::NotAsked => "the model was not asked",
        };
        let blocker =
            if self.reasoning_only { Blocker::ProviderReasoningOnly } else { Blocker::ProviderUnavailable };
        Some((blocker, why))
    }
}
