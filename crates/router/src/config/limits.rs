//! Size limits and timeouts of requests.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::table::TableType;
use super::values::{Flaw, bytes, duration, positive, too_large, whole};

/// The most threads of a router.
const MAX_THREADS: u64 = 64;

/// `[limits]`. The duration of a stream has no limit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestLimits {
    /// The most bytes of a request's body.
    #[serde(deserialize_with = "bytes")]
    pub max_body: u64,
    /// Timeout of a connection to an upstream, with TLS.
    #[serde(deserialize_with = "duration")]
    pub connect: Duration,
    /// Timeout of the head of an upstream's answer.
    #[serde(deserialize_with = "duration")]
    pub first_byte: Duration,
    /// Idle timeout between two chunks of an answer.
    #[serde(deserialize_with = "duration")]
    pub idle: Duration,
    /// Timeout of a client's head and body.
    #[serde(deserialize_with = "duration")]
    pub head: Duration,
    /// The most connections of clients at once.
    #[serde(deserialize_with = "several")]
    pub max_connections: usize,
    /// The threads of the router. One serves thousands of calls in a second, without contention for locks.
    #[serde(deserialize_with = "threads")]
    pub threads: usize,
}

impl TableType for RequestLimits {
    const EXPECTING: &'static str = "`[limits]` with keys under it";
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

fn several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let number = whole(deserializer, |number| {
        if usize::try_from(number).is_err() { Err(too_large()) } else { positive(number) }
    })?;
    Ok(usize::try_from(number).unwrap_or(usize::MAX))
}

fn threads<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let number = whole(deserializer, |number| match positive(number)? {
        0..=MAX_THREADS => Ok(number),
        _ => Err(Flaw::new("is too large", format!("expected at most {MAX_THREADS}"))),
    })?;
    Ok(usize::try_from(number).unwrap_or(usize::MAX))
}
