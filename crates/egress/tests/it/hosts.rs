//! Hosts have one spelling.

use herma_egress::Host;
use herma_egress::host::BadHost;
use proptest::prelude::*;

#[test]
fn an_ambiguous_host_is_refused() {
    let long_label = format!("{}.example", "a".repeat(64));
    let long_name = format!("{}example", "abcdefg.".repeat(32));
    let rows: &[(&str, BadHost)] = &[
        ("", BadHost::Empty),
        (".", BadHost::EmptyLabel),
        ("example.org.", BadHost::TrailingDot),
        (".example.org", BadHost::EmptyLabel),
        ("example..org", BadHost::EmptyLabel),
        ("localhost", BadHost::Short),
        ("metadata", BadHost::Short),
        ("bücher.example", BadHost::NotAscii),
        ("ex\u{430}mple.org", BadHost::NotAscii),
        ("example\u{3002}org", BadHost::NotAscii),
        ("exa mple.org", BadHost::Character),
        ("exa_mple.org", BadHost::Character),
        ("example.org\0.evil.example", BadHost::Character),
        ("example.org%00", BadHost::Character),
        ("example.org/", BadHost::Character),
        ("user@example.org", BadHost::Character),
        ("-a.example", BadHost::Character),
        ("a-.example", BadHost::Character),
        ("*.example.org", BadHost::Character),
        (&long_label, BadHost::TooLong),
        (&long_name, BadHost::TooLong),
        ("127.1", BadHost::Address),
        ("2130706433", BadHost::Address),
        ("0x7f000001", BadHost::Address),
        ("0x7f.0.0.1", BadHost::Address),
        ("127.0.0.0x1", BadHost::Address),
        ("0177.0.0.1", BadHost::Address),
        ("127.0.0.01", BadHost::Address),
        ("127.0.0.1.", BadHost::TrailingDot),
        ("1.2.3.4.5", BadHost::Address),
        ("example.123", BadHost::Address),
        ("::1", BadHost::Character),
        ("[::1", BadHost::Address),
        ("[fe80::1%eth0]", BadHost::Address),
        ("[example.org]", BadHost::Address),
        ("[127.0.0.1]", BadHost::Address),
    ];
    for (text, why) in rows {
        assert_eq!(Host::parse(text), Err(*why), "{text:?}");
    }
}

#[test]
fn hosts_are_shown_in_their_one_spelling() {
    for (text, shown) in [
        ("EXAMPLE.org", "example.org"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("1.2.3.4", "1.2.3.4"),
        ("1a.2b", "1a.2b"),
        ("[2606:4700:0:0::1111]", "[2606:4700::1111]"),
    ] {
        assert_eq!(Host::parse(text).unwrap().to_string(), shown);
    }
}

proptest! {
    #[test]
    fn whatever_is_taken_is_taken_the_same_when_shown(text in "[a-zA-Z0-9.:\\[\\]x-]{0,20}") {
        if let Ok(host) = Host::parse(&text) {
            prop_assert_eq!(Host::parse(&host.to_string()), Ok(host));
        }
    }
}
