//! How large requests may be, and how long anything may take.

use std::str::FromStr;
use std::time::Duration;

use herma_core::units::{Bytes, Span, Tokens, Usd};

use super::document::{Keys, Read, Value};
use crate::budget::{LARGEST, Limits};

/// More threads than any machine has use for.
const MOST_THREADS: usize = 64;

/// What the router puts up with. There is no limit on how long a stream goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// The most bytes of a request's body.
    pub max_body: u64,
    /// To connect to an upstream, TLS included.
    pub connect: Duration,
    /// Until the head of an upstream's answer.
    pub first_byte: Duration,
    /// Between two chunks of an answer.
    pub idle: Duration,
    /// For a client to send its head and its body.
    pub head: Duration,
    /// The most connections of clients at once.
    pub max_connections: usize,
    /// How many threads the router runs on. One serves thousands of calls in a second, and locks that nobody contends for
    /// cost next to nothing.
    pub threads: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            max_body: 32 << 20,
            connect: Duration::from_secs(10),
            first_byte: Duration::from_mins(10),
            idle: Duration::from_mins(5),
            head: Duration::from_secs(30),
            max_connections: 4096,
            threads: 1,
        }
    }
}

/// `[limits]`.
pub(super) fn request_limits(document: &mut Keys<'_, '_>) -> Read<RequestLimits> {
    let default = RequestLimits::default();
    let Some(limits) = document.get("limits") else { return Ok(default) };
    let mut keys = limits.keys("`[limits]` with keys under it")?;
    let max_body = or(keys.get("max_body"), default.max_body, body);
    let connect = or(keys.get("connect"), default.connect, span);
    let first_byte = or(keys.get("first_byte"), default.first_byte, span);
    let idle = or(keys.get("idle"), default.idle, span);
    let head = or(keys.get("head"), default.head, span);
    let max_connections = or(keys.get("max_connections"), default.max_connections, several);
    let threads = or(keys.get("threads"), default.threads, threads);
    keys.done();
    Ok(RequestLimits {
        max_body: max_body?,
        connect: connect?,
        first_byte: first_byte?,
        idle: idle?,
        head: head?,
        max_connections: max_connections?,
        threads: threads?,
    })
}

/// A table that limits a budget; nothing is limited where it is not there.
pub(super) fn budget(value: Option<Value<'_, '_>>) -> Read<Limits> {
    let Some(value) = value else { return Ok(Limits::default()) };
    let mut keys = value.keys("`{ requests = 100, tokens = \"200k\", usd = \"2.00\" }`")?;
    let requests = maybe(keys.get("requests"), |value| bounded(value, value.whole()?));
    let tokens = maybe(keys.get("tokens"), tokens);
    let micro_usd = maybe(keys.get("usd"), micro_usd);
    let names_none = keys.len() == 0;
    keys.done();
    if names_none {
        return value.refuse("limits nothing", "expected at least one of: requests, tokens, usd");
    }
    Ok(Limits { requests: requests?, tokens: tokens?, micro_usd: micro_usd? })
}

/// What is read where a value stands; what else holds where none does.
pub(super) fn or<'r, 't, T>(
    value: Option<Value<'r, 't>>,
    default: T,
    read: impl FnOnce(&Value<'r, 't>) -> Read<T>,
) -> Read<T> {
    value.map_or(Ok(default), |value| read(&value))
}

/// What is read where a value stands.
pub(super) fn maybe<'r, 't, T>(
    value: Option<Value<'r, 't>>,
    read: impl FnOnce(&Value<'r, 't>) -> Read<T>,
) -> Read<Option<T>> {
    value.map(|value| read(&value)).transpose()
}

/// A number of tokens.
pub(super) fn tokens(value: &Value<'_, '_>) -> Read<u64> {
    const LIKE: &str = "a number of tokens, like 5000, `200k` or `2M`";
    bounded(value, quantity::<Tokens>(value, value.text_or_number(LIKE)?, LIKE)?.0)
}

/// A number of tokens that is not zero.
pub(super) fn some_tokens(value: &Value<'_, '_>) -> Read<u64> {
    not_zero(value, tokens(value)?)
}

/// An amount of dollars, in millionths.
pub(super) fn micro_usd(value: &Value<'_, '_>) -> Read<u64> {
    const LIKE: &str = "an amount of US dollars, like `2.00`, with at most six places";
    bounded(value, quantity::<Usd>(value, value.text_or_number(LIKE)?, LIKE)?.0)
}

fn span(value: &Value<'_, '_>) -> Read<Duration> {
    const LIKE: &str = "a length of time, like `250ms`, `90s` or `20m`";
    let span = quantity::<Span>(value, value.text(LIKE)?, LIKE)?;
    not_zero(value, span.0).map(Duration::from_millis)
}

fn body(value: &Value<'_, '_>) -> Read<u64> {
    const LIKE: &str = "an amount of memory, like `32MiB`";
    not_zero(value, quantity::<Bytes>(value, value.text(LIKE)?, LIKE)?.0)
}

fn several(value: &Value<'_, '_>) -> Read<usize> {
    let number = not_zero(value, value.whole()?)?;
    usize::try_from(number).or_else(|_| value.refuse("is too large", "expected a smaller number"))
}

fn threads(value: &Value<'_, '_>) -> Read<usize> {
    let threads = several(value)?;
    if threads > MOST_THREADS { value.refuse("is too large", "expected at most 64") } else { Ok(threads) }
}

fn not_zero(value: &Value<'_, '_>, number: u64) -> Read<u64> {
    if number == 0 { value.refuse("is zero", "expected more than that") } else { Ok(number) }
}

/// What is counted no further than to [`LARGEST`] cannot be limited beyond.
fn bounded(value: &Value<'_, '_>, number: u64) -> Read<u64> {
    if number > LARGEST { value.refuse("is too large", "expected a smaller number") } else { Ok(number) }
}

/// What does not mean anything is not shown: it may be a secret in the wrong place.
fn quantity<T: FromStr>(value: &Value<'_, '_>, text: &str, like: &str) -> Read<T> {
    match text.parse() {
        Ok(quantity) => Ok(quantity),
        Err(_) => value.refuse("cannot be read", format!("expected {like}")),
    }
}
