//! Fuzzes the validation of HTTP/1 request heads.

use herma_net::head::{HeadLimits, HttpVersion, find_end, parse, validate};

const LIMITS: HeadLimits = HeadLimits { max_bytes: 8 << 10, max_headers: 100 };

/// A head ends at the same place however its bytes arrive. The parser that hyper uses reads every accepted head alike, and
/// there is one answer to how long its body is.
pub fn http_head(input: &[u8]) {
    let found = find_end(input, 0, LIMITS);
    let mut by_byte = Ok(None);
    for length in 1..=input.len() {
        by_byte = find_end(&input[..length], length - 1, LIMITS);
        if !matches!(by_byte, Ok(None)) {
            break;
        }
    }
    let Ok(Some(end)) = found else {
        assert!(found.is_ok() || by_byte != Ok(None), "refused at once, and not byte by byte");
        return;
    };
    let head = &input[..end];
    let Ok(ours) = parse(head, LIMITS) else {
        assert!(validate(head, LIMITS).is_err());
        return;
    };
    assert_eq!(by_byte, Ok(Some(end)), "an accepted head ends elsewhere when it comes byte by byte");
    assert_eq!(validate(head, LIMITS), Ok(ours.body_length));

    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut theirs = httparse::Request::new(&mut headers);
    assert_eq!(theirs.parse(input), Ok(httparse::Status::Complete(end + 4)));
    assert_eq!((theirs.method, theirs.path), (Some(ours.method), Some(ours.target)));
    assert_eq!(theirs.version == Some(1), ours.version == HttpVersion::Http11);
    let theirs: Vec<_> = theirs.headers.iter().map(|header| (header.name, header.value)).collect();
    assert_eq!(theirs, ours.headers);

    let named =
        |name: &str| ours.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).count();
    assert_eq!(named("transfer-encoding"), 0);
    assert!(named("content-length") <= 1);
    assert!(ours.body_length == 0 || named("content-length") == 1);
}
