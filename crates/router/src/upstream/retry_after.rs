//! The `retry-after` of a response.

use std::time::Duration;

use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::{rfc2822, strtime};
use jiff::tz::TimeZone;

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// The wait in `retry-after-ms`, or in `retry-after` as seconds or as a date. A date is relative to the response's own
/// `date`, so that clock skew does not matter; one in the past is no wait. `None` where there is no valid one.
#[must_use]
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text_of = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(ms) = text_of(&RETRY_AFTER_MS).and_then(number) {
        return Some(seconds(ms / 1000.0));
    }
    let text = text_of(&RETRY_AFTER)?;
    if let Some(number) = number(text) {
        return Some(seconds(number));
    }
    let now = text_of(&DATE).and_then(date)?;
    date(text).map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

/// A number that is not negative. Only digits and a point: no sign, no `inf`, no `1e9`.
fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse().ok().filter(|_| plain)
}

/// A length of time; the longest there is, where the number is larger.
fn seconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or(Duration::MAX)
}

/// The three date formats of HTTP (RFC 9110, section 5.6.7).
fn date(text: &str) -> Option<Timestamp> {
    let old = |format| {
        let parsed: DateTime = strtime::parse(format, text).ok()?.to_datetime().ok()?;
        parsed.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    };
    rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()
        .or_else(|| old("%A, %d-%b-%y %H:%M:%S GMT"))
        .or_else(|| old("%a %b %e %H:%M:%S %Y"))
}
