//! The headers of a request to an upstream.

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST,
    PROXY_AUTHORIZATION, RETRY_AFTER, TRANSFER_ENCODING, USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The headers that pass from an upstream to the client, if their value is no secret. None names the operator's account.
pub static PASSED: [HeaderName; 9] = [
    CONTENT_TYPE,
    CONTENT_ENCODING,
    RETRY_AFTER,
    HeaderName::from_static("openai-processing-ms"),
    HeaderName::from_static("openai-version"),
    HeaderName::from_static("request-id"),
    HeaderName::from_static("retry-after-ms"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("x-should-retry"),
];

/// The headers that never come from the client: framing, encoding, host and credentials. The caller drops them too; this
/// does not rely on it.
static NEVER: [HeaderName; 10] = [
    ACCEPT_ENCODING,
    AUTHORIZATION,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    COOKIE,
    HOST,
    PROXY_AUTHORIZATION,
    TRANSFER_ENCODING,
    USER_AGENT,
    HeaderName::from_static("x-api-key"),
];

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Bodies are inspected, so they must not be compressed.
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");
const HERMA: HeaderValue = HeaderValue::from_static(concat!("herma/", env!("CARGO_PKG_VERSION")));

/// Completes the client's headers for a request. hyper adds host and length.
pub(super) fn set(headers: &mut HeaderMap) {
    for name in &NEVER {
        headers.remove(name);
    }
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(ACCEPT_ENCODING, IDENTITY);
    headers.insert(USER_AGENT, HERMA);
}

/// A sensitive header value: a key, with an optional prefix.
pub(super) fn secret(before: &str, key: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("{before}{key}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}
