//! Sends a call to the upstreams of a chain, one after the other, until one responds.
//!
//! The next upstream is tried only where the one before cannot have processed the call: it refused it (429, 503, 529) or
//! was not reached. After a 500, or a connection that broke before there was a status, that is unknown; the next one is
//! then tried only where the operator allows it (`retry_ambiguous`), and the first is charged at the most. After a status
//! no other upstream is tried.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use herma_dialect::endpoint::Endpoint;
use herma_dialect::{Outline, OutputBound, Rewrite};
use http::{HeaderMap, Response, StatusCode};

use super::headers;
use super::in_flight::InFlightCall;
use super::reason::Outcome;
use super::refused::Refused;
use super::shared::Upstreams;
use crate::budget::{Ask, Scope};
use crate::grant::{AdmittedModel, Link};
use crate::upstream::{Ambiguous, Outgoing, SendError, Upstream, UpstreamBody, retry_after};

/// A call to a chain of upstreams.
pub(super) struct ChainRequest<'a> {
    pub(super) body: &'a Bytes,
    pub(super) outline: &'a Outline<'a>,
    /// The client's headers.
    pub(super) headers: &'a HeaderMap,
    pub(super) beta_query: bool,
    pub(super) model: &'a AdmittedModel,
    /// The most tokens of output.
    pub(super) output: Option<u64>,
    /// The budgets from which another attempt is reserved.
    pub(super) scopes: &'a [Scope],
    pub(super) ask: Ask,
}

/// The response of an upstream.
pub(super) struct UpstreamResponse {
    pub(super) upstream: Arc<Upstream>,
    pub(super) model: Arc<str>,
    pub(super) response: Response<UpstreamBody>,
    /// Whether the client must not see the chunk with the usage, which it did not ask for.
    pub(super) hide_usage: bool,
    /// The most tokens of output in the forwarded request.
    pub(super) output: Option<u64>,
}

/// The outcome of one attempt.
enum AttemptOutcome {
    Response(Response<UpstreamBody>),
    /// The upstream cannot have processed the call.
    Refused {
        outcome: Outcome,
        response: Option<Response<UpstreamBody>>,
    },
    /// The upstream failed, and may have processed the call.
    ServerError(Response<UpstreamBody>),
    /// The upstream gave no response, and may have processed the call.
    NoResponse(Ambiguous),
}

/// Why no upstream was tried, or none was reached.
#[derive(Default)]
struct Untried {
    is_any_tried: bool,
    /// When the first open circuit closes.
    retry_after: Option<Duration>,
}

/// Tries the chain.
pub(super) async fn forward(
    in_flight: &mut InFlightCall,
    request: &ChainRequest<'_>,
) -> Result<UpstreamResponse, Refused> {
    let upstreams = in_flight.shared.upstreams();
    let mut untried = Untried::default();
    let mut output = request.output;
    let links = &request.model.chain;
    for (place, link) in links.iter().enumerate() {
        let Some(upstream) = available(in_flight, &upstreams, link, &mut untried) else { continue };
        let (outgoing, hide_usage) = outgoing(in_flight, request, output, upstream, link);
        in_flight.asking(link);
        let outcome = attempt(upstream, outgoing).await;
        let has_next = links[place + 1..].iter().any(|next| can_try(&upstreams, next, in_flight.endpoint));
        let may_retry = has_next && upstream.retry_ambiguous();
        let (outcome, response) = match outcome {
            AttemptOutcome::Response(response) => (Outcome::Answered, response),
            AttemptOutcome::Refused { outcome, response: Some(response) } if !has_next => (outcome, response),
            AttemptOutcome::Refused { outcome, response } => {
                in_flight.failed(outcome, response.map(|response| response.status().as_u16()));
                continue;
            }
            AttemptOutcome::ServerError(response) if may_retry => {
                let status = Some(response.status().as_u16());
                let reserved = charge_and_reserve(in_flight, request, Outcome::ServerError, status).await?;
                // Less may be left than before.
                output = output.map(|output| output.min(reserved));
                continue;
            }
            AttemptOutcome::ServerError(response) => (Outcome::ServerError, response),
            AttemptOutcome::NoResponse(why) if may_retry => {
                let reserved = charge_and_reserve(in_flight, request, Outcome::NoResponse(why), None).await?;
                output = output.map(|output| output.min(reserved));
                continue;
            }
            AttemptOutcome::NoResponse(why) => return Err(no_response(in_flight, upstream.name(), why)),
        };
        in_flight.attempt_ended(outcome, Some(response.status().as_u16()));
        let (upstream, model) = (upstream.clone(), link.model.clone());
        return Ok(UpstreamResponse { upstream, model, response, hide_usage, output });
    }
    Err(unavailable(links, &untried))
}

/// The upstream of a link, if it can be tried. A skipped one is noted.
fn available<'u>(
    in_flight: &mut InFlightCall,
    upstreams: &'u Upstreams,
    link: &Link,
    untried: &mut Untried,
) -> Option<&'u Arc<Upstream>> {
    let upstream = upstreams.get(&*link.upstream).filter(|upstream| upstream.answers(in_flight.endpoint));
    let Some(upstream) = upstream else {
        in_flight.skipped(link, Outcome::UnsupportedEndpoint);
        return None;
    };
    if let Some(wait) = upstream.circuit_breaker().retry_after(Instant::now()) {
        untried.retry_after = Some(untried.retry_after.map_or(wait, |soonest| soonest.min(wait)));
        in_flight.skipped(link, Outcome::CircuitOpen);
        return None;
    }
    untried.is_any_tried = true;
    Some(upstream)
}

fn can_try(upstreams: &Upstreams, link: &Link, endpoint: Endpoint) -> bool {
    upstreams.get(&*link.upstream).is_some_and(|upstream| {
        upstream.answers(endpoint) && upstream.circuit_breaker().retry_after(Instant::now()).is_none()
    })
}

/// Charges an ambiguous attempt at the most and reserves the next one. Gives the output that is reserved for it.
async fn charge_and_reserve(
    in_flight: &mut InFlightCall,
    request: &ChainRequest<'_>,
    outcome: Outcome,
    status: Option<u16>,
) -> Result<u64, Refused> {
    match in_flight.shared.reserve(request.scopes, request.ask).await {
        Ok(next) => {
            in_flight.lost(outcome, status, next.reservation)?;
            Ok(next.output)
        }
        Err(exhausted) => {
            let refused = Refused::budget(&exhausted, &in_flight.run.name, &request.ask);
            in_flight.run.note_budget(&exhausted.to_string());
            in_flight.attempt_ended(outcome, status);
            in_flight.unknown(&refused);
            Err(refused)
        }
    }
}

/// Ends a call whose upstream gave no response after the request may have left.
fn no_response(in_flight: &mut InFlightCall, upstream: &str, why: Ambiguous) -> Refused {
    in_flight.attempt_ended(Outcome::NoResponse(why), None);
    let refused = Refused::NoResponse { upstream: upstream.to_owned(), why };
    in_flight.unknown(&refused);
    refused
}

fn unavailable(links: &[Link], untried: &Untried) -> Refused {
    let names: Vec<&str> = links.iter().map(|link| &*link.upstream).collect();
    let upstreams = names.join("`, `");
    match untried.retry_after {
        retry_after if untried.is_any_tried => Refused::Unreachable { upstreams, retry_after },
        Some(retry_after) => Refused::CircuitsOpen { upstreams, retry_after },
        None => Refused::UnsupportedEndpoint { upstreams },
    }
}

/// The request that this upstream gets, and whether the usage has to be hidden from the client.
fn outgoing(
    in_flight: &mut InFlightCall,
    request: &ChainRequest<'_>,
    output: Option<u64>,
    upstream: &Upstream,
    link: &Link,
) -> (Outgoing, bool) {
    let ChainRequest { body, outline, .. } = request;
    let endpoint = in_flight.endpoint;
    let bound = output.zip(upstream.maximum_key(endpoint));
    let add_usage = endpoint == Endpoint::Chat && outline.stream && outline.include_usage != Some(true);
    let rewrite = Rewrite {
        model: Some(&link.model),
        max_output: bound.map(|(at_most, (key, beside_others))| OutputBound { at_most, key, beside_others }),
        include_usage: add_usage,
        not_stored: endpoint == Endpoint::Responses,
    };
    let splices = outline.splices(&rewrite);
    let body = if splices.is_empty() { (*body).clone() } else { Bytes::from(outline.spliced(&splices)) };
    let lowered = bound.is_some_and(|(at_most, _)| outline.max_output.is_none_or(|asked| asked > at_most));
    let rewrites = [
        ("model", *outline.model != *link.model),
        ("max_output", lowered),
        ("include_usage", add_usage),
        ("not_stored", rewrite.not_stored && outline.store.is_none()),
    ];
    in_flight.rewrites = rewrites.into_iter().filter_map(|(name, done)| done.then_some(name)).collect();
    let outgoing = Outgoing {
        endpoint,
        beta_query: request.beta_query,
        headers: headers::to_upstream(request.headers),
        body,
        run: in_flight.run.name.clone(),
    };
    (outgoing, add_usage)
}

async fn attempt(upstream: &Upstream, outgoing: Outgoing) -> AttemptOutcome {
    let breaker = upstream.circuit_breaker();
    let response = match upstream.send(outgoing).await {
        Ok(response) => response,
        Err(error) => {
            breaker.record_failure(Instant::now(), None);
            return match error {
                SendError::NotReached(why) => {
                    AttemptOutcome::Refused { outcome: Outcome::NotReached(why), response: None }
                }
                SendError::Ambiguous(why) => AttemptOutcome::NoResponse(why),
            };
        }
    };
    let status = response.status();
    let is_overloaded = matches!(status.as_u16(), 503 | 529);
    let is_limited = status == StatusCode::TOO_MANY_REQUESTS;
    if !is_overloaded && !is_limited && !status.is_informational() && !status.is_server_error() {
        breaker.record_success();
        return AttemptOutcome::Response(response);
    }
    breaker.record_failure(Instant::now(), retry_after(response.headers()));
    if is_limited {
        return AttemptOutcome::Refused { outcome: Outcome::TooManyRequests, response: Some(response) };
    }
    if is_overloaded {
        return AttemptOutcome::Refused { outcome: Outcome::Overloaded, response: Some(response) };
    }
    if status.is_informational() {
        // Another protocol, which no request of the router asks for.
        return AttemptOutcome::NoResponse(Ambiguous::NotHttp);
    }
    AttemptOutcome::ServerError(response)
}
