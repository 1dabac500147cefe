//! The router's own refusal of a request: its status, code and text, and its response.

use std::time::Duration;

use bytes::Bytes;
use herma_core::units::Usd;
use herma_dialect::{ApiError, Dialect, Refusal};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};

use super::reason::{Reason, UpstreamFailure};
use crate::budget::{Ask, Exhausted, Lack, Scope};
use crate::upstream::Ambiguous;

/// Tells a client's library whether to retry by itself.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The most characters of a model's name in a message.
const MAX_SHOWN_CHARS: usize = 100;

/// Why the router refuses a request.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error(
        "the token is missing, not known, or its run has ended; send the run's token as a bearer token or as x-api-key"
    )]
    UnknownToken,
    #[error("there is nothing at this path; GET /v1/models lists the models of this run")]
    NotFound,
    #[error("only {0} is taken here")]
    MethodNotAllowed(Method),
    #[error("this query is not supported here; send none")]
    UnsupportedQuery,
    #[error("send the body as plain JSON, with `content-type: application/json` and no `content-encoding`")]
    UnsupportedMediaType,
    #[error("the body broke off before its announced length")]
    BodyCut,
    #[error("the body did not come in time; send it faster")]
    BodyTimeout,
    #[error(transparent)]
    Request(#[from] Refusal),
    #[error(
        "the model `{shown}` is not admitted for this run; ask for an admitted one (GET /v1/models), or have it admitted"
    )]
    ModelNotAdmitted { shown: String },
    #[error(
        "the budget of {owner} is too small for this call: it needs at least {needs}. Ask for less, or have the budget raised; in-flight calls may still return some of it"
    )]
    BudgetExhausted { owner: &'static str, needs: String },
    #[error(
        "the budget of {owner} cannot be kept, so the call is not made: {why}; the operator has to look at it"
    )]
    BudgetUnknown { owner: &'static str, why: &'static str },
    #[error(
        "the spending of other processes is unknown, so the call is not made; the operator has to look at the router's store"
    )]
    StoreUnavailable,
    #[error("the call cannot be recorded, so it is not made; the operator has to look at the router's disk")]
    AuditUnwritable,
    #[error("no upstream of this model (`{upstreams}`) could be reached; the operator has to look at it")]
    Unreachable { upstreams: String, retry_after: Option<Duration> },
    #[error(
        "all upstreams of this model (`{upstreams}`) are unavailable (circuit open); retry in {} s",
        seconds(*retry_after)
    )]
    CircuitsOpen { upstreams: String, retry_after: Duration },
    #[error("no upstream of this model (`{upstreams}`) has this API; use another one")]
    UnsupportedEndpoint { upstreams: String },
    #[error(
        "the upstream `{upstream}` gave no response ({}); the call may have been charged, so herma does not repeat it",
        why.code()
    )]
    NoResponse { upstream: String, why: Ambiguous },
    #[error("{}", upstream_failed(upstream, *status, *failure))]
    UpstreamStatus { upstream: String, status: u16, failure: UpstreamFailure },
}

/// The least that the call needs of a budget, in words.
fn needs(lack: Lack, ask: &Ask) -> String {
    let least = ask.most(ask.least_output.min(ask.output));
    match lack {
        Lack::Tokens => format!("{} tokens", least.tokens),
        Lack::Usd => format!("${}", Usd(least.micro_usd)),
        _ => "one more request".to_owned(),
    }
}

impl Refused {
    /// A model that the run may not use.
    pub(super) fn model(name: &str) -> Self {
        let shown = name.chars().filter(|c| !c.is_control()).take(MAX_SHOWN_CHARS).collect();
        Self::ModelNotAdmitted { shown }
    }

    /// A budget does not allow a call of this run.
    pub(super) fn budget(exhausted: &Exhausted, run: &str, ask: &Ask) -> Self {
        let owner = match &exhausted.scope {
            Scope::Run(name) if **name != *run => "a parent run of this one",
            Scope::Run(_) => "this run",
            Scope::Engine(_) => "this engine",
            Scope::Day(_) => "this day",
        };
        let why = match exhausted.what {
            lack @ (Lack::Requests | Lack::Tokens | Lack::Usd) => {
                return Self::BudgetExhausted { owner, needs: needs(lack, ask) };
            }
            Lack::Price => "it is a budget in dollars, and the configuration has no price of this model",
            Lack::Budget => "it is not open",
            Lack::Store => "the spending of other processes is unknown",
        };
        Self::BudgetUnknown { owner, why }
    }

    /// The reason in the record, and the code in the body.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::UnknownToken => Reason::InvalidApiKey,
            Self::NotFound => Reason::NotFound,
            Self::MethodNotAllowed(_) => Reason::MethodNotAllowed,
            Self::UnsupportedQuery | Self::BodyCut => Reason::BadRequest,
            Self::UnsupportedMediaType => Reason::UnsupportedMediaType,
            Self::BodyTimeout => Reason::TooSlow,
            Self::Request(refusal) => Reason::from(refusal),
            Self::ModelNotAdmitted { .. } => Reason::ModelMismatch,
            Self::BudgetExhausted { .. } => Reason::BudgetExhausted,
            Self::BudgetUnknown { .. } | Self::StoreUnavailable => Reason::BudgetUnknown,
            Self::AuditUnwritable => Reason::AuditUnwritable,
            Self::Unreachable { .. } => Reason::UpstreamUnreachable,
            Self::CircuitsOpen { .. } => Reason::UpstreamUnavailable,
            Self::UnsupportedEndpoint { .. } => Reason::UnsupportedEndpoint,
            Self::NoResponse { why, .. } => Reason::NoResponse(*why),
            Self::UpstreamStatus { failure, .. } => Reason::UpstreamStatus(*failure),
        }
    }

    /// The HTTP status.
    pub(super) fn status(&self) -> u16 {
        match self {
            Self::UnsupportedQuery | Self::BodyCut => 400,
            Self::UnknownToken => 401,
            Self::ModelNotAdmitted { .. } => 403,
            Self::NotFound | Self::UnsupportedEndpoint { .. } => 404,
            Self::MethodNotAllowed(_) => 405,
            Self::BodyTimeout => 408,
            Self::UnsupportedMediaType => 415,
            Self::BudgetExhausted { .. } => 429,
            Self::Request(refusal) => refusal.status(),
            Self::Unreachable { .. } | Self::UpstreamStatus { .. } => 502,
            Self::BudgetUnknown { .. }
            | Self::StoreUnavailable
            | Self::AuditUnwritable
            | Self::CircuitsOpen { .. } => 503,
            Self::NoResponse { why, .. } => match why {
                Ambiguous::FirstByteTimeout => 504,
                Ambiguous::NotHttp | Ambiguous::ClosedBeforeHeaders => 502,
            },
        }
    }

    /// The key of the body that it is about.
    fn param(&self) -> Option<&str> {
        match self {
            Self::Request(refusal) => refusal.path(),
            Self::ModelNotAdmitted { .. } => Some("model"),
            _ => None,
        }
    }

    /// Whether the same request could succeed later, and when.
    fn retry(&self) -> (bool, Option<Duration>) {
        match self {
            Self::Unreachable { retry_after, .. } => (true, *retry_after),
            Self::CircuitsOpen { retry_after, .. } => (true, Some(*retry_after)),
            Self::NoResponse { .. } => (true, None),
            _ => (false, None),
        }
    }

    /// The response, in the form of this dialect.
    pub(super) fn response(&self, dialect: Dialect) -> (Response<()>, Bytes) {
        let error = ApiError {
            status: self.status(),
            message: self.to_string(),
            param: self.param().map(str::to_owned),
            code: Some(self.reason().code().to_owned()),
        };
        let body = Bytes::from(error.body(dialect));
        let mut response = Response::new(());
        *response.status_mut() =
            StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (may_retry, retry_after) = self.retry();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(SHOULD_RETRY, HeaderValue::from_static(if may_retry { "true" } else { "false" }));
        if let Some(wait) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds(wait)));
        }
        (response, body)
    }
}

/// Whole seconds, rounded up.
fn seconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u64::MAX)
}

fn upstream_failed(upstream: &str, status: u16, failure: UpstreamFailure) -> String {
    match failure {
        UpstreamFailure::RefusedKey => format!(
            "the upstream `{upstream}` refused the router's key (status {status}); check `key` of this upstream in router.toml"
        ),
        UpstreamFailure::Redirects => {
            format!("the upstream `{upstream}` redirects, and herma does not follow redirects")
        }
        UpstreamFailure::ServerError | UpstreamFailure::Other => {
            format!("the upstream `{upstream}` failed with status {status}")
        }
    }
}
