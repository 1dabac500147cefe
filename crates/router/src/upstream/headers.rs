//! The headers of a request to an upstream.

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, DATE, HOST,
    PROXY_AUTHORIZATION, RETRY_AFTER, TRANSFER_ENCODING, USER_AGENT,
};
use http::{HeaderName, HeaderValue};

/// The headers of a request.
pub type Fields = Vec<(HeaderName, HeaderValue)>;

/// What passes from an upstream to the client, if nothing secret is in it. Nothing that names the operator's account.
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

/// The name of a header of an answer, if anybody looks at it.
pub(super) fn kept(name: &str) -> Option<&'static HeaderName> {
    PASSED.iter().chain([&DATE]).find(|known| known.as_str().eq_ignore_ascii_case(name))
}

/// What never comes from the client: how the body is framed and written, whom it is for, and who it is. The caller lets
/// none of it through; here nobody has to rely on that.
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
/// Bodies are read on their way, so they must be readable.
const AS_IT_IS: HeaderValue = HeaderValue::from_static("identity");
const HERMA: HeaderValue = HeaderValue::from_static(concat!("herma/", env!("CARGO_PKG_VERSION")));

/// Makes the client's headers those of a request. Host and length are added where it is sent.
pub(super) fn set(headers: &mut Fields) {
    headers.retain(|(name, _)| !NEVER.contains(name));
    headers.extend([(CONTENT_TYPE, JSON), (ACCEPT_ENCODING, AS_IT_IS), (USER_AGENT, HERMA)]);
}

/// A value that is not shown and not kept in tables: a key, maybe behind a word.
pub(super) fn secret(before: &str, key: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("{before}{key}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}
