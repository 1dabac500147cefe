//! A request from its token to its response: authentication, limits, model, budget, upstream.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use herma_core::Digest;
use herma_core::model_call::Ended;
use herma_dialect::endpoint::{Endpoint, dialect_of};
use herma_dialect::{Outline, Refusal, outline_at};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use smallvec::SmallVec;

use super::connection::Connection;
use super::forward::{ChainRequest, UpstreamResponse, forward};
use super::headers;
use super::in_flight::{Cost, Ending, InFlightCall};
use super::reason::{Reason, UpstreamFailure};
use super::refused::Refused;
use super::response_body::{RelayedBody, ResponseBody};
use super::routes::origin_form;
use super::runs::Run;
use super::shared::Shared;
use crate::budget::{Ask, Scope};
use crate::grant::{AdmittedModel, Grant};

/// The upstream of the response, as `upstream/model`.
const X_UPSTREAM: HeaderName = HeaderName::from_static("x-herma-upstream");
/// The changes that herma made to the request.
const X_REWRITES: HeaderName = HeaderName::from_static("x-herma-rewrites");
/// The output maximum that herma inserted or lowered.
const X_MAX_OUTPUT: HeaderName = HeaderName::from_static("x-herma-max-output");

/// The longest model name that is kept. Truncating could leave a fragment of a secret that the redactor no longer
/// recognises.
const MAX_NAME_BYTES: usize = 256;

/// The largest error body of an upstream that is relayed.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// Serves a request to a model endpoint.
pub(super) async fn call(
    shared: &Arc<Shared>,
    connection: &Connection,
    endpoint: Endpoint,
    head: &Parts,
    body: Incoming,
) -> Response<ResponseBody> {
    let started = Instant::now();
    let tell = |refused: &Refused| {
        let (response, body) = refused.response(dialect_of(endpoint));
        response.map(|()| ResponseBody::Whole(body))
    };
    let run = match authenticate(shared, connection, &head.headers) {
        Ok(run) => run,
        Err(refused) => return tell(&refused),
    };
    let beta_query = origin_form(&head.uri).is_some_and(|(_, query)| query == Some("beta=true"));
    let body = match read_body(shared, &head.headers, body).await {
        Ok(body) => body,
        Err(refused) => {
            if let Some(mut in_flight) = InFlightCall::new(shared, run, endpoint, b"", started) {
                in_flight.refuse(&refused);
            }
            return tell(&refused);
        }
    };
    let Some(mut in_flight) = InFlightCall::new(shared, run, endpoint, &body, started) else {
        return tell(&Refused::UnknownToken);
    };
    match governed(&mut in_flight, &head.headers, beta_query, &body).await {
        Ok((answering, told)) => answer(in_flight, answering, told).await,
        Err(refused) => {
            in_flight.refuse(&refused);
            tell(&refused)
        }
    }
}

/// From the body to an upstream's response. The first step that refuses ends the call.
async fn governed(
    in_flight: &mut InFlightCall,
    headers: &HeaderMap,
    beta_query: bool,
    body: &Bytes,
) -> Result<(UpstreamResponse, Option<u64>), Refused> {
    let outline = outline_at(in_flight.endpoint, body)?;
    in_flight.asked = match outline.model.len() {
        0..=MAX_NAME_BYTES => outline.model.to_string(),
        bytes => format!("a name of {bytes} bytes"),
    };
    in_flight.stream = outline.stream;

    let grant = in_flight.run.grant();
    let model = admit(&in_flight.run, &grant, &outline)?;
    let upstreams = in_flight.shared.upstreams();
    // Every upstream of the chain has to take the key.
    let takes = |key: &str| {
        model.chain.iter().all(|link| upstreams.get(&*link.upstream).is_some_and(|up| up.takes_key(key)))
    };
    if let Some(key) = outline.unlisted.iter().find(|key| !takes(key)) {
        let path = key.chars().filter(|c| !c.is_control()).take(MAX_NAME_BYTES).collect();
        return Err(Refusal::UnknownKey { path }.into());
    }
    let beyond = outline.reaches_out.iter().find(|found| !grant.reaches.contains(&found.reach));
    if let Some(found) = beyond {
        return Err(Refusal::ReachesOut(found.clone()).into());
    }

    let scopes = in_flight.shared.scopes(&in_flight.run, &grant).await;
    let scopes = scopes.map_err(|_| Refused::StoreUnavailable)?;
    let scopes: SmallVec<[Scope; 3]> = scopes.into_iter().flatten().collect();
    let ask = most(in_flight.endpoint, model, &outline, body.len());
    in_flight.expects_output = ask.output > 0;
    let reserved = match in_flight.shared.reserve(&scopes, ask).await {
        Ok(reserved) => reserved,
        Err(exhausted) => {
            in_flight.run.note_budget(&exhausted.to_string());
            return Err(Refused::budget(&exhausted, &in_flight.run.name, &ask));
        }
    };
    in_flight.open(reserved.reservation)?;

    let output = (ask.output > 0).then_some(reserved.output);
    let question =
        ChainRequest { body, outline: &outline, headers, beta_query, model, output, scopes: &scopes, ask };
    let answering = forward(in_flight, &question).await?;
    let told = answering.output.filter(|output| outline.max_output.is_none_or(|asked| asked > *output));
    Ok((answering, told))
}

pub(super) fn authenticate(
    shared: &Shared,
    connection: &Connection,
    headers: &HeaderMap,
) -> Result<Arc<Run>, Refused> {
    let run = headers::token(headers).and_then(|token| shared.runs.holder(token));
    let Some(run) = run else {
        shared.metrics.unauthenticated();
        return Err(Refused::UnknownToken);
    };
    connection.belongs_to(&run);
    Ok(run)
}

async fn read_body(shared: &Shared, headers: &HeaderMap, body: Incoming) -> Result<Bytes, Refused> {
    let settings = shared.settings();
    let limits = &settings.limits;
    let mut kinds = headers::all(headers, &CONTENT_TYPE);
    let is_json = kinds.next().is_some_and(|value| {
        let kind = value.split(|byte| *byte == b';').next().unwrap_or_default();
        kind.trim_ascii().eq_ignore_ascii_case(b"application/json")
    });
    let is_plain = headers::all(headers, &CONTENT_ENCODING).all(|value| value == b"identity");
    if !is_json || !is_plain || kinds.next().is_some() {
        return Err(Refused::UnsupportedMediaType);
    }
    // The stream has refused every other framing: the length is exact.
    let size = body.size_hint().exact().unwrap_or(u64::MAX);
    if size > limits.max_body {
        return Err(Refusal::TooLarge { size, limit: limits.max_body }.into());
    }
    match tokio::time::timeout(limits.head, body.collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err(Refused::BodyCut),
        Err(_) => Err(Refused::BodyTimeout),
    }
}

/// The admitted model.
fn admit<'g>(run: &Run, grant: &'g Grant, outline: &Outline<'_>) -> Result<&'g AdmittedModel, Refused> {
    let Some(model) = grant.models.get(&*outline.model) else {
        run.note_model(&outline.model);
        return Err(Refused::model(&outline.model));
    };
    Ok(model)
}

/// The most that a call can cost at any upstream of the chain: each byte of input as a token, and the maximum of output.
fn most(endpoint: Endpoint, model: &AdmittedModel, outline: &Outline<'_>, bytes: usize) -> Ask {
    let has_output = !matches!(endpoint, Endpoint::CountTokens | Endpoint::Embeddings);
    let output = outline.max_output.unwrap_or(model.default_output).min(model.ceiling);
    let price =
        model.chain.iter().map(|link| link.price).reduce(|one, other| Some(one?.dearest(other?))).flatten();
    let input = if endpoint == Endpoint::CountTokens { 0 } else { bytes as u64 };
    Ask {
        input,
        output: if has_output { output } else { 0 },
        least_output: u64::from(has_output),
        choices: outline.choices.max(1),
        price,
    }
}

/// The response that the client gets.
async fn answer(
    mut in_flight: Box<InFlightCall>,
    answering: UpstreamResponse,
    told: Option<u64>,
) -> Response<ResponseBody> {
    let UpstreamResponse { upstream, model, response, hide_usage, output: _ } = answering;
    let status = response.status();
    let (head, body) = response.into_parts();
    let is_stream = head.headers.get(CONTENT_TYPE).is_some_and(|kind| {
        kind.as_bytes().get(..17).is_some_and(|start| start.eq_ignore_ascii_case(b"text/event-stream"))
    });
    // A compressed body cannot be searched for secrets.
    let is_packed = head.headers.contains_key(CONTENT_ENCODING);
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = headers::to_client(&head.headers, |value| upstream.is_told_by(value));
    let headers = response.headers_mut();
    let mut tell = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    };
    tell(X_UPSTREAM, format!("{}/{model}", upstream.name()));
    if !in_flight.rewrites.is_empty() {
        tell(X_REWRITES, in_flight.rewrites.join(","));
    }
    if let Some(output) = told {
        tell(X_MAX_OUTPUT, output.to_string());
    }
    if status.is_success() {
        let relayed = if is_stream {
            RelayedBody::stream(in_flight, body, status.as_u16(), hide_usage)
        } else {
            RelayedBody::whole(in_flight, body, status.as_u16())
        };
        return response.map(|()| ResponseBody::Relayed(Box::new(relayed)));
    }
    let dialect = dialect_of(in_flight.endpoint);
    let said = Limited::new(body, MAX_ERROR_BYTES).collect().await.map(http_body_util::Collected::to_bytes);
    let failure = UpstreamFailure::of(status.as_u16());
    let cost = match failure {
        UpstreamFailure::ServerError => Cost::Unknown,
        UpstreamFailure::RefusedKey | UpstreamFailure::Redirects | UpstreamFailure::Other => Cost::NoTokens,
    };
    let mut end = |status: u16, body: &[u8]| {
        in_flight.end(Ending {
            ended: Ended::Failed,
            status,
            reason: Some(Reason::UpstreamStatus(failure)),
            cost,
            response: Some(Digest::of(body)),
            answered: None,
            stop: None,
            tool_calls: 0,
        });
    };
    // Only the router knows its keys and URLs: these errors are its own.
    let is_own = matches!(failure, UpstreamFailure::RefusedKey | UpstreamFailure::Redirects);
    if is_own || said.is_err() || is_packed {
        let (upstream, status) = (upstream.name().to_owned(), status.as_u16());
        let refused = Refused::UpstreamStatus { upstream, status, failure };
        let (told, body) = refused.response(dialect);
        end(refused.status(), &body);
        return told.map(|()| ResponseBody::Whole(body));
    }
    let said = said.unwrap_or_default();
    let said = upstream.scrub(&said).map_or(said, Bytes::from);
    end(status.as_u16(), &said);
    response.map(|()| ResponseBody::Whole(said))
}
