//! Which headers pass, in each direction. What is not named here stays behind.

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, DATE, InvalidHeaderValue};
use http::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

use crate::upstream::{Fields, PASSED};

static X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// What the router reads of a request. Nothing else of a head is kept.
pub(super) static KNOWN: [HeaderName; 9] = [
    AUTHORIZATION,
    CONTENT_TYPE,
    ACCEPT,
    HeaderName::from_static("x-api-key"),
    CONTENT_ENCODING,
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("openai-beta"),
];

/// The headers of a request, those of [`KNOWN`] only, in the order in which they came. They hold the token: there is no
/// `Debug`.
#[derive(Default)]
pub(super) struct Known(SmallVec<[(&'static HeaderName, HeaderValue); 4]>);

impl Known {
    /// Takes a header, if it is known.
    pub(super) fn take(
        &mut self,
        name: &[u8],
        value: impl FnOnce() -> Bytes,
    ) -> Result<(), InvalidHeaderValue> {
        if let Some(known) = KNOWN.iter().find(|known| known.as_str().as_bytes().eq_ignore_ascii_case(name)) {
            self.0.push((known, HeaderValue::from_maybe_shared(value())?));
        }
        Ok(())
    }

    /// Every value of a header.
    pub(super) fn all(&self, name: &HeaderName) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value.as_bytes())
    }
}

/// From the client to the upstream.
static ASKED: [HeaderName; 5] = [
    ACCEPT,
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("openai-beta"),
];

/// The headers of a request that go to the upstream.
pub(super) fn to_upstream(from: &Known) -> Fields {
    // With room for what the upstream's side adds.
    let mut to = Fields::with_capacity(from.0.len() + ASKED.len());
    let passing = from.0.iter().filter(|(name, _)| ASKED.contains(name));
    to.extend(passing.map(|(name, value)| ((*name).clone(), value.clone())));
    to
}

/// The headers of an answer that go to the client, without those whose value is a secret.
pub(super) fn to_client(mut from: HeaderMap, is_secret: impl Fn(&[u8]) -> bool) -> HeaderMap {
    from.remove(DATE);
    let passes =
        |name: &HeaderName, value: &HeaderValue| PASSED.contains(name) && !is_secret(value.as_bytes());
    if from.iter().all(|(name, value)| passes(name, value)) {
        return from;
    }
    let mut to = HeaderMap::with_capacity(from.len());
    for (name, value) in from.iter().filter(|(name, value)| passes(name, value)) {
        to.append(name, value.clone());
    }
    to
}

/// The token in a request; none if there is none, or there are two that differ.
pub(super) fn token(headers: &Known) -> Option<&[u8]> {
    let mut tokens = headers.all(&AUTHORIZATION).map(bearer).chain(headers.all(&X_API_KEY).map(Some));
    let token = tokens.next()??;
    tokens.all(|other| other == Some(token)).then_some(token)
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use http::header::RETRY_AFTER;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn known(pairs: &[(&str, &str)]) -> Known {
        let mut known = Known::default();
        for (name, value) in pairs {
            known.take(name.as_bytes(), || Bytes::copy_from_slice(value.as_bytes())).unwrap();
        }
        known
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
            assert_eq!(token(&known(pairs)), *token_of);
        }
    }

    #[test]
    fn neither_keys_nor_accounts_pass() {
        let asked =
            known(&[("authorization", "Bearer a"), ("x-api-key", "a"), ("cookie", "a"), ("Accept", "a")]);
        assert_eq!(to_upstream(&asked).iter().map(|(name, _)| name).collect::<Vec<_>>(), [ACCEPT]);
        let answered = headers(&[("openai-organization", "a"), ("set-cookie", "a"), ("retry-after", "1")]);
        assert_eq!(to_client(answered, |_| false).keys().collect::<Vec<_>>(), [RETRY_AFTER]);
        let fine = headers(&[("content-type", "a"), ("retry-after", "1"), ("date", "now")]);
        assert_eq!(to_client(fine, |_| false).keys().collect::<Vec<_>>(), [CONTENT_TYPE, RETRY_AFTER]);
        let echoed = headers(&[("x-request-id", "for sk-1"), ("retry-after", "1")]);
        let is_key = |value: &[u8]| value == b"for sk-1";
        assert_eq!(to_client(echoed, is_key).keys().collect::<Vec<_>>(), [RETRY_AFTER]);
    }
}
