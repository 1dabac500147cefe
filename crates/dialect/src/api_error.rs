//! Errors in the shape that the client's library knows.

use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::refusal::Refusal;

/// An error response to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// The text: cause, subject and next step.
    pub message: String,
    /// The place in the request that it is about.
    pub param: Option<String>,
    /// The code for programs. Messages has no field for it.
    pub code: Option<String>,
}

impl ApiError {
    /// An error with its status and message alone.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None, code: None }
    }

    /// The same with a code for programs.
    #[must_use]
    pub fn with_code(self, code: impl Into<String>) -> Self {
        Self { code: Some(code.into()), ..self }
    }

    /// The body of the response.
    #[must_use]
    pub fn body(&self, dialect: Dialect) -> String {
        self.value(dialect).to_string()
    }

    /// The error event of a stream that has begun. `sequence_number` counts the events of Responses.
    #[must_use]
    pub fn event(&self, dialect: Dialect, sequence_number: u64) -> String {
        match dialect {
            Dialect::Chat => format!("data: {}\n\n", self.value(dialect)),
            Dialect::Messages => format!("event: error\ndata: {}\n\n", self.value(dialect)),
            Dialect::Responses => {
                let code = self.code.as_deref().unwrap_or(open_ai_type(self.status));
                let data = json!({
                    "type": "error",
                    "code": code,
                    "message": self.message,
                    "param": self.param,
                    "sequence_number": sequence_number,
                });
                format!("event: error\ndata: {data}\n\n")
            }
        }
    }

    fn value(&self, dialect: Dialect) -> Value {
        let (message, status) = (&self.message, self.status);
        match dialect {
            Dialect::Chat | Dialect::Responses => json!({"error": {
                "message": message,
                "type": open_ai_type(status),
                "param": self.param,
                "code": self.code.as_deref().or(open_ai_code(status)),
            }}),
            Dialect::Messages => {
                json!({"type": "error", "error": {"type": anthropic_type(status), "message": message}})
            }
        }
    }
}

impl From<&Refusal> for ApiError {
    fn from(refusal: &Refusal) -> Self {
        let param = refusal.path().map(str::to_owned);
        Self { status: refusal.status(), message: refusal.to_string(), param, code: None }
    }
}

/// The type that `OpenAI` gives errors of a status.
fn open_ai_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

/// The code that `OpenAI` gives errors of a status, where it gives one.
fn open_ai_code(status: u16) -> Option<&'static str> {
    match status {
        401 => Some("invalid_api_key"),
        429 => Some("rate_limit_exceeded"),
        _ => None,
    }
}

/// The type that Anthropic gives errors of a status.
fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        504 => "timeout_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_the_type_of_its_dialect() {
        let rows = [
            (400, "invalid_request_error", "invalid_request_error"),
            (401, "authentication_error", "authentication_error"),
            (403, "permission_error", "permission_error"),
            (404, "invalid_request_error", "not_found_error"),
            (413, "invalid_request_error", "request_too_large"),
            (429, "rate_limit_error", "rate_limit_error"),
            (500, "server_error", "api_error"),
            (502, "server_error", "api_error"),
            (503, "server_error", "overloaded_error"),
            (504, "server_error", "timeout_error"),
        ];
        for (status, open_ai, anthropic) in rows {
            let error = ApiError::new(status, "no");
            for (dialect, word) in
                [(Dialect::Chat, open_ai), (Dialect::Responses, open_ai), (Dialect::Messages, anthropic)]
            {
                let body: Value = serde_json::from_str(&error.body(dialect)).unwrap();
                assert_eq!(body["error"]["type"], word, "{status} in {dialect}");
                assert_eq!(body["error"]["message"], "no");
                assert_eq!(body.get("type").is_some(), dialect == Dialect::Messages);
            }
        }
    }

    #[test]
    fn a_message_cannot_break_out_of_its_event() {
        let error = ApiError::new(502, "a\n\ndata: [DONE]\r\n\"x\"");
        for dialect in [Dialect::Chat, Dialect::Responses, Dialect::Messages] {
            let event = error.event(dialect, 7);
            let (head, data) = event.trim_end().rsplit_once("data: {").unwrap();
            assert!(head.is_empty() || head == "event: error\n", "{event}");
            let data: Value = serde_json::from_str(&format!("{{{data}")).unwrap();
            let told =
                if dialect == Dialect::Responses { &data["message"] } else { &data["error"]["message"] };
            assert_eq!(told, &error.message);
        }
    }
}
