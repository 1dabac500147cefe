//! One question and its result: an answer, or why there is none.

use herma_core::visible::visible_line;
use serde_json::Value;

use super::client::{Answer, End, NoAnswer};
use super::events::events;
use super::failed::ProbeFailed;
use super::shape::Shape;
use herma_dialect::tap::Tap;
use herma_dialect::{Dialect, ResponseSummary, Usage, read_response};

/// The most characters of an error's message.
const SHOWN: usize = 200;

/// An answer that was read.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) shape: Shape,
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
    /// The stop reason, as the upstream names it.
    pub(super) stop: Option<String>,
    /// The output maximum, where the router lowered it.
    pub(super) lowered_to: Option<u64>,
}

/// Why there is no answer that can be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Miss {
    /// The router did not ask. That says nothing of the model.
    NotAsked(ProbeFailed),
    /// This question is not taken at this API; it may be at another.
    NotTaken {
        /// The status.
        status: u16,
        /// The reason.
        why: String,
    },
    /// The provider does not answer.
    NoAnswer(String),
}

/// A stream that was read, and what is wrong with it.
#[derive(Debug)]
pub(super) struct Streamed {
    pub(super) reply: Reply,
    pub(super) wrong: Option<String>,
}

impl Reply {
    /// Whether the model reasoned. An answer without content that ends at its output maximum counts as reasoning, also if
    /// the provider reports none.
    pub(super) fn reasoned(&self) -> bool {
        let reasoning_counted = self.usage.is_some_and(|usage| usage.reasoning > 0);
        let at_maximum = matches!(self.stop.as_deref(), Some("length" | "max_tokens" | "max_output_tokens"));
        self.shape.reasons || reasoning_counted || at_maximum
    }
}

/// Reads an answer that is not a stream.
pub(super) fn whole(dialect: Dialect, answer: Result<Answer, NoAnswer>) -> Result<Reply, Miss> {
    let answer = accepted(answer)?;
    let why = match answer.end {
        End::Whole => None,
        End::Broken => Some("the answer broke off"),
        End::TooLate => Some("the answer was not whole in time"),
        End::TooLarge => Some("the answer is larger than any to this question"),
    };
    if let Some(why) = why {
        return Err(Miss::NoAnswer(why.to_owned()));
    }
    let unreadable = || Miss::NoAnswer("the answer is not one of this API".to_owned());
    let ResponseSummary { model, usage, stop, error, .. } =
        read_response(dialect, &answer.body).map_err(|_| unreadable())?;
    let body: Value = serde_json::from_slice(&answer.body).map_err(|_| unreadable())?;
    if error {
        return Err(Miss::NoAnswer(format!("the answer is an error{}", told(&body))));
    }
    let looks_known = match dialect {
        Dialect::Chat => body["choices"].is_array(),
        Dialect::Responses => body["output"].is_array(),
        Dialect::Messages => body["content"].is_array(),
    };
    if !looks_known {
        return Err(unreadable());
    }
    let shape = Shape::of_whole(dialect, &body);
    Ok(Reply { shape, model, usage, stop, lowered_to: answer.lowered_to })
}

/// Reads an answer that is to be a stream.
pub(super) fn streamed(dialect: Dialect, answer: Result<Answer, NoAnswer>) -> Result<Streamed, Miss> {
    let answer = accepted(answer)?;
    let mut tap = Tap::new(dialect);
    tap.feed(&answer.body);
    let (_, seen) = tap.finish();
    let events = events(&answer.body);
    let error = events.iter().rev().find_map(|event| Some(told(event)).filter(|told| !told.is_empty()));
    let wrong = if !answer.is_stream {
        Some("the answer came whole, not as a stream".to_owned())
    } else if seen.error_event {
        Some(format!("the stream ended with an error{}", error.unwrap_or_default()))
    } else if seen.malformed || seen.unparsed > 0 {
        Some("an event of the stream cannot be read".to_owned())
    } else if seen.done {
        // One event is a whole answer in another dress.
        (seen.events < 2).then(|| "the stream has a single event".to_owned())
    } else {
        let why = match answer.end {
            End::Whole | End::Broken => "the stream broke off before its end",
            End::TooLate => "the stream did not end in time",
            End::TooLarge => "the stream went on beyond its output maximum",
        };
        Some(why.to_owned())
    };
    let shape = Shape::of_events(dialect, events.into_iter());
    let (model, usage, stop) = (seen.model, seen.usage, seen.stop);
    let reply = Reply { shape, model, usage, stop, lowered_to: answer.lowered_to };
    Ok(Streamed { reply, wrong })
}

/// An answer with a status that says yes.
fn accepted(answer: Result<Answer, NoAnswer>) -> Result<Answer, Miss> {
    let router = |why: &str| Miss::NotAsked(ProbeFailed::Router(why.to_owned()));
    let answer = answer.map_err(|no| match no {
        NoAnswer::NotReached => router("nobody listens at its address"),
        NoAnswer::NotHttp => router("what listens at its address does not speak HTTP"),
        NoAnswer::HungUp => Miss::NoAnswer("the answer broke off before it began".to_owned()),
        NoAnswer::Token => router("the token has characters in it that cannot be sent"),
        NoAnswer::TooLate => Miss::NoAnswer("the answer did not begin in time".to_owned()),
    })?;
    let status = answer.status;
    if (200..300).contains(&status) {
        return Ok(answer);
    }
    let said = serde_json::from_slice(&answer.body).map(|body| told(&body)).unwrap_or_default();
    let why = format!("status {status}{said}");
    Err(match status {
        // An upstream's own 401 and 403 come as 502: it is the router's key that it refused.
        401 | 403 | 429 if !answer.by_upstream => {
            let message = said.strip_prefix(": ").unwrap_or("it gives no reason").to_owned();
            Miss::NotAsked(ProbeFailed::Refused { status, message })
        }
        408 | 429 => Miss::NoAnswer(why),
        400..500 => Miss::NotTaken { status, why },
        _ => Miss::NoAnswer(why),
    })
}

/// The message of an error, after a colon; nothing where there is none.
fn told(body: &Value) -> String {
    let places = ["/error/message", "/response/error/message", "/error", "/message"];
    let message = places.iter().find_map(|place| body.pointer(place)?.as_str()).unwrap_or_default();
    let shown: String = message.chars().take(SHOWN).collect();
    if shown.is_empty() { shown } else { format!(": {}", visible_line(&shown)) }
}
