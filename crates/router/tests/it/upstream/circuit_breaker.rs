//! Strikes, rest, and `Retry-After`.

use std::time::{Duration, Instant};

use herma_router::upstream::{CircuitBreaker, retry_after};
use http::{HeaderMap, HeaderName};
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn three_strikes_within_a_minute_are_a_rest_of_half_a_minute() {
    let (breaker, start) = (CircuitBreaker::default(), Instant::now());
    let at = |seconds: u32| start + SECOND * seconds;
    breaker.record_failure(at(0), None);
    breaker.record_failure(at(1), None);
    assert_eq!(breaker.retry_after(at(1)), None);
    breaker.record_failure(at(59), None);
    assert_eq!(breaker.retry_after(at(59)), Some(SECOND * 30));
    assert_eq!(breaker.retry_after(at(88)), Some(SECOND));
    assert_eq!(breaker.retry_after(at(89)), None);
    // After a rest it has its three strikes again.
    breaker.record_failure(at(90), None);
    breaker.record_failure(at(91), None);
    assert_eq!(breaker.retry_after(at(91)), None);
    breaker.record_failure(at(92), None);
    assert_eq!(breaker.retry_after(at(92)), Some(SECOND * 30));
}

#[test]
fn strikes_that_are_apart_are_no_rest() {
    let (breaker, start) = (CircuitBreaker::default(), Instant::now());
    for strike in 0..20 {
        let now = start + SECOND * 30 * strike;
        breaker.record_failure(now, None);
        assert_eq!(breaker.retry_after(now), None, "{strike}");
    }
}

#[test]
fn an_answer_takes_strikes_back_but_ends_no_rest() {
    let (breaker, now) = (CircuitBreaker::default(), Instant::now());
    for _ in 0..10 {
        breaker.record_failure(now, None);
        breaker.record_failure(now, None);
        breaker.record_success();
    }
    assert_eq!(breaker.retry_after(now), None);
    breaker.record_failure(now, Some(SECOND * 5));
    breaker.record_success();
    assert_eq!(breaker.retry_after(now), Some(SECOND * 5));
    assert_eq!(breaker.retry_after(now + SECOND * 5), None);
    breaker.record_success();
    assert_eq!(breaker.retry_after(now + SECOND * 5), None);
}

#[test]
fn an_upstream_that_names_a_time_rests_until_then() {
    let (breaker, now) = (CircuitBreaker::default(), Instant::now());
    breaker.record_failure(now, Some(Duration::ZERO));
    assert_eq!(breaker.retry_after(now), None);
    breaker.record_failure(now, Some(SECOND * 120));
    assert_eq!(breaker.retry_after(now), Some(SECOND * 120));
    breaker.record_failure(now, Some(SECOND));
    assert_eq!(breaker.retry_after(now), Some(SECOND * 120), "a later strike shortens nothing");
    let breaker = CircuitBreaker::default();
    breaker.record_failure(now, Some(Duration::MAX));
    assert_eq!(breaker.retry_after(now), Some(SECOND * 600), "no upstream is out for longer");
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap()))
        .collect()
}

#[test]
fn every_form_of_retry_after_is_understood() {
    const NOW: (&str, &str) = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
    let ms = |ms| Some(Duration::from_millis(ms));
    for (pairs, wait) in [
        (&[("retry-after", "3")][..], ms(3000)),
        (&[("retry-after", " 0 ")], ms(0)),
        (&[("retry-after", "1.5")], ms(1500)),
        (&[("retry-after-ms", "250")], ms(250)),
        (&[("retry-after-ms", "250.5"), ("retry-after", "3")], Some(Duration::from_micros(250_500))),
        (&[("retry-after-ms", "soon"), ("retry-after", "3")], ms(3000)),
        (&[NOW, ("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT")], ms(60_000)),
        (&[NOW, ("retry-after", "Sunday, 06-Nov-94 08:50:37 GMT")], ms(60_000)),
        (&[NOW, ("retry-after", "Sun Nov  6 08:50:37 1994")], ms(60_000)),
        (&[NOW, ("retry-after", "Sun, 06 Nov 1994 08:49:36 GMT")], ms(0)),
        (&[("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT")], None),
        (&[("retry-after", "99999999999999999999999999999")], Some(Duration::MAX)),
        (&[("retry-after", "-1")], None),
        (&[("retry-after", "inf")], None),
        (&[("retry-after", "NaN")], None),
        (&[("retry-after", "1e9")], None),
        (&[("retry-after", "")], None),
        (&[("retry-after", ".")], None),
        (&[NOW, ("retry-after", "tomorrow")], None),
        (&[], None),
    ] {
        assert_eq!(retry_after(&headers(pairs)), wait, "{pairs:?}");
    }
}

proptest! {
    #[test]
    fn no_retry_after_is_too_odd(text in "[ -~]{0,40}", date in "[ -~]{0,40}", ms in "[0-9.]{0,30}") {
        let headers = headers(&[("retry-after", &text), ("date", &date), ("retry-after-ms", &ms)]);
        let breaker = CircuitBreaker::default();
        let now = Instant::now();
        breaker.record_failure(now, retry_after(&headers));
        prop_assert!(breaker.retry_after(now).unwrap_or_default() <= SECOND * 600);
    }
}
