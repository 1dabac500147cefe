//! Neither key nor endpoint gets out, in no message and in no body.

use std::fmt::{Debug, Display};

use herma_dialect::endpoint::Endpoint;
use herma_router::upstream::Upstream;
use proptest::prelude::*;

use super::kit::{FINE, KEY, answering, asking, configured, http, up, up_with};

const HOST: &str = "models.canary.example";
const SECRETS: [&str; 4] = [KEY, "canary", "127.0.0.1", "/secret/path"];

fn silent(said: &str) {
    for secret in SECRETS {
        assert!(!said.contains(secret), "{secret} in {said}");
    }
}

fn says_nothing(shown: &(impl Debug + Display)) {
    silent(&format!("{shown} {shown:?} {shown:#?}"));
}

#[tokio::test]
async fn nothing_that_can_be_shown_has_key_or_endpoint() {
    let (address, _) = answering(FINE).await;
    for provider in ["openai", "anthropic", "compatible"] {
        let upstream = up(provider, &format!("{}/secret/path", http(address)));
        silent(&format!("{upstream:?} {upstream:#?}"));
        let endpoint = if provider == "anthropic" { Endpoint::Messages } else { Endpoint::Chat };
        let response = upstream.send(asking(endpoint)).await.unwrap();
        silent(&format!("{response:?} {:#?} {:?}", response, response.extensions().len()));
        assert!(response.extensions().is_empty(), "they hold the address");
        let mut outgoing = asking(endpoint);
        outgoing.body = KEY.into();
        silent(&format!("{outgoing:?}"));
    }
}

#[tokio::test]
async fn no_failure_has_key_or_endpoint() {
    let refused = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (garbage, _) = answering("canary-4f9d is not HTTP\r\n\r\n").await;
    for url in [
        http(refused),
        format!("https://{refused}/secret/path"),
        format!("https://{HOST}.invalid"),
        http(garbage),
        format!("https://{garbage}"),
    ] {
        let error = up("openai", &url).send(asking(Endpoint::Chat)).await.unwrap_err();
        says_nothing(&error);
        silent(error.code());
    }
}

#[tokio::test]
async fn no_upstream_that_cannot_be_used_shows_why_in_full() {
    let lines = "provider = \"openai\"\nkey = { env = \"KEY\" }\nurl = { env = \"URL\" }\n";
    let roots = format!("{lines}roots = \"/nowhere/roots.pem\"");
    says_nothing(&configured(&roots, &format!("https://{HOST}"), "").unwrap_err());
    let missing = "provider = \"scripted\"\nscripts = [\"/nowhere/script.yaml\"]";
    says_nothing(&configured(missing, "", "").unwrap_err());
}

#[test]
fn key_and_endpoint_are_scrubbed_from_responses() {
    let upstream = up("compatible", &format!("https://{HOST}:8443/hidden/path/v1"));
    let rows = [
        (format!("Bad key {KEY}."), "Bad key [removed by herma]."),
        (format!("{KEY}{KEY}"), "[removed by herma][removed by herma]"),
        (KEY.replace('/', "\\/"), "[removed by herma]"),
        (format!("POST https://{HOST}:8443/hidden/path/v1/chat"), "POST [removed by herma]/chat"),
        (
            format!("POST https:\\/\\/{HOST}:8443\\/hidden\\/path\\/v1\\/chat"),
            "POST [removed by herma]\\/chat",
        ),
        (format!("{HOST}:8443"), "[removed by herma]"),
        ("at Models.CANARY.Example, port 8443".to_owned(), "at [removed by herma], port 8443"),
        ("POST /Hidden/path/v1/chat/completions".to_owned(), "POST [removed by herma]/chat/completions"),
        ("nothing at /hidden/path".to_owned(), "nothing at [removed by herma]"),
        (r"POST \/hidden\/path\/v1\/chat".to_owned(), r"POST [removed by herma]\/chat"),
    ];
    for (said, left) in rows {
        assert_eq!(
            upstream.scrub(said.as_bytes()).map(|left| String::from_utf8(left).unwrap()),
            Some(left.to_owned())
        );
    }
    for clean in ["", "sk-canary", "example", "/v1/chat/completions", "[removed by herma]"] {
        assert_eq!(upstream.scrub(clean.as_bytes()), None, "{clean}");
    }
}

#[test]
fn a_providers_own_endpoint_is_no_secret() {
    let own = configured("provider = \"openai\"\nkey = { env = \"KEY\" }", "unused", "").unwrap();
    assert_eq!(own.scrub(b"see https://api.openai.com/v1"), None);
    assert!(own.scrub(KEY.as_bytes()).is_some());
}

proptest! {
    #[test]
    fn whatever_stands_around_it_nothing_stays(
        parts in prop::collection::vec(
            prop_oneof![
                Just(KEY.to_owned()),
                Just(HOST.to_owned()),
                Just(HOST.to_ascii_uppercase()),
                Just(format!("https://{HOST}/v1")),
                "[a-z./]{0,6}",
            ],
            0..12,
        ),
    ) {
        static UPSTREAM: std::sync::LazyLock<Upstream> =
            std::sync::LazyLock::new(|| up_with("compatible", &format!("https://{HOST}/v1"), ""));
        let said = parts.concat();
        let secret = |text: &str| text.contains(KEY) || text.to_ascii_lowercase().contains(HOST);
        match UPSTREAM.scrub(said.as_bytes()) {
            Some(left) => {
                prop_assert!(secret(&said));
                prop_assert!(!secret(std::str::from_utf8(&left).unwrap()));
            }
            None => prop_assert!(!secret(&said)),
        }
    }
}
