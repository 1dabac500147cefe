//! When another upstream is asked, when not, what it costs, and who is said to have answered.

use std::time::Duration;

use herma_core::model_call::{Ended, ModelCall};

use super::client::Reply;
use super::kit::{ENDPOINTS, KEY, Router, STREAMS, Setup};
use super::server::{Do, STREAM, Server, chunk, error, fine, good, http};

/// The outcomes of a call's attempts, with the upstream and what each is charged at in tokens.
fn attempts(record: &ModelCall) -> Vec<(&str, &str, u64)> {
    let of = record.attempts.iter();
    of.map(|attempt| (attempt.upstream.as_str(), attempt.outcome.as_str(), attempt.charged.tokens)).collect()
}

/// Sees that the second upstream answered, with its own name of the model.
fn answered_by_b(reply: &Reply, record: &ModelCall, b: &Server) {
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("x-herma-upstream"), Some("b/model-b"));
    assert!(b.last_body().contains(r#""model":"model-b""#), "{}", b.last_body());
    assert_eq!(record.attempts.len(), 2);
    assert_eq!(record.attempts[0].model, "model-a");
    assert_eq!((record.attempts[1].upstream.as_str(), record.attempts[1].model.as_str()), ("b", "model-b"));
    assert_eq!(record.attempts[1].outcome, "answered");
    assert_eq!((record.asked.as_str(), record.ended), ("m", Ended::Answered));
}

#[test]
fn after_a_refusal_or_connect_failure_the_next_upstream_is_tried_at_every_endpoint() {
    for (path, body) in ENDPOINTS.into_iter().chain(STREAMS) {
        for status in [Some(429), Some(503), Some(529), None] {
            let a = status.map_or_else(Server::absent, |status| Server::answering(error(status, "")));
            let b = fine();
            let router = Setup::new(&[&a, &b]).start();
            let reply = router.post(path, body);
            let record = router.record();
            answered_by_b(&reply, &record, &b);
            assert!(record.settled, "the first cannot have charged anything");
            assert_eq!(record.attempts[0].charged.tokens + record.attempts[0].charged.requests, 0);
            assert_eq!(record.attempts[0].status, status);
            assert_eq!(router.budget().spent, record.charged);
        }
    }
}

#[test]
fn one_of_which_nobody_knows_is_not_followed_unless_the_operator_says_so() {
    type Fault = (&'static str, u16, fn() -> Vec<Do>);
    let faults: [Fault; 5] = [
        ("server_error", 500, || vec![Do::Send(error(500, ""))]),
        ("server_error", 502, || vec![Do::Send(error(502, ""))]),
        ("closed_before_headers", 502, || vec![Do::Reset]),
        ("closed_before_headers", 502, || vec![Do::Close]),
        ("closed_before_headers", 502, || vec![Do::Send(b"HTTP/1.1 200 OK\r\ncont".to_vec()), Do::Reset]),
    ];
    for (path, body) in [ENDPOINTS[0], ENDPOINTS[1], ENDPOINTS[2], STREAMS[0], STREAMS[1], STREAMS[2]] {
        for (why, status, fault) in faults {
            // Not told to: it ends here, charged at the most.
            let (a, b) = (Server::new(move |_, _| fault()), fine());
            let router = Setup::new(&[&a, &b]).start();
            let reply = router.post(path, body);
            assert_eq!(reply.status, status);
            assert!(reply.json()["error"].is_object());
            let record = router.record();
            assert_eq!(
                (record.ended, record.settled, record.reason.as_deref()),
                (Ended::Failed, false, Some(why))
            );
            let most = record.charged.tokens;
            assert!(most >= 50, "{record:?}");
            assert_eq!(attempts(&record), [("a", why, most)]);
            assert_eq!((a.requests().len(), b.connections()), (1, 0), "{why}");
            assert_eq!(router.budget().spent, record.charged);

            // Told to: the next one answers, and the first stays charged at the most.
            let (a, b) = (Server::new(move |_, _| fault()), fine());
            let router = Setup::new(&[&a, &b]).upstream(0, "retry_ambiguous = true").start();
            let reply = router.post(path, body);
            let record = router.record();
            answered_by_b(&reply, &record, &b);
            assert_eq!(a.requests().len(), 1);
            assert!(!record.settled);
            let used = record.used.unwrap();
            assert_eq!(attempts(&record), [("a", why, most), ("b", "answered", used.input + used.output)]);
            assert_eq!(
                (record.charged.tokens, record.charged.requests),
                (most + used.input + used.output, 2)
            );
            assert_eq!(router.budget().spent, record.charged);
        }
    }
}

#[test]
fn a_timeout_before_the_head_is_one_of_which_nobody_knows() {
    for (told, status) in [("retry_ambiguous = false", 504), ("retry_ambiguous = true", 200)] {
        let (a, b) = (Server::new(|_, _| vec![Do::Hang]), fine());
        let limits = "first_byte = \"200ms\"\nidle = \"20s\"";
        let router = Setup::new(&[&a, &b]).limits(limits).upstream(0, told).start();
        assert_eq!(router.post(ENDPOINTS[2].0, ENDPOINTS[2].1).status, status);
        let record = router.record();
        assert_eq!(record.attempts[0].outcome, "first_byte_timeout");
        assert!(record.attempts[0].charged.tokens >= 50 && !record.settled);
    }
}

/// An answer that breaks off after its head.
fn broken_answer(path: &str) -> Vec<Do> {
    let whole = good(path);
    vec![Do::Send(whole[..whole.len() - 5].to_vec()), Do::Pause(Duration::from_millis(50)), Do::Reset]
}

#[test]
fn after_the_head_nobody_else_is_asked_and_a_broken_answer_looks_broken() {
    for (path, body) in ENDPOINTS {
        let (a, b) = (Server::new(move |_, _| broken_answer(path)), fine());
        let router = Setup::new(&[&a, &b]).upstream(0, "retry_ambiguous = true").start();
        let reply = router.post(path, body);
        assert_eq!((reply.status, reply.is_whole), (200, false), "the client must see that it is not whole");
        let record = router.record();
        assert_eq!((record.ended, record.settled), (Ended::Cut, false), "{record:?}");
        assert_eq!((record.reason.as_deref(), b.connections()), (Some("upstream_cut"), 0));
        assert_eq!(router.budget().spent, record.charged);
    }
}

/// The error event of each dialect.
fn told(path: &str, text: &str, reason: &str) {
    let (_, last) = text.trim_end().rsplit_once("\n\n").unwrap_or(("", text.trim_end()));
    let data = last.trim_start_matches("event: error\n").trim_start_matches("data: ");
    let data: serde_json::Value = serde_json::from_str(data).unwrap_or_else(|e| panic!("{e}: {text:?}"));
    match path {
        "/v1/chat/completions" => {
            assert_eq!(data["error"]["code"], reason);
            assert!(data["error"]["message"].is_string());
        }
        "/v1/responses" => {
            assert!(last.starts_with("event: error\n"));
            assert_eq!((data["type"].as_str(), data["code"].as_str()), (Some("error"), Some(reason)));
            assert!(data["sequence_number"].is_u64());
        }
        _ => {
            assert!(last.starts_with("event: error\n"));
            assert_eq!(
                (data["type"].as_str(), data["error"]["type"].as_str()),
                (Some("error"), Some("api_error"))
            );
        }
    }
}

#[test]
fn a_stream_that_breaks_off_says_so_in_its_own_words_and_nobody_else_is_asked() {
    for (path, body) in STREAMS {
        let whole = super::server::good_stream(path);
        let middle = whole.len() / 2;
        for at in [0, 1, middle, middle + 1] {
            for (fault, reason) in
                [(Do::Reset, "upstream_cut"), (Do::Close, "upstream_cut"), (Do::Hang, "upstream_idle")]
            {
                let part = whole[..at].to_vec();
                let steps = fault.clone();
                let a = Server::new(move |_, _| {
                    let mut plan = vec![Do::Send(STREAM.as_bytes().to_vec())];
                    if !part.is_empty() {
                        plan.push(Do::Send(chunk(&part)));
                    }
                    plan.extend([Do::Pause(Duration::from_millis(30)), steps.clone()]);
                    plan
                });
                let b = fine();
                let limits = "first_byte = \"20s\"\nidle = \"150ms\"";
                let router =
                    Setup::new(&[&a, &b]).limits(limits).upstream(0, "retry_ambiguous = true").start();
                let reply = router.post(path, body);
                assert_eq!(reply.status, 200);
                assert!(reply.body.starts_with(&whole[..at]), "what came is passed on");
                told(path, &reply.text(), reason);
                let record = router.record();
                assert_eq!(
                    (record.ended, record.reason.as_deref()),
                    (Ended::Cut, Some(reason)),
                    "{fault:?} at {at}"
                );
                assert!(!record.settled && record.charged.tokens >= 50);
                assert_eq!(b.connections(), 0);
                assert_eq!(router.budget().spent, record.charged);
            }
        }
    }
}

#[test]
fn a_bad_chunk_of_an_upstream_is_an_error_that_the_client_can_read() {
    for (path, body) in STREAMS {
        let whole = super::server::good_stream(path);
        for bad in ["zz\r\n", "-1\r\n", "0x4\r\n", "4\rfull\r\n", "ffffffffffffffffff\r\n"] {
            let part = whole[..whole.len() / 2].to_vec();
            let a = Server::new(move |_, _| {
                vec![
                    Do::Send(STREAM.as_bytes().to_vec()),
                    Do::Send(chunk(&part)),
                    Do::Send(bad.as_bytes().to_vec()),
                    Do::Send(chunk(b"data: [DONE]\n\n")),
                    Do::Send(b"0\r\n\r\n".to_vec()),
                ]
            });
            let router = Setup::new(&[&a]).start();
            let reply = router.post(path, body);
            assert_eq!((reply.status, reply.is_whole), (200, true), "{bad:?}");
            told(path, &reply.text(), "upstream_cut");
            let record = router.record();
            assert_eq!(
                (record.ended, record.reason.as_deref()),
                (Ended::Cut, Some("upstream_cut")),
                "{bad:?}"
            );
        }
    }
}

#[test]
fn a_stream_that_ends_before_its_end_says_so() {
    for (path, body) in STREAMS {
        let whole = super::server::good_stream(path);
        let answer = super::server::stream(&whole[..whole.len() / 2]);
        let a = Server::answering(answer);
        let router = Setup::new(&[&a]).start();
        let reply = router.post(path, body);
        told(path, &reply.text(), "ended_early");
        let record = router.record();
        assert_eq!((record.ended, record.reason.as_deref()), (Ended::Cut, Some("ended_early")));
        assert!(!record.settled);
    }
}

#[test]
fn three_failures_open_the_circuit_and_a_refusal_says_when_to_retry() {
    let (a, b) = (Server::answering(error(503, "")), fine());
    let router = Setup::new(&[&a, &b]).start();
    let (path, body) = ENDPOINTS[2];
    for _ in 0..5 {
        assert_eq!(router.post(path, body).status, 200);
    }
    assert_eq!(a.requests().len(), 3, "after three it is left alone");
    let outcomes: Vec<String> =
        router.records(5).iter().map(|record| record.attempts[0].outcome.clone()).collect();
    assert_eq!(outcomes, ["overloaded", "overloaded", "overloaded", "circuit_open", "circuit_open"]);
    let resting = router.state().upstreams[0].resting_ms.unwrap();
    assert!((1..=30_000).contains(&resting));

    let a = Server::absent();
    let router = Setup::new(&[&a]).start();
    for _ in 0..3 {
        router.post(path, body).error(path, 502);
    }
    for (path, body) in ENDPOINTS {
        let reply = router.post(path, body);
        let said = reply.error(path, 503);
        assert!(said.contains("`a`") && said.contains("circuit open"), "{said}");
        let seconds: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=30).contains(&seconds));
        assert_eq!(reply.header("x-should-retry"), Some("true"));
    }
    assert_eq!(router.budget().spent.requests, 0);
    router.records(3 + ENDPOINTS.len());
}

#[test]
fn an_upstream_that_says_when_to_come_again_is_left_alone_until_then() {
    let (path, body) = ENDPOINTS[2];
    for (header, seconds) in
        [("retry-after: 40\r\n", 40), ("retry-after-ms: 40000\r\n", 40), ("retry-after: 9999999\r\n", 600)]
    {
        let (a, b) = (Server::answering(error(429, header)), fine());
        let router = Setup::new(&[&a, &b]).start();
        for _ in 0..3 {
            assert_eq!(router.post(path, body).status, 200);
        }
        assert_eq!(a.requests().len(), 1, "{header:?}");
        let resting = router.state().upstreams[0].resting_ms.unwrap();
        assert!(resting > (seconds - 19) * 1000 && resting <= seconds * 1000, "{resting} after {header:?}");
    }
    // It ends by itself.
    let a = Server::new(|number, _| {
        vec![Do::Send(if number == 0 { error(429, "retry-after-ms: 800\r\n") } else { good("/v1/messages") })]
    });
    let router = Setup::new(&[&a]).start();
    let first = router.post(path, body);
    assert_eq!((first.status, first.header("retry-after-ms")), (429, Some("800")));
    assert_eq!(router.post(path, body).status, 503);
    std::thread::sleep(Duration::from_millis(900));
    assert_eq!(router.post(path, body).status, 200);
    router.records(3);
}

#[test]
fn the_last_ones_no_is_passed_on_as_it_is() {
    let (path, body) = ENDPOINTS[2];
    let a = Server::absent();
    let b = Server::answering(http(
        429,
        "application/json",
        "retry-after: 7\r\n",
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down, please"}}"#,
    ));
    let router = Setup::new(&[&a, &b]).start();
    let reply = router.post(path, body);
    assert_eq!(reply.error(path, 429), "slow down, please");
    assert_eq!(
        (reply.header("retry-after"), reply.header("x-herma-upstream")),
        (Some("7"), Some("b/model-b"))
    );
    let record = router.record();
    assert_eq!((record.ended, record.settled, record.charged.tokens), (Ended::Failed, true, 0));
}

#[test]
fn a_refusal_is_relayed_where_the_circuits_of_all_others_are_open() {
    let (path, body) = ENDPOINTS[2];
    let a = Server::new(|number, _| {
        vec![Do::Send(if number < 3 { good("/v1/messages") } else { error(429, "") })]
    });
    let b = Server::answering(error(503, "retry-after: 60\r\n"));
    // The second is first for another model, so that it can be sent to rest.
    let models = "[models.n]\nchain = [\"b/model-b\"]\n";
    let router = Setup::new(&[&a, &b]).and(models).asks("[\"m\", \"n\"]").start();
    assert_eq!(router.post(path, &body.replace("\"m\"", "\"n\"")).status, 503);
    for _ in 0..3 {
        assert_eq!(router.post(path, body).status, 200);
    }
    let reply = router.post(path, body);
    assert_eq!(
        (reply.status, reply.header("x-herma-upstream")),
        (429, Some("a/model-a")),
        "{}",
        reply.text()
    );
    router.records(5);
}

#[test]
fn the_second_attempt_stays_within_what_is_left() {
    let (a, b) = (Server::answering(error(500, "")), fine());
    let (path, body) = ENDPOINTS[2];
    let input = body.len() as u64;
    // The first attempt takes the input and 50; for the second, the input and 20 are left.
    let budget = format!("budget = {{ tokens = {} }}", input * 2 + 70);
    let router = Setup::new(&[&a, &b]).upstream(0, "retry_ambiguous = true").client(&budget).start();
    let reply = router.post(path, body);
    assert_eq!(reply.status, 200);
    assert!(a.last_body().contains(r#""max_tokens":50"#));
    assert!(b.last_body().contains(r#""max_tokens":20"#), "{}", b.last_body());
    assert_eq!(reply.header("x-herma-max-output"), Some("20"));
    assert!(router.record().rewrites.contains(&"max_output".to_owned()));

    // Where nothing is left it ends there.
    let (a, b) = (Server::answering(error(500, "")), fine());
    let budget = format!("budget = {{ tokens = {} }}", input + 50);
    let router = Setup::new(&[&a, &b]).upstream(0, "retry_ambiguous = true").client(&budget).start();
    router.post(path, body).error(path, 429);
    assert_eq!(b.connections(), 0);
    let record = router.record();
    assert_eq!((record.reason.as_deref(), record.settled), (Some("budget_exhausted"), false));
    assert_eq!(record.charged.tokens, input + 50);
    assert_eq!(router.handle().refusals("agent").unwrap().budgets.len(), 1);
}

#[test]
fn a_call_costs_what_the_one_that_answered_costs() {
    let prices = "[prices]\n\"a/model-a\" = { input = \"100\", output = \"1000\" }\n\
                  \"b/model-b\" = { input = \"1\", output = \"10\" }\n";
    let (path, body) = ENDPOINTS[2];
    let (a, b) = (Server::absent(), fine());
    let router = Setup::new(&[&a, &b]).and(prices).client("budget = { usd = \"1.00\" }").start();
    assert_eq!(router.post(path, body).status, 200);
    // 12 tokens in, 6 out.
    assert_eq!(router.record().charged.micro_usd, 12 + 60);
    assert_eq!(router.budget().spent.micro_usd, 12 + 60);
}

#[test]
fn a_response_that_is_not_http_is_ambiguous() {
    let (path, body) = ENDPOINTS[2];
    for bytes in [
        "SSH-2.0-OpenSSH\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
    ] {
        let a = Server::new(move |_, _| vec![Do::Send(bytes.as_bytes().to_vec()), Do::Close]);
        let router = Setup::new(&[&a]).start();
        router.post(path, body).error(path, 502);
        let record = router.record();
        assert_eq!((record.ended, record.settled), (Ended::Failed, false), "{bytes:?}: {record:?}");
    }
}

#[test]
fn an_empty_chain_is_said_at_the_start() {
    let mut setup = Setup::new(&[&fine()]);
    setup.models = "chain = []".to_owned();
    let said =
        herma_router::config::Config::parse(&setup.text(), "router.toml".as_ref()).unwrap_err().to_string();
    assert!(said.contains("models.m.chain"), "{said}");
    assert!(!said.contains(KEY));
}

#[test]
fn no_upstream_of_the_chain_that_speaks_the_api_is_said() {
    let a = fine();
    let router: Router = Setup::of("anthropic", &[&a]).start();
    for (path, body) in [ENDPOINTS[0], ENDPOINTS[1], ENDPOINTS[4], ENDPOINTS[5]] {
        router.post(path, body).error(path, 404);
    }
    assert_eq!(a.connections(), 0);
    assert_eq!(router.post(ENDPOINTS[2].0, ENDPOINTS[2].1).status, 200);
    router.records(5);
}
