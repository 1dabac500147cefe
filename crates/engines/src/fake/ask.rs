//! The step `ask`: a model call through the run's router.

mod answer;
mod body;
mod http;

use std::path::PathBuf;

use herma_core::secret::Secret;
use serde::Deserialize;

use super::call_error::CallError;

/// The maximum output tokens of a Messages request if the script names none: that API requires one.
const USUAL_OUTPUT: u64 = 1024;

/// An agent's access to the run's router.
#[derive(Clone, Debug)]
pub struct Router {
    /// The socket.
    pub socket: PathBuf,
    /// The run's token for the router.
    pub token: Secret<String>,
    /// The contract's model.
    pub model: String,
}

/// The step `ask`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The prompt.
    pub prompt: String,
    /// In which API.
    #[serde(default)]
    pub dialect: Dialect,
    /// Whether the answer comes as a stream.
    #[serde(default)]
    pub stream: bool,
    /// The model; the contract's if nothing is said.
    pub model: Option<String>,
    /// The most output tokens.
    pub max_output: Option<u64>,
    /// The status that the router must answer with; any of 200 to 299 if nothing is said.
    pub expect: Option<u16>,
    /// Whether the script ends where it fails.
    #[serde(default)]
    pub must: bool,
}

/// An API of the router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Chat Completions.
    #[default]
    Chat,
    /// Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
}

impl Ask {
    /// Asks, and gives what came as a message for people; an error says why the step failed.
    pub(super) fn put(&self, router: Option<&Router>) -> Result<String, CallError> {
        let router = router.ok_or(CallError::NoRouter)?;
        let body = body::of(self, self.model.as_deref().unwrap_or(&router.model));
        let answer = http::post(router, self.dialect.path(), &body)?;
        let said = answer::text(self, &answer);
        let status = answer.status;
        let good = self.expect.map_or((200..300).contains(&status), |expected| status == expected);
        if good {
            return Ok(format!("the model answered with {status}: {said}"));
        }
        let expected = self.expect.map_or_else(|| "200 to 299".to_owned(), |status| status.to_string());
        Err(CallError::Status { status, expected, body: said })
    }
}

impl Dialect {
    fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
        }
    }
}
