use proptest::prelude::*;

use super::*;

const LIMITS: HeadLimits = HeadLimits { max_bytes: 64 << 10, max_headers: 100 };

/// The length of the body behind a head; `None` while the head is incomplete.
fn body_length(text: &str) -> Result<Option<u64>, BadHead> {
    let Some(end) = find_end(text.as_bytes(), 0, LIMITS)? else { return Ok(None) };
    validate(&text.as_bytes()[..end], LIMITS).map(Some)
}

#[test]
fn a_head_that_parsers_read_differently_is_refused() {
    let rows = [
        ("POST / HTTP/1.1\r\na: 1\r\n b\r\n\r\n", BadHead::Folded),
        ("POST / HTTP/1.1\r\na: 1\r\n\tb\r\n\r\n", BadHead::Folded),
        ("POST / HTTP/1.1\r\n a: 1\r\n\r\n", BadHead::Folded),
        ("POST / HTTP/1.1\r\na: 1\rb: 2\r\n\r\n", BadHead::LineEnd),
        ("POST / HTTP/1.1\r\na: 1\r\r\n\r\n", BadHead::LineEnd),
        ("POST / HTTP/1.1\na: 1\r\n\r\n", BadHead::LineEnd),
        ("POST / HTTP/1.1\n\n", BadHead::LineEnd),
        ("POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\n", BadHead::ContentLength),
        ("POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", BadHead::ContentLength),
        ("POST / HTTP/1.1\r\ncontent-length: 1, 1\r\n\r\n", BadHead::ContentLength),
        ("POST / HTTP/1.1\r\ncontent-length: 1 1\r\n\r\n", BadHead::ContentLength),
        ("POST / HTTP/1.1\r\ncontent-length: +1\r\n\r\n", BadHead::ContentLength),
        ("POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", BadHead::ContentLength),
        ("POST / HTTP/1.1\r\ncontent-length: 0x1\r\n\r\n", BadHead::ContentLength),
        ("POST / HTTP/1.1\r\ncontent-length: \r\n\r\n", BadHead::ContentLength),
        ("POST / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n", BadHead::ContentLength),
        (
            "POST / HTTP/1.1\r\ncontent-length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            BadHead::TransferEncoding,
        ),
        ("POST / HTTP/1.1\r\ntransfer-encoding: x\r\ncontent-length: 1\r\n\r\n", BadHead::TransferEncoding),
        ("POST / HTTP/1.1\r\nTRANSFER-ENCODING: CHUNKED\r\n\r\n", BadHead::TransferEncoding),
        ("POST / HTTP/1.1\r\ntransfer-encoding:\tchunked\r\n\r\n", BadHead::TransferEncoding),
        ("POST / HTTP/1.1\r\ntransfer-encoding: chunked, identity\r\n\r\n", BadHead::TransferEncoding),
        ("POST / HTTP/1.1\r\ntransfer-encoding: \"chunked\"\r\n\r\n", BadHead::TransferEncoding),
        ("POST / HTTP/1.1\r\ntransfer-encoding : chunked\r\n\r\n", BadHead::Header),
        ("POST / HTTP/1.1\r\ncontent-length : 1\r\n\r\n", BadHead::Header),
        ("POST / HTTP/1.1\r\n: 1\r\n\r\n", BadHead::Header),
        ("POST / HTTP/1.1\r\na(b): 1\r\n\r\n", BadHead::Header),
        ("POST / HTTP/1.1\r\na: \0\r\n\r\n", BadHead::Header),
        ("POST / HTTP/1.1\r\na: \x7f\r\n\r\n", BadHead::Header),
        ("POST / HTTP/1.1\r\nnothing\r\n\r\n", BadHead::Header),
        ("POST /\r\n\r\n", BadHead::RequestLine),
        ("POST  / HTTP/1.1\r\n\r\n", BadHead::RequestLine),
        ("POST / HTTP/1.1 \r\n\r\n", BadHead::RequestLine),
        ("POST / HTTP/2.0\r\n\r\n", BadHead::RequestLine),
        ("POST / http/1.1\r\n\r\n", BadHead::RequestLine),
        ("POST a HTTP/1.1\r\n\r\n", BadHead::RequestLine),
        ("POST /\u{e9} HTTP/1.1\r\n\r\n", BadHead::RequestLine),
        ("PO(ST / HTTP/1.1\r\n\r\n", BadHead::RequestLine),
        (" / HTTP/1.1\r\n\r\n", BadHead::RequestLine),
        ("\r\nPOST / HTTP/1.1\r\n\r\n", BadHead::EmptyLine),
        ("\r\n\r\n", BadHead::EmptyLine),
    ];
    for (head, bad) in rows {
        assert_eq!(body_length(head), Err(bad), "{head:?}");
    }
    let too_large = Err(BadHead::TooLarge { max_bytes: LIMITS.max_bytes });
    let large = "x".repeat(LIMITS.max_bytes);
    assert_eq!(body_length(&format!("GET / HTTP/1.1\r\na: {large}")), too_large);
    assert_eq!(body_length(&format!("GET / HTTP/1.1\r\na: {large}\r\n\r\n")), too_large);
    let many = "a: 1\r\n".repeat(LIMITS.max_headers + 1);
    let too_many = Err(BadHead::TooManyHeaders { max_headers: LIMITS.max_headers });
    assert_eq!(body_length(&format!("GET / HTTP/1.1\r\n{many}\r\n")), too_many);
}

#[test]
fn every_form_of_a_target_is_parsed() {
    for (method, target) in
        [("GET", "/a?b=c"), ("GET", "http://example.org/a"), ("CONNECT", "example.org:443"), ("OPTIONS", "*")]
    {
        let text = format!("{method} {target} HTTP/1.1\r\nHost: a\r\nX:\tb \r\nContent-Length: 7");
        let head = parse(text.as_bytes(), LIMITS).unwrap();
        assert_eq!((head.method, head.target, head.version), (method, target, HttpVersion::Http11));
        assert_eq!(head.headers, [("Host", &b"a"[..]), ("X", b"b"), ("Content-Length", b"7")]);
        assert_eq!(head.body_length, 7);
    }
}

#[test]
fn a_head_is_found_wherever_it_is_split() {
    let text = b"POST /v1/messages HTTP/1.1\r\nhost: a\r\nContent-Length: 12\r\n\r\nhello, world";
    let end = text.len() - b"\r\n\r\nhello, world".len();
    for first in 0..text.len() {
        let before = find_end(&text[..first], 0, LIMITS).unwrap();
        assert_eq!(before, (first >= end + 4).then_some(end), "split at {first}");
        assert_eq!(find_end(text, first.min(end), LIMITS), Ok(Some(end)), "split at {first}");
    }
}

const PIECES: &[&str] = &[
    "GET /a HTTP/1.1\r\n",
    "POST http://a/ HTTP/1.0\r\n",
    "CONNECT a:1 HTTP/1.1\r\n",
    "Host: a\r\n",
    "Content-Length: 5\r\n",
    "content-length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "x: \u{e9}\r\n",
    " folded\r\n",
    "\r\n",
    "\r",
    "\n",
    " ",
    "x",
    ":",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// The parser that hyper uses agrees with every head that is accepted here.
    #[test]
    fn an_accepted_head_is_read_alike_by_httparse(
        first in 0usize..3, rest in prop::collection::vec(0..PIECES.len(), 0..6),
        garbage in prop::collection::vec(any::<u8>(), 0..3),
    ) {
        let pieces: String = [first].iter().chain(&rest).map(|at| PIECES[*at]).collect();
        let bytes = [pieces.as_bytes(), &garbage, END].concat();
        let Ok(Some(end)) = find_end(&bytes, 0, LIMITS) else { return Ok(()) };
        let Ok(ours) = parse(&bytes[..end], LIMITS) else { return Ok(()) };
        let mut headers = [httparse::EMPTY_HEADER; 100];
        let mut theirs = httparse::Request::new(&mut headers);
        prop_assert_eq!(theirs.parse(&bytes), Ok(httparse::Status::Complete(end + END.len())));
        prop_assert_eq!((theirs.method, theirs.path), (Some(ours.method), Some(ours.target)));
        prop_assert_eq!(theirs.version == Some(1), ours.version == HttpVersion::Http11);
        let theirs: Vec<_> = theirs.headers.iter().map(|header| (header.name, header.value)).collect();
        prop_assert_eq!(theirs, ours.headers);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), scanned in 0usize..90) {
        let _ = find_end(&bytes, scanned, LIMITS);
        let _ = parse(&bytes, LIMITS);
    }
}
