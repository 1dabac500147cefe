//! The codes of refusals and failures. Records, metrics and error bodies have the same ones.

use herma_dialect::{Doubt, Refusal};

use crate::upstream::{Ambiguous, NotReached};

/// Why a call was refused or failed, or is charged at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The token is unknown.
    InvalidApiKey,
    /// The path is unknown.
    NotFound,
    /// The path is known, with another method.
    MethodNotAllowed,
    /// The request cannot be read.
    BadRequest,
    /// The body is not plain JSON.
    UnsupportedMediaType,
    /// The body is too large.
    TooLarge,
    /// The body did not come in time.
    TooSlow,
    /// A key that is not passed on.
    UnknownParameter,
    /// The upstream would fetch or run something that the grant does not admit.
    ReachesOut,
    /// The model is not admitted.
    ModelMismatch,
    /// A budget does not allow the call.
    BudgetExhausted,
    /// The spending of a budget is unknown.
    BudgetUnknown,
    /// The call cannot be recorded.
    AuditUnwritable,
    /// No upstream was reached.
    UpstreamUnreachable,
    /// All circuits are open.
    UpstreamUnavailable,
    /// No upstream has the endpoint.
    UnsupportedEndpoint,
    /// The upstream gave no response.
    NoResponse(Ambiguous),
    /// The upstream answered with an error.
    UpstreamStatus(UpstreamFailure),
    /// The connection to the upstream broke in the middle of the answer.
    UpstreamCut,
    /// The upstream sent nothing for too long.
    UpstreamIdle,
    /// The stream has no end.
    EndedEarly,
    /// The stream has an error event.
    ErrorEvent,
    /// The client disconnected.
    ClientLeft,
    /// The answer has no usage.
    NoUsage,
    /// The usage of the answer is impossible.
    ZeroUsage,
    /// The usage of the answer is not believed.
    Doubted(Doubt),
    /// The answer is too large to be parsed.
    TooLargeToRead,
    /// The answer cannot be parsed.
    NotAnAnswer,
}

/// The error status of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpstreamFailure {
    /// It failed, and may have processed the call.
    ServerError,
    /// It refused the router's key.
    RefusedKey,
    /// It redirects.
    Redirects,
    /// Any other error.
    Other,
}

/// The outcome of an attempt at one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is under way.
    Pending,
    /// It responded.
    Answered,
    /// It was skipped: it does not have the endpoint.
    UnsupportedEndpoint,
    /// It was skipped: its circuit is open.
    CircuitOpen,
    /// It refused the call with status 429.
    TooManyRequests,
    /// It refused the call with status 503 or 529.
    Overloaded,
    /// It failed with another status above 499.
    ServerError,
    /// The request was not sent.
    NotReached(NotReached),
    /// The request may have been sent, and no response came.
    NoResponse(Ambiguous),
}

impl Reason {
    /// The code in records, metrics and error bodies.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::InvalidApiKey => "invalid_api_key",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::BadRequest => "bad_request",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::TooLarge => "too_large",
            Self::TooSlow => "too_slow",
            Self::UnknownParameter => "unknown_parameter",
            Self::ReachesOut => "reaches_out",
            Self::ModelMismatch => "model_mismatch",
            Self::BudgetExhausted => "budget_exhausted",
            Self::BudgetUnknown => "budget_unknown",
            Self::AuditUnwritable => "audit_unwritable",
            Self::UpstreamUnreachable => "upstream_unreachable",
            Self::UpstreamUnavailable => "upstream_unavailable",
            Self::UnsupportedEndpoint => "unsupported_endpoint",
            Self::NoResponse(why) => why.code(),
            Self::UpstreamStatus(UpstreamFailure::ServerError) => "server_error",
            Self::UpstreamStatus(UpstreamFailure::RefusedKey) => "upstream_refused_key",
            Self::UpstreamStatus(UpstreamFailure::Redirects) => "upstream_redirects",
            Self::UpstreamStatus(UpstreamFailure::Other) => "upstream_error",
            Self::UpstreamCut => "upstream_cut",
            Self::UpstreamIdle => "upstream_idle",
            Self::EndedEarly => "ended_early",
            Self::ErrorEvent => "error_event",
            Self::ClientLeft => "client_left",
            Self::NoUsage => "no_usage",
            Self::ZeroUsage => "zero_usage",
            Self::Doubted(doubt) => doubt.name(),
            Self::TooLargeToRead => "too_large_to_read",
            Self::NotAnAnswer => "not_an_answer",
        }
    }
}

impl From<&Refusal> for Reason {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::ReachesOut(_) => Self::ReachesOut,
            Refusal::TooLarge { .. } => Self::TooLarge,
            Refusal::UnknownKey { .. } => Self::UnknownParameter,
            Refusal::NotUtf8 { .. }
            | Refusal::NotJson { .. }
            | Refusal::NotAnObject
            | Refusal::TooDeep { .. }
            | Refusal::DuplicateKey { .. }
            | Refusal::LookalikeKey { .. }
            | Refusal::Missing { .. }
            | Refusal::WrongType { .. }
            | Refusal::OutOfRange { .. } => Self::BadRequest,
        }
    }
}

impl UpstreamFailure {
    /// The meaning of an error status.
    pub(super) fn of(status: u16) -> Self {
        match status {
            500.. if !matches!(status, 503 | 529) => Self::ServerError,
            401 | 403 => Self::RefusedKey,
            300..=399 => Self::Redirects,
            _ => Self::Other,
        }
    }
}

impl Outcome {
    /// The code in records and metrics.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Pending => "no_answer",
            Self::Answered => "answered",
            Self::UnsupportedEndpoint => "unsupported_endpoint",
            Self::CircuitOpen => "circuit_open",
            Self::TooManyRequests => "too_many_requests",
            Self::Overloaded => "overloaded",
            Self::ServerError => "server_error",
            Self::NotReached(why) => why.code(),
            Self::NoResponse(why) => why.code(),
        }
    }
}
