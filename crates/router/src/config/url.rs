//! Rules for the URL of an upstream. It is never shown.

use std::net::IpAddr;

use http::Uri;

/// Why a text is no URL of an upstream, without the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadUrl {
    pub(super) problem: &'static str,
    pub(super) expected: &'static str,
}

const LIKE: &str = "expected a URL like `https://models.example/v1`";

/// The URL without a slash at its end, if keys may be sent there.
pub(super) fn check_url(text: &str, plain_http: bool) -> Result<String, BadUrl> {
    let bad = |problem, expected| Err(BadUrl { problem, expected });
    if text.contains(['?', '#']) {
        return bad(
            "has a query or a fragment",
            "expected a URL without: the router writes what comes behind it",
        );
    }
    let Ok(uri) = text.parse::<Uri>() else { return bad("is not a URL", LIKE) };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return bad("is not a whole URL", LIKE);
    };
    if authority.as_str().contains('@') {
        return bad("has a user in it", "expected a URL without; a key comes by `key`");
    }
    let host = authority.host();
    let port = authority.as_str().strip_prefix(host).unwrap_or_default();
    let port_is_sound = port.is_empty() || authority.port_u16().is_some_and(|port| port > 0);
    if !port_is_sound || !is_host(host) {
        return bad("names no host that can be called", LIKE);
    }
    match scheme {
        "https" => {}
        "http" if plain_http || is_loopback(host) => {}
        "http" => {
            return bad(
                "is plain HTTP, which exposes the key on the network",
                "expected `https://`, or `plain_http = true` beside it",
            );
        }
        _ => return bad("is neither `https` nor `http`", LIKE),
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn is_host(host: &str) -> bool {
    let name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match bracketed {
        Some(inside) => inside.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()),
        None => host.bytes().any(|b| b.is_ascii_alphanumeric()) && host.bytes().all(name),
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sent_to_whole_urls_over_tls_or_to_this_machine() {
        for (text, url) in [
            ("https://models.example", "https://models.example"),
            ("https://models.example:8443/v1/", "https://models.example:8443/v1"),
            ("http://127.0.0.1:11434", "http://127.0.0.1:11434"),
            ("http://localhost:8000/v1", "http://localhost:8000/v1"),
            ("http://[::1]:8000", "http://[::1]:8000"),
        ] {
            assert_eq!(check_url(text, false), Ok(url.to_owned()));
        }
        assert!(check_url("http://10.0.0.7:8000", true).is_ok());
    }

    #[test]
    fn urls_that_leak_or_lead_elsewhere_are_refused() {
        for text in [
            "",
            "/v1",
            "models.example",
            "models.example:443",
            "ftp://models.example",
            "unix:/run/model.sock",
            "http://models.example",
            "http://10.0.0.7:8000",
            // Parsers disagree about these hosts.
            "http://localhost.models.example",
            "http://127.0.0.1.models.example",
            "http://127.1",
            "http://2130706433",
            "http://localhost@models.example",
            "https://user:password@models.example",
            "https://models.example/v1?key=a",
            "https://models.example/#a",
            "https://models.example:0",
            "https://models.example:99999",
            "https://models.example:",
            "https://:443",
            "https://[::1",
            "https://models .example",
            "https://models.example\n",
            "https://models.example/\u{7f}",
        ] {
            assert!(check_url(text, false).is_err(), "{text}");
        }
    }
}
