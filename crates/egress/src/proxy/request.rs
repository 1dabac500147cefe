//! The meaning of a request head, and the request that is forwarded. One reading of the bytes serves both.

use http::header::{CONNECTION, HOST};
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Uri};

use herma_net::head::{BadHead, HttpVersion, RequestHead};

use crate::host::{BadHost, Host, read_port, split_port};
use crate::rules::{EgressRequest, Method, PLAIN_PORT, RequestKind};

/// Hop-by-hop headers, which are not forwarded.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "host", // written anew
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

/// A request that can be decided on.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) asked: EgressRequest,
    /// The forwarded request without its body, if it is plain HTTP.
    pub(super) plain: Option<http::Request<()>>,
}

/// Why a request cannot be decided on.
#[derive(Debug)]
pub(super) enum BadRequest {
    Head(BadHead),
    /// The head is valid HTTP, and is not a request that this proxy takes.
    Unsupported(&'static str),
    /// The host is invalid.
    Host {
        method: &'static str,
        host: String,
        why: BadHost,
    },
}

impl From<BadHead> for BadRequest {
    fn from(bad: BadHead) -> Self {
        Self::Head(bad)
    }
}

fn bad(why: &'static str) -> BadRequest {
    BadRequest::Unsupported(why)
}

/// Interprets a head.
pub(super) fn read(head: &RequestHead<'_>) -> Result<Request, BadRequest> {
    let request = if head.method == "CONNECT" { read_connect(head) } else { read_plain(head) }?;
    // hyper reads the target as well: it must not refuse a request that has been decided on.
    head.target.parse::<Uri>().map_err(|_| bad("the target is not a URL"))?;
    Ok(request)
}

fn read_connect(head: &RequestHead<'_>) -> Result<Request, BadRequest> {
    if head.body_length > 0 {
        return Err(bad("CONNECT has no body"));
    }
    let (host, port) = place(head.target, RequestKind::Tunnel)?;
    let port = port.ok_or(bad("CONNECT needs a port, as in `example.org:443`"))?;
    let asked = EgressRequest { host, port, kind: RequestKind::Tunnel };
    host_agrees(head, &asked, port)?;
    Ok(Request { asked, plain: None })
}

fn read_plain(head: &RequestHead<'_>) -> Result<Request, BadRequest> {
    let method = Method::of(head.method).ok_or(bad("the method is not one that passes"))?;
    let Some(rest) = head.target.strip_prefix("http://") else {
        return Err(bad(if head.target.starts_with("https://") {
            "https is asked for with CONNECT"
        } else {
            "this is a proxy: the target is a full URL that begins with `http://`"
        }));
    };
    if head.version == HttpVersion::Http10 {
        return Err(bad("plain HTTP is taken as HTTP/1.1 only"));
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if path.contains('#') || authority.contains('@') {
        return Err(bad("the URL has a user or a fragment"));
    }
    let (host, port) = place(authority, RequestKind::Plain(method))?;
    let asked = EgressRequest { host, port: port.unwrap_or(PLAIN_PORT), kind: RequestKind::Plain(method) };
    host_agrees(head, &asked, PLAIN_PORT)?;
    let plain = forwarded(head, &asked, method, path)?;
    Ok(Request { asked, plain: Some(plain) })
}

fn place(text: &str, kind: RequestKind) -> Result<(Host, Option<u16>), BadRequest> {
    let (host, port) = split_port(text);
    let failed = |why| BadRequest::Host { method: kind.method(), host: host.to_owned(), why };
    let port = port.map(read_port).transpose().map_err(failed)?;
    Ok((Host::parse(host).map_err(failed)?, port))
}

/// Checks that the header `host` occurs once and names the target. HTTP/1.0 clients may leave it out.
fn host_agrees(head: &RequestHead<'_>, asked: &EgressRequest, usual: u16) -> Result<(), BadRequest> {
    let hosts: Vec<_> = head.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("host")).collect();
    match hosts[..] {
        [] if head.version == HttpVersion::Http10 => Ok(()),
        [(_, value)] => {
            let named = std::str::from_utf8(value).ok().and_then(|text| Host::parse_with_port(text).ok());
            match named {
                Some((host, port)) if host == asked.host && port.unwrap_or(usual) == asked.port => Ok(()),
                _ => Err(bad("the header `host` names something else than the target")),
            }
        }
        _ => Err(bad("the header `host` must be there once")),
    }
}

/// The forwarded request: origin form, and one request per connection.
fn forwarded(
    head: &RequestHead<'_>,
    asked: &EgressRequest,
    method: Method,
    path: &str,
) -> Result<http::Request<()>, BadRequest> {
    let dropped = dropped(head)?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let path: PathAndQuery =
        format!("{slash}{path}").parse().map_err(|_| bad("the path has characters that no URL has"))?;
    let port = if asked.port == PLAIN_PORT { String::new() } else { format!(":{}", asked.port) };
    let mut request = http::Request::new(());
    *request.method_mut() = method.as_str().parse().map_err(|_| bad("the method is not one that passes"))?;
    *request.uri_mut() = path.into();
    let headers = request.headers_mut();
    let host = HeaderValue::try_from(format!("{}{port}", asked.host));
    headers.insert(HOST, host.map_err(|_| bad("the host is not one that a header can have"))?);
    for (name, value) in &head.headers {
        if !dropped.iter().any(|dropped| dropped.eq_ignore_ascii_case(name)) {
            let name = HeaderName::from_bytes(name.as_bytes());
            let value = HeaderValue::from_bytes(value);
            let (Ok(name), Ok(value)) = (name, value) else { return Err(bad("a header is not valid")) };
            headers.append(name, value);
        }
    }
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

/// The headers that are not forwarded: the hop-by-hop ones, and those that `connection` names.
fn dropped<'a>(head: &RequestHead<'a>) -> Result<Vec<&'a str>, BadRequest> {
    let mut dropped = HOP_BY_HOP.to_vec();
    for (name, value) in &head.headers {
        if !name.eq_ignore_ascii_case("connection") {
            continue;
        }
        let value = std::str::from_utf8(value).map_err(|_| bad("`connection` is not a list of names"))?;
        for named in value.split(',').map(str::trim) {
            if named.eq_ignore_ascii_case("content-length") || named.eq_ignore_ascii_case("host") {
                return Err(bad("`connection` names a header that says what the request is"));
            }
            dropped.push(named);
        }
    }
    Ok(dropped)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use herma_net::head;

    use super::super::limits::HEAD_LIMITS;
    use super::*;

    const PIECES: &[&str] = &[
        "GET http://example.org/a?b HTTP/1.1\r\n",
        "POST http://example.org:8080 HTTP/1.1\r\n",
        "CONNECT example.org:443 HTTP/1.1\r\n",
        "Host: example.org\r\n",
        "Host: example.org:8080\r\n",
        "host: evil.example\r\n",
        "Content-Length: 5\r\n",
        "content-length: 0\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: close, x-a, te\r\n",
        "Connection: Content-Length\r\n",
        "X-A: 1\r\n",
        "TE: trailers\r\n",
        "x: \u{e9}\r\n",
        " folded\r\n",
        "\r",
        "\n",
        " ",
        "x",
        ":",
    ];

    fn named<'a>(request: &'a http::Request<()>, name: &str) -> Vec<&'a [u8]> {
        request.headers().get_all(name).iter().map(HeaderValue::as_bytes).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn a_forwarded_request_has_one_interpretation(
            first in 0usize..3, host in 3usize..5, rest in prop::collection::vec(0..PIECES.len(), 0..4),
            garbage in prop::collection::vec(any::<u8>(), 0..3),
        ) {
            let pieces: String = [first, host].iter().chain(&rest).map(|at| PIECES[*at]).collect();
            let bytes = [pieces.trim_end_matches("\r\n").as_bytes(), &garbage].concat();
            let Ok(head) = head::parse(&bytes, HEAD_LIMITS) else { return Ok(()) };
            let Ok(request) = read(&head) else { return Ok(()) };
            let Some(sent) = request.plain else {
                prop_assert!(bytes.starts_with(b"CONNECT "));
                return Ok(());
            };
            prop_assert!(sent.uri().to_string().starts_with('/'));
            prop_assert_eq!(named(&sent, "host").len(), 1);
            prop_assert!(named(&sent, "host")[0].starts_with(b"example.org"));
            prop_assert_eq!(named(&sent, "connection"), vec![b"close".as_slice()]);
            prop_assert!(named(&sent, "transfer-encoding").is_empty() && named(&sent, "te").is_empty());
            let lengths = named(&sent, "content-length");
            let length: u64 = lengths.first().map_or(0, |text| std::str::from_utf8(text).unwrap().parse().unwrap());
            prop_assert!(lengths.len() <= 1 && length == head.body_length);
        }

        #[test]
        fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = head::parse(&bytes, HEAD_LIMITS).map_err(BadRequest::from).and_then(|head| read(&head));
        }
    }
}
