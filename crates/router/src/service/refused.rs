//! The router's own refusal of a request, and its response.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use std::time::Duration;

use crate::budget::{Exhausted, Lack, Scope};
use crate::dialect::{ApiError, Dialect, Refusal};

/// Tells a client's library whether to retry by itself.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Why the router refuses a request.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) error: ApiError,
    /// The reason code in the record.
    pub(super) reason: &'static str,
    pub(super) retry_after: Option<Duration>,
    /// Whether the same request could succeed later.
    pub(super) may_retry: bool,
}

impl Refused {
    pub(super) fn new(status: u16, reason: &'static str, message: impl Into<String>) -> Self {
        let error = ApiError::new(status, message).with_code(reason);
        Self { error, reason, retry_after: None, may_retry: false }
    }

    /// The same, for a condition that may pass by itself.
    pub(super) fn retryable(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after, may_retry: true, ..self }
    }

    pub(super) fn model(asked: &str) -> Self {
        let shown: String = asked.chars().filter(|c| !c.is_control()).take(100).collect();
        let message = format!(
            "the model `{shown}` is not admitted for this run; ask for an admitted one (GET /v1/models), or have it admitted"
        );
        let mut refused = Self::new(403, "model_mismatch", message);
        refused.error.param = Some("model".to_owned());
        refused
    }

    pub(super) fn body(self, dialect: Dialect) -> (Response<()>, Bytes) {
        let body = Bytes::from(self.error.body(dialect));
        let status = StatusCode::from_u16(self.error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(SHOULD_RETRY, HeaderValue::from_static(if self.may_retry { "true" } else { "false" }));
        if let Some(wait) = self.retry_after {
            let seconds = wait.as_millis().div_ceil(1000);
            headers.insert(RETRY_AFTER, HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX)));
        }
        (response, body)
    }
}

impl From<&Refusal> for Refused {
    fn from(refusal: &Refusal) -> Self {
        let reason = match refusal {
            Refusal::ReachesOut(_) => "reaches_out",
            Refusal::TooLarge { .. } => "too_large",
            Refusal::UnknownKey { .. } => "unknown_parameter",
            _ => "bad_request",
        };
        let mut error = ApiError::from(refusal);
        error.code = Some(reason.to_owned());
        Self { error, reason, retry_after: None, may_retry: false }
    }
}

impl Refused {
    /// A budget does not allow a call of this run.
    pub(super) fn budget(exhausted: &Exhausted, run: &str) -> Self {
        let whose = match &exhausted.scope {
            Scope::Run(name) if **name != *run => "a parent run of this one",
            Scope::Run(_) => "this run",
            Scope::Engine(_) => "this engine",
            Scope::Day(_) => "this day",
        };
        let what = exhausted.what;
        let unknown = match what {
            Lack::Requests | Lack::Tokens | Lack::Usd => None,
            Lack::Price => {
                Some("it is a budget in dollars, and the configuration has no price of this model")
            }
            Lack::Budget => Some("it is not open"),
            Lack::Store => Some("the spending of other processes is unknown"),
        };
        if let Some(why) = unknown {
            let message = format!(
                "the budget of {whose} cannot be kept, so the call is not made: {why}; the operator has to look at it"
            );
            return Self::new(503, "budget_unknown", message);
        }
        let message = format!(
            "the budget of {whose} does not allow this call: {what}. Ask for less, or have the budget raised; in-flight \
             calls may still return some of it"
        );
        Self::new(429, "budget_exhausted", message)
    }
}
