//! Where in a body the values stand that can be rewritten.

use std::ops::Range;

use crate::dialect::Dialect;

/// A key that bounds the output of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaximumKey {
    /// `max_tokens`, of chat and Messages.
    MaxTokens,
    /// `max_completion_tokens`, of chat.
    MaxCompletionTokens,
    /// `max_output_tokens`, of Responses.
    MaxOutputTokens,
    /// `n_predict`, by which llama.cpp overrides the others in chat.
    NPredict,
}

impl MaximumKey {
    /// The key that a name is in a dialect.
    pub(super) fn of(dialect: Dialect, name: &str) -> Option<Self> {
        match (dialect, name) {
            (Dialect::Chat | Dialect::Messages, "max_tokens") => Some(Self::MaxTokens),
            (Dialect::Chat, "max_completion_tokens") => Some(Self::MaxCompletionTokens),
            (Dialect::Chat, "n_predict") => Some(Self::NPredict),
            (Dialect::Responses, "max_output_tokens") => Some(Self::MaxOutputTokens),
            _ => None,
        }
    }

    /// The key as it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::MaxOutputTokens => "max_output_tokens",
            Self::NPredict => "n_predict",
        }
    }
}

/// The places in one body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    /// Behind the opening brace of the body, where keys can be inserted.
    pub(crate) start: usize,
    pub(crate) model: Range<usize>,
    pub(crate) maxima: Vec<Maximum>,
    pub(crate) store: Option<Range<usize>>,
    pub(crate) stream_options: Option<StreamOptions>,
}

/// One output maximum.
#[derive(Clone, Debug)]
pub(crate) struct Maximum {
    pub(crate) key: MaximumKey,
    pub(crate) span: Range<usize>,
    /// `None` for null.
    pub(crate) value: Option<u64>,
}

/// Where the options of a stream stand.
#[derive(Clone, Debug)]
pub(crate) enum StreamOptions {
    /// They are null.
    Null(Range<usize>),
    /// They are an object, in which the option may stand.
    Object {
        /// Behind its opening brace.
        start: usize,
        /// Whether it holds no key.
        empty: bool,
        include_usage: Option<Range<usize>>,
    },
}
