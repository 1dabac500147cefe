//! The in-process upstream that replays scripts.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use herma_dialect::MaximumKey;
use herma_dialect::endpoint::Endpoint;
use herma_evidence::file_reading::open_named;
use herma_scripted::{Answer, BadScript, Headers, MAX_BYTES, Replay, Scripted};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::body::{Source, UpstreamBody};
use super::configured::Outgoing;
use super::problem::{Ambiguous, BadUpstream, SendError};
use super::provider::Provider;
use super::steps::Steps;

/// The provider `scripted`.
pub(super) struct ScriptedUpstream {
    replay: Replay,
    first_byte: Duration,
    idle: Duration,
}

impl Provider for ScriptedUpstream {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn answers(&self, _: Endpoint) -> bool {
        true
    }

    fn maximum_key(&self, endpoint: Endpoint) -> Option<(MaximumKey, bool)> {
        match endpoint {
            Endpoint::Chat => Some((MaximumKey::MaxCompletionTokens, false)),
            Endpoint::Responses => Some((MaximumKey::MaxOutputTokens, false)),
            Endpoint::Completions | Endpoint::Messages => Some((MaximumKey::MaxTokens, false)),
            Endpoint::Embeddings | Endpoint::CountTokens => None,
        }
    }
}

impl ScriptedUpstream {
    /// Reads the scripts.
    pub(super) fn read(
        upstream: &str,
        files: &[PathBuf],
        (first_byte, idle): (Duration, Duration),
    ) -> Result<Self, BadUpstream> {
        let mut scripts = Vec::new();
        for file in files {
            let bytes = bytes_of(file).map_err(|error| BadUpstream::ScriptFile {
                upstream: upstream.to_owned(),
                file: file.clone(),
                problem: problem(error.kind()),
            })?;
            let bad = |bad: BadScript| BadUpstream::Script { file: file.clone(), bad };
            scripts.push(Scripted::parse(&bytes).map_err(bad)?);
        }
        let replay = Replay::new(scripts)
            .map_err(|same| BadUpstream::SameName { upstream: upstream.to_owned(), same })?;
        Ok(Self { replay, first_byte, idle })
    }

    /// The models of the scripts.
    pub(super) fn models(&self) -> Vec<&str> {
        self.replay.models()
    }

    /// Answers as the script says, in its time.
    pub(super) async fn send(&self, outgoing: &Outgoing) -> Result<Response<UpstreamBody>, SendError> {
        let (after, response) =
            match self.replay.answer(outgoing.endpoint, Some(&outgoing.run), &outgoing.body) {
                Answer::Error { status, headers, body, after } => {
                    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                    (after, self.response(status, headers, Steps::whole(body)))
                }
                Answer::Whole { headers, body, after } => {
                    (after, self.response(StatusCode::OK, headers, Steps::whole(body)))
                }
                Answer::Stream { headers, first_byte_after, steps } => {
                    (first_byte_after, self.response(StatusCode::OK, headers, Steps::new(steps)))
                }
            };
        let after = after.duration();
        if after >= self.first_byte {
            tokio::time::sleep(self.first_byte).await;
            return Err(SendError::Ambiguous(Ambiguous::FirstByteTimeout));
        }
        if !after.is_zero() {
            tokio::time::sleep(after).await;
        }
        Ok(response)
    }

    fn response(&self, status: StatusCode, headers: Headers, steps: Steps) -> Response<UpstreamBody> {
        let mut response = Response::new(UpstreamBody::new(Source::Scripted(steps), self.idle));
        *response.status_mut() = status;
        *response.headers_mut() = header_map(headers);
        response
    }
}

/// The bytes of a file, up to one more than a script may have.
fn bytes_of(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_named(file)?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn problem(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::NotFound => "is not there",
        io::ErrorKind::PermissionDenied => "may not be read by herma",
        io::ErrorKind::IsADirectory => "is a directory; name the files in it",
        _ => "cannot be read",
    }
}

fn header_map(headers: Headers) -> HeaderMap {
    let value = |(name, value)| Some((HeaderName::from_static(name), HeaderValue::try_from(value).ok()?));
    headers.into_iter().filter_map(value).collect()
}
