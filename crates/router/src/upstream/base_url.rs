//! The base URL of an upstream, and the paths of its APIs.

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

use herma_dialect::endpoint::{Endpoint, path_of};

/// A parsed URL. A secret: it has no `Debug`.
pub(super) struct BaseUrl {
    scheme: Scheme,
    authority: Authority,
    base: String,
}

impl BaseUrl {
    /// Parses `http[s]://HOST[:PORT][/PATH]`. `None` for anything else, also with a user, a query or a fragment.
    pub(super) fn parse(url: &str) -> Option<Self> {
        let parts = url.parse::<Uri>().ok()?.into_parts();
        let (scheme, authority) = (parts.scheme?, parts.authority?);
        let path = parts.path_and_query?;
        let plain = path.query().is_none() && !authority.as_str().contains('@') && !url.contains('#');
        let known = scheme == Scheme::HTTPS || scheme == Scheme::HTTP;
        if !plain || !known || authority.host().is_empty() {
            return None;
        }
        Some(Self { scheme, authority, base: path.path().trim_end_matches('/').to_owned() })
    }

    /// Whether it uses TLS.
    pub(super) fn is_tls(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The host, with the port if there is one.
    pub(super) fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// The host, without brackets.
    pub(super) fn host(&self) -> &str {
        self.authority.host().trim_matches(['[', ']'])
    }

    /// Its path, without a trailing slash.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Its path without a version at its end.
    pub(super) fn unversioned(&self) -> &str {
        match self.base.rsplit_once('/') {
            Some((before, last)) if is_version(last) => before,
            _ => &self.base,
        }
    }

    /// The URI of a path.
    pub(super) fn at(&self, path: &str) -> Option<Uri> {
        let path = PathAndQuery::try_from(path).ok()?;
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(path)
            .build()
            .ok()
    }
}

/// The path of an API behind `base`. `/v1` is omitted where `base` names a version: people write their URLs with it and
/// without.
pub(super) fn versioned(base: &str, endpoint: Endpoint) -> String {
    behind(base, path_of(endpoint))
}

/// The path of the list of models behind `base`.
pub(super) fn models(base: &str) -> String {
    behind(base, "/v1/models")
}

fn behind(base: &str, path: &str) -> String {
    let path = if base.split('/').any(is_version) { path.trim_start_matches("/v1") } else { path };
    format!("{base}{path}")
}

/// `v1`, `v4`, `v1beta`.
fn is_version(segment: &str) -> bool {
    let number = segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    number && segment.bytes().all(|b| b.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(url: &str) -> String {
        let base_url = BaseUrl::parse(url).unwrap();
        base_url.at(&versioned(base_url.base(), Endpoint::Chat)).unwrap().to_string()
    }

    #[test]
    fn a_version_stands_in_a_path_once() {
        let rows = [
            ("https://a.example", "https://a.example/v1/chat/completions"),
            ("https://a.example/", "https://a.example/v1/chat/completions"),
            ("https://a.example/v1", "https://a.example/v1/chat/completions"),
            ("https://a.example/v1/", "https://a.example/v1/chat/completions"),
            ("https://a.example:8443/api", "https://a.example:8443/api/v1/chat/completions"),
            ("https://a.example/openai/v1", "https://a.example/openai/v1/chat/completions"),
            ("https://a.example/v1beta/openai/", "https://a.example/v1beta/openai/chat/completions"),
            ("https://a.example/api/paas/v4", "https://a.example/api/paas/v4/chat/completions"),
            ("https://a.example/vllm", "https://a.example/vllm/v1/chat/completions"),
            ("http://[::1]:80", "http://[::1]:80/v1/chat/completions"),
        ];
        for (url, wanted) in rows {
            assert_eq!(chat(url), wanted);
        }
        assert_eq!(BaseUrl::parse("http://[::1]:80").unwrap().host(), "::1");
    }

    #[test]
    fn a_text_that_is_no_plain_url_is_refused() {
        for url in [
            "",
            "a.example",
            "/v1",
            "ftp://a.example",
            "unix:/a",
            "https://",
            "https:///v1",
            "https://user:word@a.example",
            "https://a.example/?key=1",
            "https://a.example/#a",
            "https://a.example/ b",
            "https://a.example\r\nx: y",
        ] {
            assert!(BaseUrl::parse(url).is_none(), "{url}");
        }
    }
}
