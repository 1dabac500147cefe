//! A model that is not admitted is refused before any upstream is contacted, however it is asked for.

use herma_core::model_call::Ended;

use super::client::request_with;
use super::kit::{ENDPOINTS, Router, Setup, TOKEN};
use super::server::{Server, fine};

/// Names that are not the model `m`, and are not its alias `also-m`.
const OTHERS: &[&str] = &[
    "other",
    "M",
    "m ",
    " m",
    "m\\t",
    "m\\n",
    "m\\u0000",
    "m\\u200b",
    "\\u043c",
    "\u{43c}",
    "\u{ff4d}",
    "m\u{301}",
    "",
    "model-a",
    "a/model-a",
    "a",
    "also-M",
    "also-m,m",
    "m,also-m",
    "m/../m",
    "*",
];

fn start() -> (Server, Router) {
    let server = fine();
    let router = Setup::new(&[&server]).limits("max_body = \"64KiB\"").start();
    (server, router)
}

/// Sees that nothing was asked, and that each of these requests has its record.
fn untouched(server: &Server, router: &Router, refused: usize, reason: &str) {
    for record in router.records(refused) {
        assert_eq!((record.ended, record.reason.as_deref()), (Ended::Refused, Some(reason)), "{record:?}");
        assert_eq!((record.call, record.attempts.len(), record.charged.requests), (None, 0, 0));
    }
    assert_eq!(server.connections(), 0);
    assert!(
        router.file("calls-begun").lines().all(|line| !line.contains("most")),
        "{}",
        router.file("calls-begun")
    );
    assert_eq!(router.budget().spent, herma_router::budget::Amount::default());
}

#[test]
fn another_model_is_refused_at_every_endpoint() {
    let (server, router) = start();
    let mut count = 0;
    for (path, body) in ENDPOINTS {
        for name in OTHERS {
            let body = body.replace(r#""model":"m""#, &format!(r#""model":"{name}""#));
            let reply = router.post(path, &body);
            let said = reply.error(path, 403);
            assert!(said.contains("is not admitted"), "{said}");
            assert_eq!(reply.header("x-should-retry"), Some("false"));
            count += 1;
        }
    }
    untouched(&server, &router, count, "model_mismatch");
    let refusals = router.handle().refusals("agent").unwrap();
    assert_eq!(refusals.models.len(), 20, "{refusals:?}");
}

#[test]
fn name_and_alias_pass_at_every_endpoint_and_the_upstream_gets_its_own_name() {
    let (server, router) = start();
    for (path, body) in ENDPOINTS {
        for name in ["m", "also-m", "\\u006d", "also\\u002dm"] {
            let reply = router.post(path, &body.replace(r#""model":"m""#, &format!(r#""model":"{name}""#)));
            assert_eq!(reply.status, 200, "{path} {name} {}", reply.text());
            assert_eq!(reply.header("x-herma-upstream"), Some("a/model-a"));
            assert!(server.last_body().contains(r#""model":"model-a""#), "{}", server.last_body());
        }
    }
    router.records(ENDPOINTS.len() * 4);
}

/// Bodies in which two readers would find two models.
const TWO_MODELS: &[&str] = &[
    r#"{"model":"m","model":"other",REST}"#,
    r#"{"model":"other","model":"m",REST}"#,
    r#"{"model":"m","model":"m",REST}"#,
    r#"{"model":"m",REST,"model":"other"}"#,
    r#"{"model":"m","mod\u0065l":"other",REST}"#,
    r#"{"mod\u0065l":"other","model":"m",REST}"#,
    r#"{"model":"m","Model":"other",REST}"#,
    r#"{"MODEL":"other","model":"m",REST}"#,
    r#"{"model":"m","\u004dodel":"other",REST}"#,
    r#"{"model":["m","other"],REST}"#,
    r#"{"model":{"model":"m"},REST}"#,
    r#"{"model":null,REST}"#,
    r#"{"model":1,REST}"#,
    r#"{"metadata":{"model":"m"},REST}"#,
    "{REST}",
    r#"{"model":"m",REST}{"model":"other",REST}"#,
    r#"{"model":"m",REST},"#,
    r#"{"model":"m",REST,}"#,
    r#"{"model":"m"/*,*/,"x":"other",REST}"#,
    r#"[{"model":"m",REST}]"#,
    r#""model""#,
    "",
    "null",
    "\u{feff}{\"model\":\"m\",REST}",
    "{\"model\":\"m\",REST}\0",
    "\0{\"model\":\"m\",REST}",
    "{\"model\":\"m\0\",REST}",
    "{\"model\":\"m\n\",REST}",
    "{'model':'m',REST}",
    r#"{"model":"m\ud800",REST}"#,
];

#[test]
fn ambiguous_requests_are_refused_at_every_endpoint() {
    let (server, router) = start();
    let mut count = 0;
    for (path, body) in ENDPOINTS {
        let rest = body.trim_start_matches(r#"{"model":"m","#).trim_end_matches('}');
        for trick in TWO_MODELS {
            let reply = router.post(path, &trick.replace("REST", rest));
            if trick.contains("ud800") {
                // Half of a pair stands for no character: it is no JSON, or another name.
                assert!(matches!(reply.status, 400 | 403), "{}", reply.text());
            } else {
                reply.error(path, 400);
            }
            count += 1;
        }
    }
    assert_eq!(server.connections(), 0);
    let records = router.records(count);
    assert!(records.iter().all(|record| record.ended == Ended::Refused && record.attempts.is_empty()));
}

#[test]
fn a_model_that_is_named_deeper_does_not_count() {
    let (server, router) = start();
    for (path, body) in ENDPOINTS {
        let rest = body.trim_start_matches(r#"{"model":"m","#).trim_end_matches('}');
        let deeper = format!(r#"{{"metadata":{{"model":"m"}},"model":"other",{rest}}}"#);
        router.post(path, &deeper).error(path, 403);
    }
    untouched(&server, &router, ENDPOINTS.len(), "model_mismatch");
}

#[test]
fn bodies_that_are_not_plain_json_are_refused_at_every_endpoint() {
    let (server, router) = start();
    let kinds = [
        "content-type: multipart/form-data; boundary=x\r\n",
        "content-type: text/plain\r\n",
        "content-type: application/x-www-form-urlencoded\r\n",
        "content-type: application/jsonx\r\n",
        "content-type: application/json, text/plain\r\n",
        "content-type: application/json\r\ncontent-type: multipart/form-data\r\n",
        "content-type: application/json\r\ncontent-encoding: gzip\r\n",
        "content-type: application/json\r\ncontent-encoding: identity, gzip\r\n",
        "content-type: application/json\r\ncontent-encoding: identity\r\ncontent-encoding: gzip\r\n",
        "",
    ];
    let mut count = 0;
    for (path, body) in ENDPOINTS {
        for kind in kinds {
            let multipart = "--x\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nm\r\n--x--\r\n";
            let body = if kind.contains("multipart") { multipart } else { body };
            let reply = router.client.send(
                format!(
                    "POST {path} HTTP/1.1\r\nhost: r\r\nauthorization: Bearer {TOKEN}\r\n{kind}\
                     content-length: {}\r\n\r\n{body}",
                    body.len()
                )
                .as_bytes(),
            );
            reply.error(path, 415);
            count += 1;
        }
    }
    untouched(&server, &router, count, "unsupported_media_type");
}

#[test]
fn a_body_that_is_too_large_is_refused_and_the_client_can_read_why() {
    let (server, router) = start();
    let mut count = 0;
    for (path, body) in ENDPOINTS {
        // Just beyond the limit, and so much that it does not fit into any buffer on the way.
        for size in [64 << 10, 20 << 20] {
            let body = body.replace("Hello.", &"x".repeat(size));
            let said = router.post(path, &body).error(path, 413);
            assert!(said.contains("at most 65536"), "{said}");
            count += 1;
        }
    }
    untouched(&server, &router, count, "too_large");
}

#[test]
fn only_the_exact_path_is_one() {
    let (server, router) = start();
    for (path, body) in ENDPOINTS {
        let tail = &path[3..];
        let escaped = path.replacen("/v1/", "/v1%2f", 1);
        for other in [
            format!("/{path}"),
            format!("/v1/{tail}"),
            format!("/v1/.{tail}"),
            format!("/v1/x/..{tail}"),
            format!("/x/..{path}"),
            format!("{path}/"),
            format!("{path}/."),
            format!("{path};x=1"),
            format!("{path}%20"),
            format!("{path}%00"),
            path.to_ascii_uppercase(),
            format!("/V1{tail}"),
            escaped,
            path.replace('m', "%6d"),
            format!("http://127.0.0.1{path}"),
            format!("https://elsewhere.example{path}"),
            tail.to_owned(),
        ] {
            if other == path {
                continue;
            }
            let reply = router.post(&other, body);
            assert_eq!(reply.status, 404, "{other}: {}", reply.text());
            assert!(reply.json()["error"]["message"].is_string());
        }
        for query in ["?model=m", "?model=other", "?", "?beta=true&model=other", "?beta=false", "?x"] {
            let reply = router.post(&format!("{path}{query}"), body);
            reply.error(path, 400);
        }
    }
    assert_eq!(server.connections(), 0);
    router.records(0);
}

#[test]
fn without_the_token_nothing_is_read() {
    let (server, router) = start();
    let tokens = [
        String::new(),
        "authorization: Bearer wrong\r\n".to_owned(),
        format!("authorization: {TOKEN}\r\n"),
        format!("authorization: Basic {TOKEN}\r\n"),
        format!("authorization: Bearer {TOKEN}x\r\n"),
        format!("authorization: Bearer {}\r\n", TOKEN.to_ascii_uppercase()),
        format!("authorization: Bearer {TOKEN}\r\nx-api-key: other\r\n"),
        format!("authorization: Bearer {TOKEN}\r\nauthorization: Bearer other\r\n"),
        format!("x-api-key: {TOKEN}, {TOKEN}\r\n"),
        format!("cookie: authorization=Bearer {TOKEN}\r\n"),
        format!("proxy-authorization: Bearer {TOKEN}\r\n"),
    ];
    for (path, body) in ENDPOINTS {
        for token in &tokens {
            let head =
                format!("POST {path} HTTP/1.1\r\nhost: r\r\n{token}content-type: application/json\r\n");
            let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
            router.client.send(request.as_bytes()).error(path, 401);
        }
    }
    assert_eq!(server.connections(), 0);
    router.records(0);
}

#[test]
fn headers_that_name_a_model_or_a_place_change_nothing() {
    let (server, router) = start();
    let more = "x-model: other\r\nx-forwarded-host: elsewhere.example\r\nx-original-url: /v1/responses\r\n\
                x-http-method-override: DELETE\r\nopenai-organization: other\r\nforwarded: host=elsewhere.example\r\n";
    let (path, body) = ENDPOINTS[0];
    assert_eq!(router.client.send(request_with(path, more, body).as_bytes()).status, 200);
    let got = server.requests().remove(0).to_ascii_lowercase();
    assert!(!got.contains("elsewhere") && !got.contains("other"), "{got}");
    assert!(got.starts_with("post /v1/chat/completions "), "{got}");
}
