//! The in-process upstream that replays scripts.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use herma_evidence::file_reading::open_named;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::body::{Source, UpstreamBody};
use super::configured::Outgoing;
use super::problem::{BadUpstream, SendError};
use super::provider::Provider;
use super::scripted_more;
use super::steps::Steps;
use crate::dialect::{self, ApiError, MaximumKey};
use crate::door::{Door, dialect_of};
use crate::scripted::{Answer, Attempts, BadScript, Headers, MAX_BYTES, Scripted, Scripts, count_tokens};

/// The provider `scripted`.
pub(super) struct ScriptedUpstream {
    scripts: Scripts,
    attempts: Mutex<Attempts>,
    first_byte: Duration,
    idle: Duration,
}

impl Provider for ScriptedUpstream {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn answers(&self, _: Door) -> bool {
        true
    }

    fn maximum_key(&self, door: Door) -> Option<(MaximumKey, bool)> {
        match door {
            Door::Chat => Some((MaximumKey::MaxCompletionTokens, false)),
            Door::Responses => Some((MaximumKey::MaxOutputTokens, false)),
            Door::Completions | Door::Messages => Some((MaximumKey::MaxTokens, false)),
            Door::Embeddings | Door::CountTokens => None,
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
        let scripts = Scripts::new(scripts)
            .map_err(|same| BadUpstream::SameName { upstream: upstream.to_owned(), same })?;
        Ok(Self { scripts, attempts: Mutex::default(), first_byte, idle })
    }

    /// The models of the scripts.
    pub(super) fn models(&self) -> Vec<&str> {
        self.scripts.models()
    }

    /// Answers as the script says, in its time.
    pub(super) async fn send(&self, outgoing: &Outgoing) -> Result<Response<UpstreamBody>, SendError> {
        let (after, response) = match self.answer(outgoing) {
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
            return Err(SendError::FirstByteTimeout);
        }
        if !after.is_zero() {
            tokio::time::sleep(after).await;
        }
        Ok(response)
    }

    fn answer(&self, outgoing: &Outgoing) -> Answer {
        let dialect = dialect_of(outgoing.door);
        let asked = match dialect::read(dialect, &outgoing.body) {
            Ok(asked) => asked,
            Err(refusal) => return scripted_more::error(dialect, &ApiError::from(&refusal)),
        };
        match outgoing.door {
            Door::CountTokens => return scripted_more::tokens(count_tokens(&asked)),
            Door::Completions => return scripted_more::completion(&asked, outgoing.body.len()),
            Door::Embeddings => return scripted_more::embeddings(&asked, &outgoing.body),
            Door::Chat | Door::Responses | Door::Messages => {}
        }
        let run = Some(&*outgoing.run);
        let Some(scripted) = self.scripts.choose(run, &asked) else {
            return scripted_more::error(dialect, &no_script());
        };
        let attempt = {
            let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
            attempts.count(scripted, run, &asked)
        };
        scripted.answer_again(dialect, &asked, attempt)
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

fn no_script() -> ApiError {
    let message = "No script answers this request: none matches its run and the text of its conversation. \
                   Look at `match` in the scripts of this upstream.";
    ApiError::new(404, message).with_code("no_script")
}

fn header_map(headers: Headers) -> HeaderMap {
    let value = |(name, value)| Some((HeaderName::from_static(name), HeaderValue::try_from(value).ok()?));
    headers.into_iter().filter_map(value).collect()
}
