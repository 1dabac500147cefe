//! Which headers pass, in each direction. What is not named here stays behind.

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName};

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// What the router reads of a request. Nothing else of a head is kept.
pub(super) static KNOWN: [HeaderName; 9] = [
    AUTHORIZATION,
    CONTENT_TYPE,
    ACCEPT,
    X_API_KEY,
    CONTENT_ENCODING,
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("openai-beta"),
];

/// From the client to the upstream.
static ASKED: [HeaderName; 5] = [
    ACCEPT,
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("openai-beta"),
];

/// From the upstream to the client. Nothing that names the operator's account.
static ANSWERED: [HeaderName; 9] = [
    CONTENT_ENCODING,
    CONTENT_TYPE,
    RETRY_AFTER,
    HeaderName::from_static("openai-processing-ms"),
    HeaderName::from_static("openai-version"),
    HeaderName::from_static("request-id"),
    HeaderName::from_static("retry-after-ms"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("x-should-retry"),
];

/// What has room for all that herma adds without being made larger.
const ROOM: usize = 8;

/// The headers of a request that go to the upstream.
pub(super) fn to_upstream(from: &HeaderMap) -> HeaderMap {
    passing(&ASKED, from, |_| false)
}

/// The headers of an answer that go to the client, without those whose value is a secret.
pub(super) fn to_client(from: &HeaderMap, is_secret: impl Fn(&[u8]) -> bool) -> HeaderMap {
    passing(&ANSWERED, from, is_secret)
}

fn passing(names: &[HeaderName], from: &HeaderMap, is_secret: impl Fn(&[u8]) -> bool) -> HeaderMap {
    let mut to = HeaderMap::with_capacity(ROOM);
    for (name, value) in from {
        if names.contains(name) && !is_secret(value.as_bytes()) {
            to.append(name, value.clone());
        }
    }
    to
}

/// The token in a request; none if there is none, or there are two that differ.
pub(super) fn token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut tokens = headers
        .get_all(AUTHORIZATION)
        .iter()
        .map(|value| bearer(value.as_bytes()))
        .chain(headers.get_all(&X_API_KEY).iter().map(|value| Some(value.as_bytes())));
    let token = tokens.next()??;
    tokens.all(|other| other == Some(token)).then_some(token)
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
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
            let pairs: Vec<_> = pairs.iter().map(|(name, value)| (*name, *value)).collect();
            let mut map = HeaderMap::new();
            for (name, value) in pairs {
                map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
            }
            assert_eq!(token(&map), *token_of);
        }
    }

    #[test]
    fn neither_keys_nor_accounts_pass() {
        let asked =
            headers(&[("authorization", "Bearer a"), ("x-api-key", "a"), ("cookie", "a"), ("accept", "a")]);
        assert_eq!(to_upstream(&asked).keys().collect::<Vec<_>>(), [ACCEPT]);
        let answered = headers(&[("openai-organization", "a"), ("set-cookie", "a"), ("retry-after", "1")]);
        assert_eq!(to_client(&answered, |_| false).keys().collect::<Vec<_>>(), [RETRY_AFTER]);
        let echoed = headers(&[("x-request-id", "for sk-1"), ("retry-after", "1")]);
        let is_key = |value: &[u8]| value == b"for sk-1";
        assert_eq!(to_client(&echoed, is_key).keys().collect::<Vec<_>>(), [RETRY_AFTER]);
    }
}
