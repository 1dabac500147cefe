//! Asks the upstreams of a chain, one after the other, until one answers.
//!
//! The next one is asked only where the one before cannot have worked on the call: it refused it (429, 503, 529) or was
//! not reached. After a 500, or a connection that broke before there was a status, nobody knows; then the next one is asked
//! only if the operator said so (`retry_ambiguous`), and the first is charged at the most. After a status nothing is asked
//! again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Response, StatusCode};

use super::flight::Flight;
use super::headers::{self, Known};
use super::refused::Refused;
use crate::budget::{Ask, Scope};
use crate::dialect::{Outline, OutputBound, Rewrite};
use crate::door::Door;
use crate::grant::{AdmittedModel, Link};
use crate::upstream::{Outgoing, SendError, Upstream, UpstreamBody, retry_after};

/// What is asked of whichever upstream answers.
pub(super) struct Question<'a> {
    pub(super) body: &'a Bytes,
    pub(super) outline: &'a Outline<'a>,
    /// The client's.
    pub(super) headers: &'a Known,
    pub(super) beta_query: bool,
    pub(super) model: &'a AdmittedModel,
    /// The most tokens of output.
    pub(super) output: Option<u64>,
    /// What an attempt is reserved from, where another one has to be.
    pub(super) scopes: &'a [Scope],
    pub(super) ask: Ask,
}

/// An upstream that answered.
pub(super) struct Answering {
    pub(super) upstream: Arc<Upstream>,
    pub(super) model: Arc<str>,
    pub(super) response: Response<UpstreamBody>,
    /// Whether the client must not see the chunk with the usage, which it did not ask for.
    pub(super) hide_usage: bool,
    /// The most tokens of output that it was asked for.
    pub(super) output: Option<u64>,
}

/// What an upstream gave.
enum Gave {
    Answer(Response<UpstreamBody>),
    /// It said no before it worked on the call.
    No {
        why: &'static str,
        response: Option<Response<UpstreamBody>>,
    },
    /// Nobody knows whether it worked on the call.
    Unknown {
        why: &'static str,
        response: Option<Response<UpstreamBody>>,
    },
}

/// Asks the chain.
pub(super) async fn forward(flight: &mut Flight, question: &Question<'_>) -> Result<Answering, Refused> {
    let upstreams = flight.shared.upstreams();
    let mut soonest: Option<Duration> = None;
    let mut asked_one = false;
    let mut output = question.output;
    let links = &question.model.chain;
    for (place, link) in links.iter().enumerate() {
        let name = &*link.upstream;
        let Some(upstream) = upstreams.get(name).filter(|upstream| upstream.answers(flight.door)) else {
            flight.skipped(link, "no_such_door");
            continue;
        };
        if let Some(wait) = upstream.rest().resting(Instant::now()) {
            soonest = Some(soonest.map_or(wait, |soonest| soonest.min(wait)));
            flight.skipped(link, "resting");
            continue;
        }
        asked_one = true;
        let (outgoing, hide_usage) = outgoing(flight, question, output, upstream, link);
        flight.asking(link);
        let gave = ask(upstream, outgoing).await;
        let answering = |response| Answering {
            upstream: upstream.clone(),
            model: link.model.clone(),
            response,
            hide_usage,
            output,
        };
        let can_answer = |next: &Link| {
            upstreams.get(&*next.upstream).is_some_and(|next| {
                next.answers(flight.door) && next.rest().resting(Instant::now()).is_none()
            })
        };
        let more_to_ask = links[place + 1..].iter().any(can_answer);
        match gave {
            Gave::Answer(response) => {
                flight.came_of_it("answered", Some(response.status().as_u16()));
                return Ok(answering(response));
            }
            Gave::No { why, response: Some(response) } if !more_to_ask => {
                flight.came_of_it(why, Some(response.status().as_u16()));
                return Ok(answering(response));
            }
            Gave::No { why, response } => {
                flight.failed(why, response.map(|response| response.status().as_u16()));
            }
            Gave::Unknown { why, response } if more_to_ask && upstream.retry_ambiguous() => {
                let status = response.map(|response| response.status().as_u16());
                let next = flight.shared.reserve(question.scopes, question.ask).await;
                match next {
                    Ok(next) => {
                        // What is left may be less than it was.
                        output = output.map(|output| output.min(next.output));
                        flight.lost(why, status, next.reservation)?;
                    }
                    Err(exhausted) => {
                        let refused = Refused::budget(&exhausted, &flight.run.name);
                        flight.run.note_budget(&exhausted.to_string());
                        flight.came_of_it(why, status);
                        flight.unknown(&refused);
                        return Err(refused);
                    }
                }
            }
            Gave::Unknown { why, response: Some(response) } => {
                flight.came_of_it(why, Some(response.status().as_u16()));
                return Ok(answering(response));
            }
            Gave::Unknown { why, response: None } => {
                flight.came_of_it(why, None);
                let refused = no_answer(name, why);
                flight.unknown(&refused);
                return Err(refused);
            }
        }
    }
    Err(nobody(links, asked_one, soonest))
}

/// The upstream may have worked on the call, so another upstream is not tried.
fn no_answer(upstream: &str, why: &'static str) -> Refused {
    let status = if why == "first_byte_timeout" { 504 } else { 502 };
    let message = format!(
        "the upstream `{upstream}` gave no answer ({why}); the call may have been charged, so herma does not repeat it"
    );
    Refused::new(status, why, message).passing(None)
}

fn nobody(links: &[Link], asked_one: bool, soonest: Option<Duration>) -> Refused {
    let names: Vec<&str> = links.iter().map(|link| &*link.upstream).collect();
    let names = names.join("`, `");
    if !asked_one && soonest.is_some() {
        let message =
            format!("every upstream of this model (`{names}`) rests after failures; try again later");
        return Refused::new(503, "upstreams_resting", message).passing(soonest);
    }
    if asked_one {
        let message =
            format!("no upstream of this model (`{names}`) could be reached; the operator has to look at it");
        return Refused::new(502, "upstream_unreachable", message).passing(soonest);
    }
    let message = format!("no upstream of this model (`{names}`) speaks this API; ask by another one");
    Refused::new(404, "no_such_door", message)
}

/// The call as this upstream gets it, and whether the usage is then to be hidden.
fn outgoing(
    flight: &mut Flight,
    question: &Question<'_>,
    output: Option<u64>,
    upstream: &Upstream,
    link: &Link,
) -> (Outgoing, bool) {
    let Question { body, outline, .. } = question;
    let door = flight.door;
    let bound = output.zip(upstream.maximum_key(door));
    let add_usage = door == Door::Chat && outline.stream && outline.include_usage != Some(true);
    let rewrite = Rewrite {
        model: Some(&link.model),
        max_output: bound.map(|(at_most, (key, beside_others))| OutputBound { at_most, key, beside_others }),
        include_usage: add_usage,
        not_stored: door == Door::Responses,
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
    flight.rewrites = rewrites.into_iter().filter_map(|(name, done)| done.then_some(name)).collect();
    let outgoing = Outgoing {
        door,
        beta_query: question.beta_query,
        headers: headers::to_upstream(question.headers),
        body,
        run: flight.run.name.clone(),
    };
    (outgoing, add_usage)
}

async fn ask(upstream: &Upstream, outgoing: Outgoing) -> Gave {
    let sent = upstream.send(outgoing).await;
    let now = Instant::now();
    match sent {
        Ok(response) => {
            let status = response.status();
            let wait = retry_after(response.headers());
            match status {
                StatusCode::TOO_MANY_REQUESTS => {
                    upstream.rest().strike(now, wait);
                    Gave::No { why: "too_many_requests", response: Some(response) }
                }
                _ if matches!(status.as_u16(), 503 | 529) => {
                    upstream.rest().strike(now, wait);
                    Gave::No { why: "overloaded", response: Some(response) }
                }
                // Nobody asked for another protocol.
                _ if status.is_informational() => {
                    upstream.rest().strike(now, wait);
                    Gave::Unknown { why: "not_http", response: None }
                }
                _ if status.is_server_error() => {
                    upstream.rest().strike(now, wait);
                    Gave::Unknown { why: "server_error", response: Some(response) }
                }
                _ => {
                    upstream.rest().answered();
                    Gave::Answer(response)
                }
            }
        }
        Err(SendError::NotReached(why)) => {
            upstream.rest().strike(now, None);
            Gave::No { why, response: None }
        }
        Err(SendError::Ambiguous(why)) => {
            upstream.rest().strike(now, None);
            Gave::Unknown { why, response: None }
        }
        Err(SendError::FirstByteTimeout) => {
            upstream.rest().strike(now, None);
            Gave::Unknown { why: "first_byte_timeout", response: None }
        }
    }
}
