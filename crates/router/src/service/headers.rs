//! The headers that pass, in each direction. All others are dropped.

use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::upstream::PASSED;

static X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// From the client to the upstream.
static FORWARDED: [HeaderName; 5] = [
    ACCEPT,
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("openai-beta"),
];

/// The headers of a request that go to the upstream.
pub(super) fn to_upstream(from: &HeaderMap) -> HeaderMap {
    // With room for the headers that the upstream's side adds.
    let mut to = HeaderMap::with_capacity(2 * FORWARDED.len());
    for name in &FORWARDED {
        for value in from.get_all(name) {
            to.append(name, value.clone());
        }
    }
    to
}

/// The headers of a response that go to the client, without those whose value is a secret.
pub(super) fn to_client(from: &HeaderMap, is_secret: impl Fn(&[u8]) -> bool) -> HeaderMap {
    let mut to = HeaderMap::with_capacity(PASSED.len());
    for (name, value) in from {
        if PASSED.contains(name) && !is_secret(value.as_bytes()) {
            to.append(name, value.clone());
        }
    }
    to
}

/// Every value of a header.
pub(super) fn all<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h [u8]> {
    headers.get_all(name).into_iter().map(HeaderValue::as_bytes)
}

/// The token in a request; `None` without one, or with two that differ.
pub(super) fn token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut tokens = all(headers, &AUTHORIZATION).map(bearer).chain(all(headers, &X_API_KEY).map(Some));
    let token = tokens.next()??;
    tokens.all(|other| other == Some(token)).then_some(token)
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use http::header::{CONTENT_TYPE, RETRY_AFTER};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_token_comes_once_or_twice_the_same() {
        type Row = (&'static [(&'static str, &'static str)], Option<&'static [u8]>);
        let rows: &[Row] = &[
            (&[("authorization", "Bearer a")], Some(b"a")),
            (&[("authorization", "bearer  a ")], Some(b"a")),
            (&[("x-api-key", "a")], Some(b"a")),
            (&[("authorization", "Bearer a"), ("x-api-key", "a")], Some(b"a")),
            (&[("authorization", "Bearer a"), ("x-api-key", "b")], None),
            (&[("authorization", "Basic a"), ("x-api-key", "a")], None),
            (&[("authorization", "a")], None),
            (&[], None),
        ];
        for (pairs, token_of) in rows {
            assert_eq!(token(&headers(pairs)), *token_of);
        }
    }

    #[test]
    fn neither_keys_nor_accounts_pass() {
        let asked =
            headers(&[("authorization", "Bearer a"), ("x-api-key", "a"), ("cookie", "a"), ("accept", "a")]);
        assert_eq!(to_upstream(&asked).keys().collect::<Vec<_>>(), [ACCEPT]);
        let answered = headers(&[("openai-organization", "a"), ("set-cookie", "a"), ("retry-after", "1")]);
        assert_eq!(to_client(&answered, |_| false).keys().collect::<Vec<_>>(), [RETRY_AFTER]);
        let fine = headers(&[("content-type", "a"), ("retry-after", "1"), ("date", "now")]);
        assert_eq!(to_client(&fine, |_| false).keys().collect::<Vec<_>>(), [CONTENT_TYPE, RETRY_AFTER]);
        let echoed = headers(&[("x-request-id", "for sk-1"), ("retry-after", "1")]);
        let is_key = |value: &[u8]| value == b"for sk-1";
        assert_eq!(to_client(&echoed, is_key).keys().collect::<Vec<_>>(), [RETRY_AFTER]);
    }
}
