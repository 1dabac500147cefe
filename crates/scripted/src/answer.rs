//! The answer that the service sends: an error, a body, or the steps of a stream.

use herma_core::units::Span;
use herma_dialect::{ApiError, Dialect};

use crate::ids::Ids;
use crate::turn::HttpError;

/// Headers of an answer, beside those that the connection needs.
pub type Headers = Vec<(&'static str, String)>;

/// An answer, ready to be sent. Nothing of it, also not its status, goes out before its first wait is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An HTTP error.
    Error {
        /// Its status.
        status: u16,
        /// Its headers.
        headers: Headers,
        /// Its body, in the shape of the dialect.
        body: Vec<u8>,
        /// How long it takes.
        after: Span,
    },
    /// Status 200 and one body.
    Whole {
        /// Its headers.
        headers: Headers,
        /// The body.
        body: Vec<u8>,
        /// How long it takes.
        after: Span,
    },
    /// Status 200 and a body that comes step by step: events, or a body that does not arrive in full.
    Stream {
        /// Its headers.
        headers: Headers,
        /// How long the first byte takes.
        first_byte_after: Span,
        /// The steps. After the last one the body is complete.
        steps: Vec<StreamStep>,
    },
}

/// One step of a body that is sent piece by piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamStep {
    /// These bytes are sent.
    Bytes(Vec<u8>),
    /// Nothing is sent for so long.
    Wait(Span),
    /// The connection is cut: the client sees a body that is not complete. The last step.
    Cut,
    /// These bytes over and over until the client goes away. The last step.
    Forever {
        /// How long to wait before each time.
        every: Span,
        /// The bytes; none for a silence.
        bytes: Vec<u8>,
    },
}

impl Answer {
    /// An HTTP error as a script wants it.
    pub(super) fn error(dialect: Dialect, error: &HttpError, ids: &Ids, after: Span) -> Self {
        let mut headers = headers(dialect, ids, "application/json");
        if let Some(Span(wait)) = error.retry_after {
            headers.push(("retry-after", wait.div_ceil(1000).to_string()));
            if wait % 1000 != 0 {
                headers.push(("retry-after-ms", wait.to_string()));
            }
        }
        let body = api_error(error).body(dialect).into_bytes();
        Self::Error { status: error.status, headers, body, after }
    }
}

/// The headers of every answer.
pub(super) fn headers(dialect: Dialect, ids: &Ids, content_type: &str) -> Headers {
    let request_id = match dialect {
        Dialect::Chat | Dialect::Responses => "x-request-id",
        Dialect::Messages => "request-id",
    };
    vec![("content-type", content_type.to_owned()), (request_id, ids.id("req_", 0))]
}

/// The error of a script in the form that every dialect can write.
pub(super) fn api_error(error: &HttpError) -> ApiError {
    let message = error.message.as_deref().unwrap_or("The script answers with this error.");
    ApiError::new(error.status, message)
}
