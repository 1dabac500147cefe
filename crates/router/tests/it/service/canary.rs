//! Neither key nor endpoint gets out: not to the client, not into the records, not to those who look at the router.

use std::fmt::Debug;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use herma_router::config::{Address, Config};

use super::client::Reply;
use super::kit::{ENDPOINTS, KEY, Router, STREAMS, Setup, TOKEN};
use super::server::{Do, Server, good, http, stream};

/// Words that stand only in the key and in the URL of the upstream.
fn secrets(server: &Server) -> Vec<String> {
    vec![KEY.to_owned(), "canary".to_owned(), server.address().to_string(), "/hidden-canary-path".to_owned()]
}

fn silent(secrets: &[String], what: &str, said: &str) {
    let low = said.to_ascii_lowercase();
    for secret in secrets {
        assert!(!low.contains(&secret.to_ascii_lowercase()), "{secret} in {what}: {said}");
    }
}

fn silent_debug(secrets: &[String], what: &str, shown: &impl Debug) {
    silent(secrets, what, &format!("{shown:?} {shown:#?}"));
}

fn start(server: &Server, more: &str) -> Router {
    let mut setup = Setup::new(&[server]);
    setup.upstreams[0] =
        setup.upstreams[0].replace(&server.url(), &format!("{}/hidden-canary-path", server.url()));
    setup.upstream(0, more).start()
}

fn whole(reply: &Reply) -> String {
    format!("{} {:?} {}", reply.status, reply.headers, reply.text())
}

/// Looks at everything that a router shows of its calls.
fn nothing_anywhere(router: &Router, server: &Server) {
    let secrets = secrets(server);
    router.quiet();
    silent(&secrets, "the records", &router.file("model-calls.jsonl"));
    silent(&secrets, "the journal", &router.file("calls-begun"));
    for path in ["/metrics", "/v1/models", "/healthz", "/readyz"] {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: r\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n\r\n"
        );
        silent(&secrets, path, &whole(&router.client.send(request.as_bytes())));
    }
    let admin = router.path().join("admin.sock");
    if !admin.exists() {
        router.handle().listen_admin(&Address::Unix(admin.clone()), || Ok("read again".to_owned())).unwrap();
    }
    for line in [
        "GET /state",
        "GET /budgets",
        "GET /upstreams",
        "GET /in-flight",
        "GET /health",
        "POST /reload",
        "GET /x",
    ] {
        let mut stream = UnixStream::connect(&admin).unwrap();
        stream
            .write_all(format!("{line} HTTP/1.1\r\nhost: r\r\nconnection: close\r\n\r\n").as_bytes())
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        silent(&secrets, line, &answer);
        assert!(!answer.contains(TOKEN) && !router.file("model-calls.jsonl").contains(TOKEN));
    }
    silent_debug(&secrets, "the state", &router.state());
    silent_debug(&secrets, "the refusals", &router.handle().refusals("agent"));
}

#[test]
fn an_upstream_that_echoes_its_key_in_an_error_does_not_give_it_away() {
    for status in [400, 401, 403, 404, 413, 422, 429, 500, 503] {
        for (path, body) in ENDPOINTS {
            let server = Server::new(move |_, request| {
                // The path that it was asked at is no secret by itself.
                let echo = request
                    .replace("/hidden-canary-path", "")
                    .replace('\\', "\\\\")
                    .replace('"', "\\\"")
                    .replace("\r\n", "\\n");
                let place =
                    request.lines().find(|line| line.to_ascii_lowercase().starts_with("host: ")).unwrap();
                let said = format!(
                    r#"{{"error":{{"message":"bad: {echo} at http://{}/hidden-canary-path"}}}}"#,
                    &place[6..]
                );
                vec![Do::Send(http(status, "application/json", "", &said))]
            });
            let router = start(&server, "");
            let reply = router.post(path, body);
            assert!(reply.status >= 400);
            silent(&secrets(&server), "the answer", &whole(&reply));
            assert_eq!(server.requests().len(), 1);
            assert!(server.requests()[0].contains(KEY), "the canary was there to be echoed");
            nothing_anywhere(&router, &server);
        }
    }
}

#[test]
fn an_upstream_that_echoes_its_key_in_headers_does_not_give_it_away() {
    let headers = [
        "x-request-id",
        "request-id",
        "openai-version",
        "openai-processing-ms",
        "content-type",
        "retry-after",
        "x-should-retry",
        "set-cookie",
        "server",
        "via",
        "openai-organization",
        "www-authenticate",
        "location",
        "content-encoding",
    ];
    for status in [200, 400, 429] {
        for name in headers {
            let server = Server::new(move |_, _| {
                let body = "{}";
                let kind = if name == "content-type" {
                    String::new()
                } else {
                    "content-type: application/json\r\n".to_owned()
                };
                let answer = format!(
                    "HTTP/1.1 {status} X\r\n{kind}{name}: for {KEY} of you\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                vec![Do::Send(answer.into_bytes())]
            });
            let router = start(&server, "");
            let reply = router.post(ENDPOINTS[0].0, ENDPOINTS[0].1);
            silent(&secrets(&server), name, &whole(&reply));
            nothing_anywhere(&router, &server);
        }
    }
}

#[test]
fn a_redirect_is_not_followed_and_tells_no_place() {
    let elsewhere = super::server::fine();
    let to = elsewhere.url();
    for status in [301, 302, 303, 307, 308, 300, 304] {
        let to = to.clone();
        let server = Server::new(move |_, _| {
            let location = format!("location: {to}/hidden-canary-path?key={KEY}\r\n");
            let body = if status == 304 { String::new() } else { format!("see {to} {KEY}") };
            vec![Do::Send(http(status, "text/html", &location, &body)), Do::Close]
        });
        let router = start(&server, "");
        for (path, body) in [ENDPOINTS[0], STREAMS[2]] {
            let reply = router.post(path, body);
            reply.error(path, 502);
            silent(&secrets(&server), "the answer", &whole(&reply));
            assert_eq!(reply.header("location"), None);
        }
        nothing_anywhere(&router, &server);
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[test]
fn an_error_that_cannot_be_read_is_not_passed_on() {
    // A compressed body cannot be searched.
    let server = Server::answering(http(400, "application/json", "content-encoding: gzip\r\n", "packed"));
    let router = start(&server, "");
    let (path, body) = ENDPOINTS[2];
    let reply = router.post(path, body);
    reply.error(path, 502);
    assert_eq!(reply.header("content-encoding"), None);
    router.record();
}

#[test]
fn no_failure_gives_key_or_endpoint_away() {
    let plans: [fn() -> Vec<Do>; 5] = [
        || vec![Do::Close],
        || vec![Do::Reset],
        || vec![Do::Send(format!("{KEY} is not HTTP\r\n\r\n").into_bytes()), Do::Close],
        || vec![Do::Send(http(500, "text/plain", "", KEY))],
        || vec![Do::Hang],
    ];
    for plan in plans {
        let server = Server::new(move |_, _| plan());
        let mut setup = Setup::new(&[&server]).limits("first_byte = \"150ms\"");
        setup.upstreams[0] =
            setup.upstreams[0].replace(&server.url(), &format!("{}/hidden-canary-path", server.url()));
        let router = setup.start();
        for (path, body) in [ENDPOINTS[0], STREAMS[1], STREAMS[2]] {
            silent(&secrets(&server), "the answer", &whole(&router.post(path, body)));
        }
        nothing_anywhere(&router, &server);
    }
    let absent = Server::absent();
    let router = start(&absent, "");
    for (path, body) in ENDPOINTS {
        silent(&secrets(&absent), "the answer", &whole(&router.post(path, body)));
    }
    nothing_anywhere(&router, &absent);
    // An unknown host, and one without TLS.
    let server = Server::new(|_, _| vec![Do::Close]);
    for url in [
        "https://models-canary.invalid".to_owned(),
        format!("https://{}/hidden-canary-path", server.address()),
    ] {
        let mut setup = Setup::new(&[&server]);
        setup.upstreams[0] = setup.upstreams[0].replace(&server.url(), &url);
        let router = setup.start();
        for (path, body) in [ENDPOINTS[0], STREAMS[2]] {
            silent(&secrets(&server), "the answer", &whole(&router.post(path, body)));
        }
        nothing_anywhere(&router, &server);
    }
}

#[test]
fn an_answer_names_models_that_the_upstream_made_up_without_harm() {
    // The record keeps what the upstream says that it is, but no part of what is too long.
    let long = "x".repeat(400_000);
    let body = format!(
        "data: {{\"model\":\"{long}\",\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{long}\"}}],\
         \"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":1}}}}\n\ndata: [DONE]\n\n"
    );
    let server = Server::answering(stream(body.as_bytes()));
    let router = start(&server, "");
    let reply = router.post(STREAMS[0].0, STREAMS[0].1);
    assert_eq!(reply.text(), body);
    let record = router.record();
    let kept = Some("a word of 400000 bytes");
    assert_eq!((record.answered.as_deref(), record.stop.as_deref()), (kept, kept));
}

#[test]
fn a_name_that_is_too_long_is_kept_as_its_length_and_not_in_part() {
    let server = Server::answering(good(ENDPOINTS[0].0));
    let router = start(&server, "");
    // The token would lie across the end of what is kept.
    let long = format!("{}{TOKEN}", "x".repeat(250));
    router.post(ENDPOINTS[0].0, &ENDPOINTS[0].1.replace(r#""model":"m""#, &format!(r#""model":"{long}""#)));
    assert_eq!(router.record().asked, format!("a name of {} bytes", long.len()));
}

#[test]
fn start_errors_have_no_secrets() {
    let server = super::server::fine();
    let secrets = secrets(&server);
    let router = start(&server, "");
    let taken = Address::Tcp(router.client.address);
    silent_debug(&secrets, "an address that is taken", &router.handle().listen(&taken).unwrap_err());
    let mut setup = Setup::new(&[&server]);
    for broken in [
        format!("url = \"http://{KEY}@elsewhere.example\""),
        format!("key = \"{KEY}\""),
        format!("roots = \"{KEY}\"\nx = 1"),
        format!("unknown = \"{KEY}\""),
    ] {
        setup.upstreams[0] = format!("[upstreams.a]\nprovider = \"openai\"\n{broken}\n");
        let bad = Config::parse(&setup.text(), "router.toml".as_ref()).unwrap_err();
        silent(&secrets, "a broken configuration", &format!("{bad} {bad:?}"));
    }
    setup.upstreams[0] = Setup::new(&[&server]).upstreams.remove(0);
    let config = Config::parse(&setup.text(), "router.toml".as_ref()).unwrap();
    silent_debug(&secrets, "a configuration", &config);
}
