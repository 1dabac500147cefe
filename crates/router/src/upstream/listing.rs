//! The models that a key reaches, as the provider lists them.

use std::cmp::Reverse;
use std::thread;
use std::time::Duration;

use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use jiff::Timestamp;
use serde::Deserialize;

use super::body::UpstreamBody;
use super::configured::Upstream;
use super::problem::{NotReached, SendError};

/// The longest list that is read.
const MAX_LIST_BYTES: usize = 4 << 20;
/// The longest name that counts as one.
const MAX_NAME: usize = 200;

/// A model in a provider's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedModel {
    /// Its name, as the provider wrote it.
    pub name: String,
    /// When it was created, if the list says so.
    pub created: Option<Timestamp>,
}

/// The models of a provider cannot be listed. No message holds its address or the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListingError {
    /// The provider does not accept the key.
    #[error("the provider refused the key ({0})")]
    KeyRefused(u16),
    /// No answer came.
    #[error("the provider was not reached: {0}")]
    NotReached(String),
    /// The provider has no such list.
    #[error("the provider lists no models ({0})")]
    NoList(u16),
    /// The answer is not a list of models.
    #[error("the provider's list of models cannot be read")]
    Malformed,
}

/// Lists the models that the key of an upstream reaches, newest first. It blocks, on a thread of its own.
pub fn list_models(upstream: &Upstream, time: Duration) -> Result<Vec<ListedModel>, ListingError> {
    let ask = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| ListingError::NotReached(error.to_string()))?;
        let late = || ListingError::NotReached("it did not answer in time".to_owned());
        runtime.block_on(async { tokio::time::timeout(time, list(upstream)).await.map_err(|_| late())? })
    };
    let not_started = || ListingError::NotReached("the system gives no thread to ask on".to_owned());
    thread::scope(|scope| {
        let asking = thread::Builder::new().name("herma-list".to_owned()).spawn_scoped(scope, ask);
        asking.map_err(|_| not_started())?.join().unwrap_or_else(|_| Err(not_started()))
    })
}

async fn list(upstream: &Upstream) -> Result<Vec<ListedModel>, ListingError> {
    match upstream.ask_for_models().await {
        None => {
            let named = |name: &str| ListedModel { name: name.to_owned(), created: None };
            Ok(upstream.models().into_iter().map(named).collect())
        }
        Some(Ok(response)) => read(response).await,
        Some(Err(error)) => Err(ListingError::NotReached(reason(error))),
    }
}

fn reason(error: SendError) -> String {
    let said = match error {
        SendError::NotReached(NotReached::NameNotFound) => "its host name was not found",
        SendError::NotReached(NotReached::ConnectionRefused) => "it refused the connection",
        SendError::NotReached(NotReached::ConnectTimeout) => "it did not answer in time",
        SendError::NotReached(NotReached::TlsFailed) => "the TLS handshake failed",
        other => other.code(),
    };
    said.to_owned()
}

async fn read(response: Response<UpstreamBody>) -> Result<Vec<ListedModel>, ListingError> {
    let status = response.status();
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            return Err(ListingError::KeyRefused(status.as_u16()));
        }
        status if !status.is_success() => return Err(ListingError::NoList(status.as_u16())),
        _ => {}
    }
    let body = Limited::new(response.into_body(), MAX_LIST_BYTES).collect().await;
    parse(&body.map_err(|_| ListingError::Malformed)?.to_bytes())
}

/// The fields that the lists of all providers share, and the two ways in which they give a time.
#[derive(Deserialize)]
struct List {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    #[serde(default)]
    created: Option<i64>,
    #[serde(default)]
    created_at: Option<Timestamp>,
}

fn parse(body: &[u8]) -> Result<Vec<ListedModel>, ListingError> {
    let list: List = serde_json::from_slice(body).map_err(|_| ListingError::Malformed)?;
    let mut models: Vec<ListedModel> = list
        .data
        .into_iter()
        .filter(|entry| !entry.id.is_empty() && entry.id.len() <= MAX_NAME)
        .filter(|entry| entry.id.bytes().all(|b| b.is_ascii_graphic()))
        .map(|entry| {
            let seconds = entry.created.and_then(|seconds| Timestamp::from_second(seconds).ok());
            ListedModel { name: entry.id, created: entry.created_at.or(seconds) }
        })
        .collect();
    // Stable: models without a time keep the provider's order, behind the others.
    models.sort_by_key(|model| Reverse(model.created));
    Ok(models)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_all_providers_are_read_newest_first() {
        let names = |text: &str| -> Vec<String> {
            parse(text.as_bytes()).unwrap().into_iter().map(|model| model.name).collect()
        };
        let openai = r#"{"object":"list","data":[{"id":"a","created":1},{"id":"b","created":3,"owned_by":"x"},
            {"id":"c","created":2}]}"#;
        assert_eq!(names(openai), ["b", "c", "a"]);
        let anthropic = r#"{"data":[{"type":"model","id":"old","created_at":"2025-01-01T00:00:00Z"},
            {"id":"new","created_at":"2026-01-01T00:00:00Z"}],"has_more":false}"#;
        assert_eq!(names(anthropic), ["new", "old"]);
        assert_eq!(names(r#"{"data":[{"id":"x"},{"id":"a"}]}"#), ["x", "a"]);
    }

    #[test]
    fn a_name_that_is_no_plain_text_is_left_out_and_other_bodies_are_refused() {
        let long = "x".repeat(MAX_NAME + 1);
        let text = format!(
            r#"{{"data":[{{"id":"a b"}},{{"id":"\u001b[2J"}},{{"id":""}},{{"id":"{long}"}},{{"id":"m"}}]}}"#
        );
        assert_eq!(parse(text.as_bytes()).unwrap(), [ListedModel { name: "m".to_owned(), created: None }]);
        for body in ["", "[]", "<html>", r#"{"data":{}}"#, r#"{"data":[{"name":"m"}]}"#] {
            assert_eq!(parse(body.as_bytes()), Err(ListingError::Malformed), "{body}");
        }
    }
}
