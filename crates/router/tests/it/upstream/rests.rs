//! Strikes, rest, and `Retry-After`.

use std::time::{Duration, Instant};

use herma_router::upstream::{Rest, retry_after};
use http::{HeaderMap, HeaderName};
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn three_strikes_within_a_minute_are_a_rest_of_half_a_minute() {
    let (rest, start) = (Rest::default(), Instant::now());
    let at = |seconds: u32| start + SECOND * seconds;
    rest.strike(at(0), None);
    rest.strike(at(1), None);
    assert_eq!(rest.resting(at(1)), None);
    rest.strike(at(59), None);
    assert_eq!(rest.resting(at(59)), Some(SECOND * 30));
    assert_eq!(rest.resting(at(88)), Some(SECOND));
    assert_eq!(rest.resting(at(89)), None);
    // After a rest it has its three strikes again.
    rest.strike(at(90), None);
    rest.strike(at(91), None);
    assert_eq!(rest.resting(at(91)), None);
    rest.strike(at(92), None);
    assert_eq!(rest.resting(at(92)), Some(SECOND * 30));
}

#[test]
fn strikes_that_are_apart_are_no_rest() {
    let (rest, start) = (Rest::default(), Instant::now());
    for strike in 0..20 {
        let now = start + SECOND * 30 * strike;
        rest.strike(now, None);
        assert_eq!(rest.resting(now), None, "{strike}");
    }
}

#[test]
fn an_answer_takes_strikes_back_but_ends_no_rest() {
    let (rest, now) = (Rest::default(), Instant::now());
    for _ in 0..10 {
        rest.strike(now, None);
        rest.strike(now, None);
        rest.answered();
    }
    assert_eq!(rest.resting(now), None);
    rest.strike(now, Some(SECOND * 5));
    rest.answered();
    assert_eq!(rest.resting(now), Some(SECOND * 5));
    assert_eq!(rest.resting(now + SECOND * 5), None);
    rest.answered();
    assert_eq!(rest.resting(now + SECOND * 5), None);
}

#[test]
fn an_upstream_that_names_a_time_rests_until_then() {
    let (rest, now) = (Rest::default(), Instant::now());
    rest.strike(now, Some(Duration::ZERO));
    assert_eq!(rest.resting(now), None);
    rest.strike(now, Some(SECOND * 120));
    assert_eq!(rest.resting(now), Some(SECOND * 120));
    rest.strike(now, Some(SECOND));
    assert_eq!(rest.resting(now), Some(SECOND * 120), "a later strike shortens nothing");
    let rest = Rest::default();
    rest.strike(now, Some(Duration::MAX));
    assert_eq!(rest.resting(now), Some(SECOND * 600), "no upstream is out for longer");
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
        let rest = Rest::default();
        let now = Instant::now();
        rest.strike(now, retry_after(&headers));
        prop_assert!(rest.resting(now).unwrap_or_default() <= SECOND * 600);
    }
}
