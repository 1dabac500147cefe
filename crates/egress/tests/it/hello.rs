//! TLS hellos: what is read from them, however they are cut.

use herma_egress::Host;
use herma_egress::client_hello::{ClientHelloError, MAX_HELLO_BYTES, MAX_MESSAGE_BYTES, Read, Reader, read};
use proptest::prelude::*;

use super::hellos::{ENCRYPTED, Hello, entry, long, message, record};

/// The result of the SNI check of a tunnel to `host` for these bytes; `None` if they are not enough.
fn judge(bytes: &[u8], host: &str) -> Option<Result<(), ClientHelloError>> {
    match read(bytes) {
        Read::More => None,
        Read::ClientHello(hello) => Some(hello.check_sni(&Host::parse(host).unwrap())),
        Read::Refused(bad) => Some(Err(bad)),
    }
}

#[test]
fn a_hello_must_name_the_host_of_the_tunnel() {
    let rows: &[(Hello, &str, Result<(), ClientHelloError>)] = &[
        (Hello::of("example.org"), "example.org", Ok(())),
        (Hello::of("EXAMPLE.org"), "example.org", Ok(())),
        (Hello::of("example.org"), "example.com", Err(ClientHelloError::SniMismatch)),
        (Hello::of("a.example.org"), "example.org", Err(ClientHelloError::SniMismatch)),
        (Hello::silent(), "example.org", Err(ClientHelloError::NoName)),
        (Hello::silent(), "8.8.8.8", Ok(())),
        (Hello::of("example.org"), "8.8.8.8", Err(ClientHelloError::SniMismatch)),
        (Hello::of("8.8.8.8"), "8.8.8.8", Err(ClientHelloError::BadName)),
        (Hello::of("example.org."), "example.org", Err(ClientHelloError::BadName)),
        (Hello::of("example.org\0"), "example.org", Err(ClientHelloError::BadName)),
        (Hello::of(""), "example.org", Err(ClientHelloError::BadName)),
        (Hello::of("example.org").with(ENCRYPTED, vec![0]), "example.org", Err(ClientHelloError::Encrypted)),
        (Hello::silent().with(ENCRYPTED, vec![]), "8.8.8.8", Err(ClientHelloError::Encrypted)),
        (Hello::of("example.org").with(0xffce, vec![]), "example.org", Err(ClientHelloError::Encrypted)),
        (Hello::of("example.org").with(0xff02, vec![]), "example.org", Err(ClientHelloError::Encrypted)),
        (Hello::of("example.org").with(0xff03, vec![]), "example.org", Err(ClientHelloError::Encrypted)),
    ];
    for (hello, host, judged) in rows {
        assert_eq!(judge(&hello.bytes(), host), Some(*judged), "{hello:?} to {host}");
    }
}

#[test]
fn a_hello_in_which_another_reader_could_find_another_name_is_refused() {
    let host = b"example.org".as_slice();
    let named = || Hello::of("example.org");
    let two = [entry(0, host), entry(0, b"evil.example")].concat();
    let misfit = ClientHelloError::Malformed("the list of names does not fit");
    let rows: Vec<(Hello, ClientHelloError)> = vec![
        (Hello::silent().with(0, long(&two)), ClientHelloError::TwoNames),
        (named().with(0, long(&entry(0, b"evil.example"))), ClientHelloError::TwoNames),
        (named().with(0, long(&entry(0, host))), ClientHelloError::TwoNames),
        (Hello::silent().with(0, long(&entry(1, host))), ClientHelloError::BadName),
        (
            Hello::silent().with(0, long(&[entry(1, b"x"), entry(0, host)].concat())),
            ClientHelloError::TwoNames,
        ),
        (Hello::silent().with(0, [long(&entry(0, host)), vec![0]].concat()), misfit),
        (Hello::silent().with(0, vec![]), misfit),
        (Hello::silent().with(0, vec![0, 0]), misfit),
        (Hello::silent().with(0, vec![0, 3, 0, 0, 9]), misfit),
        (named().with(43, vec![2, 3, 4]), ClientHelloError::Malformed("an extension is there twice")),
        (
            Hello { after: named().message(), ..named() },
            ClientHelloError::Malformed("something follows it in the same record"),
        ),
    ];
    for (hello, bad) in rows {
        assert_eq!(judge(&hello.bytes(), "example.org"), Some(Err(bad)), "{hello:?}");
    }
}

#[test]
fn other_protocols_are_refused_by_their_first_byte() {
    for bytes in [&b"GET / HTTP/1.1\r\n"[..], b"SSH-2.0-x\r\n", &[0x80, 0x2e, 1], &[23, 3, 3], &[0], b"\r\n"]
    {
        assert_eq!(judge(&bytes[..1], "example.org"), Some(Err(ClientHelloError::NotTls)), "{bytes:?}");
    }
    for bytes in [&[22, 2][..], &[22, 3, 0], &[22, 3, 4], &record(&message(2, &[0; 40]))] {
        assert_eq!(judge(bytes, "example.org"), Some(Err(ClientHelloError::NotTls)), "{bytes:?}");
    }
}

#[test]
fn a_malformed_hello_is_refused() {
    let good = Hello::of("example.org");
    let body = &good.message()[4..];
    let rows: Vec<Vec<u8>> = vec![
        vec![22, 3, 1, 0, 0],
        vec![22, 3, 1, 0x40, 1],
        record(&message(1, b"")),
        record(&message(1, &body[..body.len() - 1])),
        record(&message(1, &[body, &[0]].concat())),
        [&record(&good.message()[..10])[..], &[23, 3, 3, 0, 1]].concat(),
    ];
    for bytes in rows {
        let judged = judge(&bytes, "example.org");
        assert!(matches!(judged, Some(Err(ClientHelloError::Malformed(_)))), "{judged:?}: {bytes:?}");
    }
}

#[test]
fn a_hello_without_extensions_names_nobody() {
    let mut body = Hello::default().message()[4..].to_vec();
    body.truncate(body.len() - 2);
    assert_eq!(judge(&record(&message(1, &body)), "example.org"), Some(Err(ClientHelloError::NoName)));
}

#[test]
fn a_hello_is_bounded_in_its_message_and_on_the_wire() {
    let padded = |by| Hello::of("example.org").with(21, vec![0; by]);
    let fits = MAX_MESSAGE_BYTES - padded(0).message().len();
    assert_eq!(judge(&padded(fits).in_records(16 << 10), "example.org"), Some(Ok(())));
    let large = padded(fits + 1).in_records(16 << 10);
    assert_eq!(judge(&large, "example.org"), Some(Err(ClientHelloError::TooLarge)));
    assert_eq!(
        judge(&large[..9], "example.org"),
        Some(Err(ClientHelloError::TooLarge)),
        "its length says so at once"
    );
    let crumbs = padded(MAX_HELLO_BYTES / 6).in_records(1);
    assert_eq!(judge(&crumbs[..MAX_HELLO_BYTES], "example.org"), None);
    assert_eq!(judge(&crumbs, "example.org"), Some(Err(ClientHelloError::TooLarge)));
}

/// Messages that clients really send, captured from their connections.
#[test]
fn the_hellos_of_real_clients_are_read() {
    for (client, hex) in [
        ("openssl", include_str!("../golden/openssl.hex")),
        ("python", include_str!("../golden/python.hex")),
        ("curl", include_str!("../golden/curl.hex")),
        ("tls 1.2 only", include_str!("../golden/tls12.hex")),
    ] {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        let bytes: Vec<u8> = pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
        assert_eq!(judge(&bytes, "example.org"), Some(Ok(())), "{client}");
        assert_eq!(judge(&bytes, "example.com"), Some(Err(ClientHelloError::SniMismatch)), "{client}");
        for end in 0..bytes.len() {
            assert_eq!(judge(&bytes[..end], "example.org"), None, "{client} up to {end}");
        }
    }
}

fn hellos() -> impl Strategy<Value = Vec<u8>> {
    let extension = (
        prop::sample::select(vec![0u16, 10, 16, 43, 51, ENCRYPTED]),
        prop::collection::vec(any::<u8>(), 0..40),
    );
    let name = prop::sample::select(vec!["example.org", "a.example", "bad", "8.8.8.8", "x.example."]);
    let made = (prop::option::weighted(0.8, name), prop::collection::vec(extension, 0..3), 1usize..200);
    let hello = made.prop_map(|(name, extensions, of)| {
        let mut hello = name.map_or_else(Hello::silent, Hello::of);
        hello.extensions.extend(extensions);
        hello.in_records(of)
    });
    // A byte is changed in some of them, and something follows.
    (
        hello,
        prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        prop::collection::vec(any::<u8>(), 0..20),
    )
        .prop_map(|(mut hello, change, after)| {
            if let Some((at, byte)) = change {
                let at = at.index(hello.len());
                hello[at] = byte;
            }
            hello.extend(after);
            hello
        })
}

fn in_parts(bytes: &[u8], cuts: &[prop::sample::Index]) -> Read {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let mut reader = Reader::default();
    let mut said = Read::More;
    for ends in cuts.windows(2) {
        let now = reader.push(&bytes[ends[0]..ends[1]]);
        assert!(said == Read::More || now == said, "it changed its mind");
        said = now;
    }
    said
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn however_a_hello_is_cut_it_says_the_same(
        bytes in hellos(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        prop_assert_eq!(in_parts(&bytes, &cuts), read(&bytes));
        let mut reader = Reader::default();
        let mut said = Read::More;
        for byte in &bytes {
            said = reader.push(&[*byte]);
        }
        prop_assert_eq!(said, read(&bytes));
    }

    #[test]
    fn however_the_records_are_cut_the_name_is_the_same(of in 1usize..300, host in "[a-z]{1,10}\\.[a-z]{2,9}") {
        let hello = Hello::of(&host);
        prop_assert_eq!(read(&hello.in_records(of)), read(&hello.bytes()));
        prop_assert_eq!(judge(&hello.in_records(of), &host), Some(Ok(())));
    }

    #[test]
    fn garbage_is_never_taken_for_a_hello_that_names_somebody(
        start in prop::sample::select(vec![vec![], vec![22], vec![22, 3, 1], vec![22, 3, 1, 0, 60, 1, 0, 0, 56, 3, 3]]),
        garbage in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let bytes = [start, garbage].concat();
        prop_assert!(judge(&bytes, "example.org") != Some(Ok(())));
    }
}
