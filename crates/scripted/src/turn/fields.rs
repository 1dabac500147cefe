//! From the keys of a turn to a turn without contradictions.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};

use herma_core::units::Span;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Content, Cut, Delay, Fault, Forever, HttpError, Stop, Turn, Used};
use crate::call::Call;

/// The keys of a turn, as they are written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TurnFields {
    think: Option<String>,
    say: Option<String>,
    refuse: Option<String>,
    call: Option<Call>,
    calls: Option<Vec<Call>>,
    #[serde(default)]
    empty: bool,
    usage: Option<Used>,
    stop: Option<Stop>,
    delay: Option<WrittenDelay>,
    chunk: Option<usize>,
    error: Option<WrittenError>,
    cut: Option<Cut>,
    #[serde(default)]
    malformed: bool,
    forever: Option<Forever>,
    times: Option<u32>,
}

impl TryFrom<TurnFields> for Turn {
    type Error = String;

    fn try_from(mut fields: TurnFields) -> Result<Self, String> {
        let fault = fields.fault()?;
        let content = fields.content()?;
        if let Some(wrong) = fields.contradiction(&content, fault.as_ref()) {
            return Err(wrong.to_owned());
        }
        Ok(Self {
            content,
            usage: fields.usage,
            stop: fields.stop,
            delay: fields.delay.map(|written| written.0).unwrap_or_default(),
            chunk: fields.chunk.and_then(NonZeroUsize::new).unwrap_or_else(Self::usual_chunk),
            fault,
            times: fields.times.and_then(NonZeroU32::new),
        })
    }
}

impl TurnFields {
    /// The contradiction between these keys, if there is one.
    fn contradiction(&self, content: &Content, fault: Option<&Fault>) -> Option<&'static str> {
        let nothing = *content == Content::default();
        let unsaid = nothing && !self.empty;
        let error = matches!(fault, Some(Fault::Error(_)));
        let forever = matches!(fault, Some(Fault::Forever(_)));
        let always = self.times.is_none();
        let rules = [
            (self.chunk == Some(0), "`chunk` is a whole number from 1"),
            (self.times == Some(0), "`times` is a whole number from 1"),
            (self.empty && !nothing, "a turn that is `empty` says nothing and calls nothing"),
            (self.empty && error && always, "a turn is `empty` or an `error`, not both"),
            (
                !always && fault.is_none(),
                "`times` says how often `error`, `cut`, `malformed` or `forever` happens; add one of them",
            ),
            (
                forever && (content.refuse.is_some() || !content.calls.is_empty()),
                "a turn that goes on `forever` has `think` and `say` only: it never comes to anything else",
            ),
            (
                error && always && !nothing,
                "this turn is always an error, so its content is never sent; add `times:` to the turn or \
                 `late: true` to the error",
            ),
            (
                error && !always && unsaid,
                "after so many `times` this turn needs something to answer, such as `say:`",
            ),
            (
                fault.is_none() && unsaid,
                "a turn needs something to answer: `say`, `think`, `refuse`, `call`, `calls`, `error`, or \
                 `empty: true`",
            ),
        ];
        rules.into_iter().find_map(|(broken, wrong)| broken.then_some(wrong))
    }

    fn content(&mut self) -> Result<Content, String> {
        let calls = match (self.call.take(), self.calls.take()) {
            (Some(_), Some(_)) => return Err("a turn has `call` or `calls`, not both".to_owned()),
            (Some(call), None) => vec![call],
            (None, Some(calls)) if calls.is_empty() => {
                return Err("`calls` is a list of at least one call".to_owned());
            }
            (None, calls) => calls.unwrap_or_default(),
        };
        if self.refuse.is_some() && (self.say.is_some() || !calls.is_empty()) {
            return Err("a turn that has `refuse` has no `say` and no calls".to_owned());
        }
        Ok(Content { think: self.think.take(), say: self.say.take(), refuse: self.refuse.take(), calls })
    }

    fn fault(&mut self) -> Result<Option<Fault>, String> {
        let error = self.error.take().map(|written| {
            if written.late { Fault::LateError(written.error) } else { Fault::Error(written.error) }
        });
        let cut = self.cut.take().map(Fault::Cut);
        let malformed = self.malformed.then_some(Fault::Malformed);
        let forever = self.forever.take().map(Fault::Forever);
        let mut faults = [error, cut, malformed, forever].into_iter().flatten();
        let first = faults.next();
        match faults.next() {
            Some(_) => Err("a turn has one of `error`, `cut`, `malformed` and `forever`".to_owned()),
            None => Ok(first),
        }
    }
}

/// `error: STATUS` or `error: { status, message, retry_after, late }`.
struct WrittenError {
    error: HttpError,
    late: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorFields {
    status: u16,
    message: Option<String>,
    retry_after: Option<Span>,
    #[serde(default)]
    late: bool,
}

impl<'de> Deserialize<'de> for WrittenError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;

        // By hand, because an untagged enum would not say which key is wrong.
        impl<'de> Visitor<'de> for Written {
            type Value = WrittenError;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a status, or { status, message, retry_after, late }")
            }

            fn visit_u64<E: Error>(self, status: u64) -> Result<WrittenError, E> {
                let error = HttpError { status: checked_status(status)?, message: None, retry_after: None };
                Ok(WrittenError { error, late: false })
            }

            fn visit_i64<E: Error>(self, status: i64) -> Result<WrittenError, E> {
                self.visit_u64(u64::try_from(status).unwrap_or_default())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WrittenError, A::Error> {
                let fields = ErrorFields::deserialize(MapAccessDeserializer::new(map))?;
                let status = checked_status(u64::from(fields.status))?;
                let error = HttpError { status, message: fields.message, retry_after: fields.retry_after };
                Ok(WrittenError { error, late: fields.late })
            }
        }

        deserializer.deserialize_any(Written)
    }
}

fn checked_status<E: Error>(status: u64) -> Result<u16, E> {
    let fits = u16::try_from(status).ok().filter(|status| (400..=599).contains(status));
    fits.ok_or_else(|| E::custom(format!("`{status}` is not the status of an error; expected 400 to 599")))
}

/// `delay: SPAN` until the first byte, or `delay: { first_byte, between }`.
struct WrittenDelay(Delay);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DelayFields {
    first_byte: Option<Span>,
    between: Option<Span>,
}

impl<'de> Deserialize<'de> for WrittenDelay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;

        impl<'de> Visitor<'de> for Written {
            type Value = WrittenDelay;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a length of time, or { first_byte, between }")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<WrittenDelay, E> {
                let first_byte = text.parse().map_err(E::custom)?;
                Ok(WrittenDelay(Delay { first_byte, ..Delay::default() }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WrittenDelay, A::Error> {
                let fields = DelayFields::deserialize(MapAccessDeserializer::new(map))?;
                let zero = Span(0);
                Ok(WrittenDelay(Delay {
                    first_byte: fields.first_byte.unwrap_or(zero),
                    between: fields.between.unwrap_or(zero),
                }))
            }
        }

        deserializer.deserialize_any(Written)
    }
}
