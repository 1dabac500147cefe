//! Finds endpoints: URLs, hosts with ports, addresses. An admission names the thing that it permits; its endpoint is
//! not for readers of the record.

use std::net::IpAddr;

/// The name of a value that no admission may have.
const URL: &str = "a URL";
const HOST_AND_PORT: &str = "a host with a port";
const ADDRESS: &str = "an address";
const LOCALHOST: &str = "`localhost`";
const LOGIN: &str = "a login on a host";

/// Schemes that are one also without `//`.
const SCHEMES: [&str; 12] =
    ["http", "https", "ws", "wss", "ftp", "sftp", "ssh", "git", "tcp", "udp", "unix", "grpc"];

/// The first endpoint in a text, by its kind.
pub(super) fn endpoint_in(text: &str) -> Option<&'static str> {
    words(text).find_map(|word| if is_url(word) { Some(URL) } else { bare_endpoint(word) })
}

/// The problem of the URLs in a text that may have some, or of an endpoint that is no URL.
pub(super) fn bad_url_in(text: &str) -> Option<&'static str> {
    words(text).find_map(|word| match word.split_once("://") {
        Some((_, rest)) => bad_url(rest),
        None if is_url(word) => Some("a URL without `//`"),
        None => bare_endpoint(word),
    })
}

fn bad_url(rest: &str) -> Option<&'static str> {
    let authority = rest.split(['/', '#', '\\']).next().unwrap_or_default();
    if authority.contains('@') || rest.contains('@') && authority.is_empty() {
        return Some("a URL with a user in it");
    }
    if rest.contains('?') {
        return Some("a URL with a query");
    }
    if rest.contains("://") {
        return Some("a URL in a URL");
    }
    let host = authority.split(':').next().unwrap_or_default();
    bare_endpoint(host).or_else(|| (host.is_empty() || authority.contains('[')).then_some(ADDRESS))
}

/// The parts between blanks, quotes and other characters that no URL has.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "\"'`<>(){}|,;=".contains(c)).filter(|word| !word.is_empty())
}

fn is_url(word: &str) -> bool {
    let is_scheme = |part: &str| SCHEMES.iter().any(|known| part.eq_ignore_ascii_case(known));
    word.contains("://")
        || word.split_once(':').is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty())
        // Slashes that were folded, as in a path.
        || word.split('/').any(|part| part.strip_suffix(':').is_some_and(is_scheme) && part.len() < word.len())
}

/// An endpoint in a word that is not a URL.
fn bare_endpoint(word: &str) -> Option<&'static str> {
    // `git@host:path`; a mail address has nothing behind a colon.
    if let Some((_, host)) = word.split_once('@')
        && host.split_once(':').is_some_and(|(_, path)| !path.is_empty())
    {
        return Some(LOGIN);
    }
    word.split(['/', '@', '[', ']', '\\']).find_map(part_endpoint)
}

fn part_endpoint(piece: &str) -> Option<&'static str> {
    let piece = piece.trim_matches(|c: char| matches!(c, '.' | '!' | '?' | '*'));
    if piece.len() > 1 && piece.parse::<IpAddr>().is_ok() {
        return Some(ADDRESS);
    }
    let (host, port) = match piece.rsplit_once(':') {
        Some((host, port)) => (host.trim_end_matches('.'), Some(port)),
        None => (piece, None),
    };
    if host.len() > 1 && host.parse::<IpAddr>().is_ok() {
        return Some(ADDRESS);
    }
    let lower = host.to_ascii_lowercase();
    if lower.split(['.', ':']).any(|label| matches!(label, "localhost" | "ip6-localhost" | "ip6-loopback")) {
        return Some(LOCALHOST);
    }
    // One digit is the version in a name such as `claude-v2:1`; nothing that people run listens there.
    let is_port = |port: &str| {
        port.len() > 1
            && !port.starts_with('0')
            && port.bytes().all(|b| b.is_ascii_digit())
            && port.parse::<u16>().is_ok()
    };
    let is_host = host.bytes().any(|b| b.is_ascii_alphabetic())
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    (is_host && port.is_some_and(is_port)).then_some(HOST_AND_PORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_found_wherever_they_stand() {
        for text in [
            "https://example.org",
            "see https://example.org/a for more",
            "HTTP://EXAMPLE.ORG",
            "http:example.org",
            "/srv/https:/example.org",
            "postgres://db/x",
            "url=ftp://x",
            "(ws://x)",
            "example.org:8080",
            "db:5432",
            "db:5432/name",
            "my_host:443.",
            "127.0.0.1",
            "at 10.0.0.1.",
            "10.0.0.1:80",
            "/srv/10.0.0.1/x",
            "::1",
            "[::1]:80",
            "fe80::1",
            "me@192.168.0.7",
            "localhost",
            "LocalHost:80",
            "api.localhost",
            "localhost.localdomain",
            "git@example.org:owner/repo",
        ] {
            assert!(endpoint_in(text).is_some(), "{text}");
            assert!(endpoint_in(&format!("a note, {text}, and so on")).is_some(), "{text}");
        }
    }

    #[test]
    fn other_text_is_not_taken_for_an_endpoint() {
        for text in [
            "Ada Lovelace <ada@example.org>",
            "Apache-2.0: see LICENSE",
            "crates.io",
            "1.2.3",
            "anthropic.claude-v2:1",
            "llama3:8b",
            "at 12:30",
            "src/**",
            "a local host of guests",
            "/opt/tool-1.2/bin/tool",
            "herma::model",
            "note: this",
            "git: a tool",
        ] {
            assert_eq!(endpoint_in(text), None, "{text}");
        }
    }

    #[test]
    fn a_url_that_may_be_there_has_no_user_no_query_and_a_name() {
        for text in [
            "https://ada@example.org/x",
            "https://ada:pw@example.org/x",
            "https://example.org/x?token=1",
            "https://127.0.0.1/x",
            "https://[::1]/x",
            "http://localhost:3000",
            "https:///x",
            "git@example.org:owner/repo",
            "git clone https://example.org/x example.org:8080",
            "http:example.org",
        ] {
            assert!(bad_url_in(text).is_some(), "{text}");
        }
        for text in [
            "https://example.org/owner/repo",
            "git clone https://example.org/owner/repo && cargo build --release",
            "ripgrep",
            "cargo install ripgrep@14.1.0",
        ] {
            assert_eq!(bad_url_in(text), None, "{text}");
        }
    }
}
