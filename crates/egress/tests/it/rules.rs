//! Decisions of the list.

use herma_core::Timestamp;
use herma_egress::rules::{EgressRequest, Listing, Method, RequestKind};
use herma_egress::{Allowlist, Host, Reason};
use proptest::prelude::*;

fn tunnel(host: &str, port: u16) -> EgressRequest {
    EgressRequest { host: Host::parse(host).unwrap(), port, kind: RequestKind::Tunnel }
}

fn plain(method: Method, host: &str, port: u16) -> EgressRequest {
    EgressRequest { host: Host::parse(host).unwrap(), port, kind: RequestKind::Plain(method) }
}

/// The rule that allows it, or the reason why none does.
fn decide(rules: &[&str], asked: &EgressRequest) -> Result<String, Reason> {
    let decision = Allowlist::parse(rules).unwrap().decide(asked, Timestamp::UNIX_EPOCH);
    assert_eq!((&decision.host, decision.port), (&asked.host, asked.port));
    match decision.listing {
        Listing::Allowed { rule, until: None } => Ok(rule),
        Listing::Allowed { .. } => panic!("no rule here ends"),
        Listing::Denied(reason) => Err(reason),
    }
}

#[test]
fn an_empty_list_allows_nothing() {
    assert_eq!(decide(&[], &tunnel("example.org", 443)), Err(Reason::NotListed));
}

#[test]
fn a_host_is_allowed_exactly_as_it_is_listed() {
    let rules = ["Example.org", "b.example:8443", "8.8.8.8", "[2606:4700::1111]:853"];
    let allowed = |host, port| decide(&rules, &tunnel(host, port));
    assert_eq!(allowed("example.ORG", 443), Ok("example.org".to_owned()));
    assert_eq!(allowed("b.example", 8443), Ok("b.example:8443".to_owned()));
    assert_eq!(allowed("8.8.8.8", 443), Ok("8.8.8.8".to_owned()));
    assert_eq!(allowed("[2606:4700:0::1111]", 853), Ok("[2606:4700::1111]:853".to_owned()));
    assert_eq!(allowed("b.example", 443), Err(Reason::PortNotListed));
    assert_eq!(allowed("a.example.org", 443), Err(Reason::NotListed));
    assert_eq!(allowed("example.org.evil.example", 443), Err(Reason::NotListed));
    assert_eq!(allowed("evil-example.org", 443), Err(Reason::NotListed));
    assert_eq!(allowed("8.8.4.4", 443), Err(Reason::NotListed));
}

#[test]
fn a_star_allows_what_lies_below_and_not_the_domain_itself() {
    let allowed = |host| decide(&["*.example.org"], &tunnel(host, 443)).is_ok();
    assert!(allowed("a.example.org") && allowed("a.b.example.org"));
    assert!(!allowed("example.org") && !allowed("aexample.org") && !allowed("a.example.org.evil.example"));
    assert!(!allowed("8.8.8.8"));
}

#[test]
fn plain_http_needs_a_rule_of_its_own_and_reads_only_unless_more_is_said() {
    let rules = ["https-only.example", "http://mirror.example", "GET,POST http://api.example:8080"];
    let ask = |asked: EgressRequest| decide(&rules, &asked);
    assert_eq!(ask(plain(Method::Get, "mirror.example", 80)), Ok("http://mirror.example".to_owned()));
    assert!(ask(plain(Method::Head, "mirror.example", 80)).is_ok());
    assert_eq!(ask(plain(Method::Post, "mirror.example", 80)), Err(Reason::MethodNotListed));
    assert_eq!(
        ask(plain(Method::Post, "api.example", 8080)),
        Ok("GET,POST http://api.example:8080".to_owned())
    );
    assert_eq!(ask(plain(Method::Head, "api.example", 8080)), Err(Reason::MethodNotListed));
    assert_eq!(ask(plain(Method::Get, "https-only.example", 443)), Err(Reason::PlainNotListed));
    assert_eq!(ask(plain(Method::Get, "https-only.example", 80)), Err(Reason::PortNotListed));
    assert_eq!(ask(tunnel("mirror.example", 80)), Err(Reason::TlsNotListed));
}

#[test]
fn a_bad_rule_is_named_with_the_expected_form() {
    let rows: &[(&str, &str)] = &[
        ("", "there is no host"),
        ("*", "`*` stands only at the beginning"),
        ("*.org", "a whole top-level domain is too much"),
        ("*.*.example.org", "letters, digits"),
        ("a.*.example", "`*` stands only at the beginning"),
        ("*example.org", "`*` stands only at the beginning"),
        ("localhost", "a name is full"),
        ("example.org.", "no dot at its end"),
        ("bücher.example", "begins with `xn--`"),
        ("example.org:0", "a port is a number"),
        ("example.org:65536", "a port is a number"),
        ("example.org:0443", "a port is a number"),
        ("example.org:+443", "a port is a number"),
        ("example.org:", "a port is a number"),
        ("https://example.org", "TLS is written without a scheme"),
        ("ftp://example.org", "TLS is written without a scheme"),
        ("example.org/path", "without user, path or query"),
        ("http://example.org/", "without user, path or query"),
        ("http://user@example.org", "without user, path or query"),
        ("GET example.org", "methods are for plain HTTP"),
        ("get http://example.org", "`get` is not one of GET"),
        ("CONNECT http://example.org", "`CONNECT` is not one of GET"),
        (" http://example.org", "`` is not one of GET"),
        ("GET  http://example.org", "methods are for plain HTTP"),
        ("127.0.0.1", "the address is not public"),
        ("169.254.169.254:80", "the address is not public"),
        ("http://10.0.0.1", "the address is not public"),
        ("[::ffff:8.8.8.8]", "the address is not public"),
        ("2606:4700::1111", "letters, digits"),
        ("exa\u{202e}mple.org", "begins with `xn--`"),
    ];
    for (entry, problem) in rows {
        let said = Allowlist::parse(&["fine.example", entry]).unwrap_err().to_string();
        assert!(said.contains(problem) && said.contains("expected `host`, `*.domain`"), "{entry}: {said}");
        assert!(entry.contains('\u{202e}') || said.contains(&format!("`{entry}`")), "{said}");
        assert!(!said.contains('\u{202e}'), "{said}");
    }
}

proptest! {
    #[test]
    fn a_rule_that_is_shown_is_the_same_rule(
        methods in prop::option::of(prop::sample::subsequence(Method::ALL.to_vec(), 1..=Method::ALL.len())),
        plain in any::<bool>(), star in any::<bool>(), port in prop::option::of(1u16..),
        host in "[a-zA-Z][a-z0-9]{0,5}(\\.[a-z][a-z0-9]{0,5}){1,3}",
    ) {
        let methods = methods.filter(|_| plain).map(|methods| {
            methods.iter().map(|method| method.as_str()).collect::<Vec<_>>().join(",") + " "
        });
        let entry = format!(
            "{}{}{}{host}{}",
            methods.unwrap_or_default(),
            if plain { "http://" } else { "" },
            if star { "*." } else { "" },
            port.map(|port| format!(":{port}")).unwrap_or_default(),
        );
        let rule: herma_egress::Rule = entry.parse().unwrap();
        prop_assert_eq!(rule.to_string().parse(), Ok(rule));
    }

    #[test]
    fn any_text_is_a_rule_or_an_error(text in ".{0,60}") {
        let _ = text.parse::<herma_egress::Rule>();
    }
}
