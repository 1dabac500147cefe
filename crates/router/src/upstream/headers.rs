//! The headers of a request to an upstream.

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, PROXY_AUTHORIZATION,
    TRANSFER_ENCODING, USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue};

/// What never comes from the client: how the body is framed, whom it is for, and who it is. The caller lets none of it
/// through; here nobody has to rely on that.
static NEVER: [HeaderName; 7] = [
    AUTHORIZATION,
    CONTENT_LENGTH,
    COOKIE,
    HOST,
    PROXY_AUTHORIZATION,
    TRANSFER_ENCODING,
    HeaderName::from_static("x-api-key"),
];

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Bodies are read on their way, so they must be readable.
const AS_IT_IS: HeaderValue = HeaderValue::from_static("identity");
const HERMA: HeaderValue = HeaderValue::from_static(concat!("herma/", env!("CARGO_PKG_VERSION")));

/// Makes the client's headers those of a request. The client library adds host and length.
pub(super) fn set(headers: &mut HeaderMap) {
    if headers.keys().any(|name| NEVER.contains(name)) {
        for name in &NEVER {
            headers.remove(name);
        }
    }
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(ACCEPT_ENCODING, AS_IT_IS);
    headers.insert(USER_AGENT, HERMA);
}

/// A value that is not shown and not kept in tables: a key, maybe behind a word.
pub(super) fn secret(before: &str, key: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("{before}{key}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}
