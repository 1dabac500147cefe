//! The way of a request: who asks, how much, which model, within which budget, answered by whom.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response};
use http_body_util::{BodyExt as _, Limited};
use smallvec::SmallVec;

use super::answer::{Answer, Passing};
use super::connection::Connection;
use super::flight::{Cost, Ending, Flight};
use super::forward::{Answering, Question, forward};
use super::head::Head;
use super::headers::{self, Known};
use super::refused::Refused;
use super::runs::Run;
use super::shared::Shared;
use super::talk::Incoming;
use crate::budget::{Ask, Scope};
use crate::dialect::{Outline, Refusal, outline_at};
use crate::door::{Door, dialect_of};
use crate::grant::{AdmittedModel, Grant};
use herma_core::Digest;
use herma_core::model_call::Ended;

/// Who answered, as `upstream/model`.
const X_UPSTREAM: HeaderName = HeaderName::from_static("x-herma-upstream");
/// What herma changed in the request.
const X_REWRITES: HeaderName = HeaderName::from_static("x-herma-rewrites");
/// The output maximum that herma inserted or lowered.
const X_MAX_OUTPUT: HeaderName = HeaderName::from_static("x-herma-max-output");

/// The longest name of a model that is kept. In a part of a longer one nobody would know a part of a secret again.
const LONGEST_NAME: usize = 256;

/// The largest error of an upstream that is passed on.
const MOST_ERROR: usize = 1 << 20;

/// Answers a request at a door.
pub(super) async fn call(
    shared: &Arc<Shared>,
    connection: &Connection,
    door: Door,
    head: &Head,
    body: Incoming<'_>,
) -> Response<Answer> {
    let started = Instant::now();
    let tell = |refused: Refused| {
        let (response, body) = refused.body(dialect_of(door));
        response.map(|()| Answer::Whole(body))
    };
    let run = match authenticate(shared, connection, &head.headers) {
        Ok(run) => run,
        Err(refused) => return tell(refused),
    };
    let beta_query = head.place().is_some_and(|(_, query)| query == Some("beta=true"));
    let body = match read_body(shared, head, body).await {
        Ok(body) => body,
        Err(refused) => {
            if let Some(mut flight) = Flight::new(shared, run, door, b"", started) {
                flight.refuse(&refused);
            }
            return tell(refused);
        }
    };
    let Some(mut flight) = Flight::new(shared, run, door, &body, started) else {
        return tell(unknown_token());
    };
    match governed(&mut flight, &head.headers, beta_query, &body).await {
        Ok((answering, told)) => answer(flight, answering, told).await,
        Err(refused) => {
            flight.refuse(&refused);
            tell(refused)
        }
    }
}

/// From the body to an upstream's answer; the first step that says no ends it.
async fn governed(
    flight: &mut Flight,
    headers: &Known,
    beta_query: bool,
    body: &Bytes,
) -> Result<(Answering, Option<u64>), Refused> {
    let outline = outline_at(flight.door, body).map_err(|refusal| Refused::from(&refusal))?;
    flight.asked = match outline.model.len() {
        0..=LONGEST_NAME => outline.model.to_string(),
        bytes => format!("a name of {bytes} bytes"),
    };
    flight.stream = outline.stream;

    let grant = flight.run.grant();
    let model = admit(&flight.run, &grant, &outline)?;
    let upstreams = flight.shared.upstreams();
    // Whichever of the chain answers gets the body as it is.
    let takes = |key: &str| {
        model.chain.iter().all(|link| upstreams.get(&*link.upstream).is_some_and(|up| up.takes_key(key)))
    };
    if let Some(key) = outline.unlisted.iter().find(|key| !takes(key)) {
        let path = key.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
        return Err(Refused::from(&Refusal::UnknownKey { path }));
    }

    let scopes = flight.shared.scopes(&flight.run, &grant).await.map_err(|_| {
        let message = "what others spent of the budget cannot be learned, so the call is not made; the operator has to \
                       look at the router's store";
        Refused::new(503, "budget_unknown", message)
    })?;
    let scopes: SmallVec<[Scope; 3]> = scopes.into_iter().flatten().collect();
    let ask = most(flight.door, model, &outline, body.len());
    flight.expects_output = ask.output > 0;
    let reserved = match flight.shared.reserve(&scopes, ask).await {
        Ok(reserved) => reserved,
        Err(exhausted) => {
            flight.run.note_budget(&exhausted.to_string());
            return Err(Refused::budget(&exhausted, &flight.run.name));
        }
    };
    flight.open(reserved.reservation)?;

    let output = (ask.output > 0).then_some(reserved.output);
    let question =
        Question { body, outline: &outline, headers, beta_query, model, output, scopes: &scopes, ask };
    let answering = forward(flight, &question).await?;
    let told = answering.output.filter(|output| outline.max_output.is_none_or(|asked| asked > *output));
    Ok((answering, told))
}

pub(super) fn authenticate(
    shared: &Shared,
    connection: &Connection,
    headers: &Known,
) -> Result<Arc<Run>, Refused> {
    let run = headers::token(headers).and_then(|token| shared.runs.holder(token));
    let Some(run) = run else {
        shared.metrics.unauthenticated();
        return Err(unknown_token());
    };
    connection.belongs_to(&run);
    Ok(run)
}

fn unknown_token() -> Refused {
    let message = "the token is missing, not known, or its run has ended; send the run's token as a bearer token or as \
                   x-api-key";
    Refused::new(401, "invalid_api_key", message)
}

async fn read_body(shared: &Shared, head: &Head, body: Incoming<'_>) -> Result<Bytes, Refused> {
    let headers = &head.headers;
    let settings = shared.settings();
    let limits = &settings.limits;
    let mut kinds = headers.all(&CONTENT_TYPE);
    let is_json = kinds.next().is_some_and(|value| {
        let kind = value.split(|byte| *byte == b';').next().unwrap_or_default();
        kind.trim_ascii().eq_ignore_ascii_case(b"application/json")
    });
    let is_plain = headers.all(&CONTENT_ENCODING).all(|value| value == b"identity");
    if !is_json || !is_plain || kinds.next().is_some() {
        let message =
            "send the body as plain JSON, with `content-type: application/json` and no `content-encoding`";
        return Err(Refused::new(415, "unsupported_media_type", message));
    }
    if head.length > limits.max_body {
        return Err(Refused::from(&Refusal::TooLarge { size: head.length, limit: limits.max_body }));
    }
    // What is nearly always so: all of it came with the head.
    if let Some(body) = body.now() {
        return Ok(body);
    }
    match tokio::time::timeout(limits.head, body.all()).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(Refused::new(400, "bad_request", "the body broke off before its announced length")),
        Err(_) => Err(Refused::new(408, "too_slow", "the body did not come in time; send it faster")),
    }
}

/// The model that may be asked, if nothing in the request goes beyond it.
fn admit<'g>(run: &Run, grant: &'g Grant, outline: &Outline<'_>) -> Result<&'g AdmittedModel, Refused> {
    let Some(model) = grant.models.get(&*outline.model) else {
        run.note_model(&outline.model);
        return Err(Refused::model(&outline.model));
    };
    let beyond = outline.reaches_out.iter().find(|found| !grant.reaches.contains(&found.reach));
    match beyond {
        Some(found) => Err(Refused::from(&Refusal::ReachesOut(found.clone()))),
        None => Ok(model),
    }
}

/// The most that a call can cost: each byte of the input a token, and the output's maximum. Whoever of the chain
/// answers, it costs no more.
fn most(door: Door, model: &AdmittedModel, outline: &Outline<'_>, bytes: usize) -> Ask {
    let has_output = !matches!(door, Door::CountTokens | Door::Embeddings);
    let output = outline.max_output.unwrap_or(model.default_output).min(model.ceiling);
    let price =
        model.chain.iter().map(|link| link.price).reduce(|one, other| Some(one?.dearest(other?))).flatten();
    let input = if door == Door::CountTokens { 0 } else { bytes as u64 };
    Ask {
        input,
        output: if has_output { output } else { 0 },
        least_output: u64::from(has_output),
        choices: outline.choices.max(1),
        price,
    }
}

/// The answer as the client gets it.
async fn answer(mut flight: Box<Flight>, answering: Answering, told: Option<u64>) -> Response<Answer> {
    let Answering { upstream, model, response, hide_usage, output: _ } = answering;
    let status = response.status();
    let (head, body) = response.into_parts();
    let is_stream = head.headers.get(CONTENT_TYPE).is_some_and(|kind| {
        kind.as_bytes().get(..17).is_some_and(|start| start.eq_ignore_ascii_case(b"text/event-stream"))
    });
    // What is packed cannot be searched for what must not get out.
    let is_packed = head.headers.contains_key(CONTENT_ENCODING);
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = headers::to_client(head.headers, |value| upstream.is_told_by(value));
    let headers = response.headers_mut();
    let mut tell = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    };
    tell(X_UPSTREAM, format!("{}/{model}", upstream.name()));
    if !flight.rewrites.is_empty() {
        tell(X_REWRITES, flight.rewrites.join(","));
    }
    if let Some(output) = told {
        tell(X_MAX_OUTPUT, output.to_string());
    }
    if status.is_success() {
        let passing = if is_stream {
            Passing::stream(flight, body, status.as_u16(), hide_usage)
        } else {
            Passing::whole(flight, body, status.as_u16())
        };
        return response.map(|()| Answer::Passing(Box::new(passing)));
    }
    let dialect = dialect_of(flight.door);
    let said = Limited::new(body, MOST_ERROR).collect().await.map(http_body_util::Collected::to_bytes);
    let (cost, reason) = match status.as_u16() {
        500.. if !matches!(status.as_u16(), 503 | 529) => (Cost::Unknown, "server_error"),
        401 | 403 => (Cost::NoTokens, "upstream_refused_key"),
        300..=399 => (Cost::NoTokens, "upstream_redirects"),
        _ => (Cost::NoTokens, "upstream_error"),
    };
    let mut end = |status: u16, body: &[u8]| {
        flight.end(Ending {
            ended: Ended::Failed,
            status,
            reason: Some(reason),
            cost,
            response: Some(Digest::of(body)),
            answered: None,
            stop: None,
            tool_calls: 0,
        });
    };
    let name = upstream.name();
    let own = match reason {
        "upstream_refused_key" => Some(format!(
            "the upstream `{name}` refused the router's key (status {}); the operator has to look at it",
            status.as_u16()
        )),
        "upstream_redirects" => {
            Some(format!("the upstream `{name}` sends elsewhere, where herma does not follow"))
        }
        _ if said.is_err() || is_packed => {
            Some(format!("the upstream `{name}` failed with status {}", status.as_u16()))
        }
        _ => None,
    };
    if let Some(message) = own {
        let (told, body) = Refused::new(502, reason, message).body(dialect);
        end(502, &body);
        return told.map(|()| Answer::Whole(body));
    }
    let said = said.unwrap_or_default();
    let said = upstream.scrub(&said).map_or(said, Bytes::from);
    end(status.as_u16(), &said);
    response.map(|()| Answer::Whole(said))
}
