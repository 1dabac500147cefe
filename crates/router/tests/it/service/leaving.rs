//! Clients that leave, runs that end, and a router that drains: every call ends once, and nothing stays set aside.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use herma_core::model_call::Ended;

use super::client::request;
use super::kit::{ENDPOINTS, LONG, Router, STREAMS, Setup, TOKEN, eventually};
use super::server::{Do, STREAM, Server, chunk, fine, good_stream};

/// A server that hangs before it says anything.
fn silent() -> Server {
    Server::new(|_, _| vec![Do::Hang])
}

/// A server that hangs in the middle of a stream.
fn half() -> Server {
    Server::new(|_, request| {
        let whole = good_stream(request.split(' ').nth(1).unwrap());
        vec![Do::Send(STREAM.as_bytes().to_vec()), Do::Send(chunk(&whole[..whole.len() / 2])), Do::Hang]
    })
}

/// Sees that each call has one record, with the status that its client saw, and is charged at the most.
fn left(router: &Router, server: &Server, calls: usize, status: u16) {
    eventually("the upstream sees it", || server.left() == calls);
    let records = router.records(calls);
    for record in &records {
        assert_eq!((record.ended, record.reason.as_deref()), (Ended::ClientLeft, Some("client_left")));
        assert_eq!((record.settled, record.status, record.charged.requests), (false, status, 1));
        assert_eq!((record.attempts.len(), record.attempts[0].charged), (1, record.charged));
        assert!(record.charged.tokens >= 50, "{record:?}");
    }
    let charged: u64 = records.iter().map(|record| record.charged.tokens).sum();
    assert_eq!(router.budget().spent.tokens, charged);
}

#[test]
fn a_client_that_leaves_before_the_answer_ends_the_upstreams_work() {
    let server = silent();
    let router = Setup::new(&[&server]).start();
    for (count, (path, body)) in STREAMS.into_iter().chain([(ENDPOINTS[2].0, ENDPOINTS[2].1)]).enumerate() {
        let mut connection = router.client.connect();
        connection.send(request(path, body).as_bytes());
        eventually("it is asked", || server.requests().len() == count + 1);
        assert!(router.budget().reserved.tokens >= 50);
        connection.leave();
    }
    left(&router, &server, 4, 0);
}

#[test]
fn a_client_that_leaves_in_a_stream_ends_the_upstreams_work() {
    let server = half();
    let router = Setup::new(&[&server]).start();
    for (path, body) in STREAMS {
        let mut connection = router.client.connect();
        connection.send(request(path, body).as_bytes());
        connection.until("data: ");
        assert!(router.budget().reserved.tokens >= 50);
        connection.leave();
    }
    left(&router, &server, 3, 200);
}

#[test]
fn a_client_that_leaves_after_it_got_all_is_charged_what_it_used() {
    let server = Server::new(|_, request| {
        let whole = good_stream(request.split(' ').nth(1).unwrap());
        vec![Do::Send(STREAM.as_bytes().to_vec()), Do::Send(chunk(&whole)), Do::Hang]
    });
    let router = Setup::new(&[&server]).start();
    for (path, body) in STREAMS {
        let mut connection = router.client.connect();
        connection.send(request(path, body).as_bytes());
        connection.until(match path {
            "/v1/messages" => "message_stop\"}",
            "/v1/responses" => "\"type\":\"response.completed\"",
            _ => "[DONE]",
        });
        thread::sleep(Duration::from_millis(50));
        connection.leave();
    }
    eventually("the upstream sees it", || server.left() == 3);
    for record in router.records(3) {
        assert_eq!((record.ended, record.settled), (Ended::Answered, true), "{record:?}");
        assert!(record.used.is_some());
    }
}

#[test]
fn many_clients_that_leave_at_any_moment_leave_nothing_behind() {
    let server = Server::new(|number, request| {
        let whole = good_stream(request.split(' ').nth(1).unwrap());
        let mut steps =
            vec![Do::Pause(Duration::from_millis(number as u64 % 7)), Do::Send(STREAM.as_bytes().to_vec())];
        for part in whole.chunks(100) {
            steps.push(Do::Send(chunk(part)));
            steps.push(Do::Pause(Duration::from_micros(300)));
        }
        steps.push(Do::Send(b"0\r\n\r\n".to_vec()));
        steps
    });
    let router = Setup::new(&[&server]).start();
    thread::scope(|scope| {
        for worker in 0..8_u64 {
            let router = &router;
            scope.spawn(move || {
                for round in 0..25_u64 {
                    let (path, body) = STREAMS[usize::try_from(round % 3).unwrap()];
                    let mut connection = router.client.connect();
                    connection.send(request(path, body).as_bytes());
                    thread::sleep(Duration::from_micros((worker * 25 + round) * 977 % 15_000));
                    connection.leave();
                }
            });
        }
    });
    // A connection that closed before it was accepted is accepted later.
    let mut all = Vec::new();
    eventually("what was spent is what was charged", || {
        router.quiet();
        all = router.records(router.file("model-calls.jsonl").lines().count());
        let charged: u64 = all.iter().map(|record| record.charged.tokens).sum();
        router.budget().spent.tokens == charged
    });
    let (records, begun) = (all.len(), server.requests().len());
    assert!(records >= begun && records <= 200, "{records} records, {begun} calls");
    assert!(all.iter().all(|record| matches!(record.ended, Ended::Answered | Ended::ClientLeft)), "{all:?}");
}

#[test]
fn a_drain_lets_a_stream_end_and_takes_no_more() {
    let server = Server::new(|_, _| {
        let whole = good_stream("/v1/messages");
        let (first, second) = whole.split_at(whole.len() / 2);
        vec![
            Do::Send(STREAM.as_bytes().to_vec()),
            Do::Send(chunk(first)),
            Do::Wait,
            Do::Send(chunk(second)),
            Do::Send(b"0\r\n\r\n".to_vec()),
        ]
    });
    let mut router = Setup::new(&[&server]).start();
    let (path, body) = STREAMS[2];
    let mut idle = router.client.connect();
    let mut kept = router.client.connect();
    kept.send(request(path, &body.replace("\"m\"", "\"other\"")).as_bytes());
    assert_eq!(kept.reply().unwrap().status, 403);
    let mut connection = router.client.connect();
    connection.send(request(path, body).as_bytes());
    connection.until("message_start");
    let handle = router.take_handle();
    let draining = thread::spawn(move || handle.drain(LONG));
    eventually("new connections are refused", || TcpStream::connect(router.client.address).is_err());
    assert_eq!(idle.rest().0, "", "what is idle is let go");
    assert_eq!(kept.rest().0, "");
    assert!(!draining.is_finished());
    server.go_on();
    let reply = connection.reply().unwrap();
    assert_eq!((reply.is_whole, reply.body), (true, good_stream(path)));
    assert_eq!(draining.join().unwrap(), 0);
    assert!(!router.unix.exists(), "the socket's file is gone");
    assert_eq!(router.file("model-calls.jsonl").matches("\"ended\":\"answered\"").count(), 1);
}

#[test]
fn a_drain_that_waits_in_vain_breaks_off_and_records() {
    let server = half();
    let mut router = Setup::new(&[&server]).start();
    let mut connection = router.client.connect();
    connection.send(request(STREAMS[2].0, STREAMS[2].1).as_bytes());
    connection.until("message_start");
    assert_eq!(router.take_handle().drain(Duration::from_millis(100)), 1);
    assert!(!connection.reply().unwrap().is_whole, "the client must not take it for a whole answer");
    eventually("the upstream sees it", || server.left() == 1);
    let written = router.file("model-calls.jsonl");
    assert_eq!(written.matches("\"ended\":\"client_left\"").count(), 1, "{written}");
}

#[test]
fn a_drain_does_not_wait_for_room() {
    let server = half();
    let mut router = Setup::new(&[&server]).limits("max_connections = 3\nhead = \"20s\"").start();
    let mut held: Vec<_> = (0..3).map(|_| router.client.connect()).collect();
    for connection in &mut held {
        connection.send(request(STREAMS[2].0, STREAMS[2].1).as_bytes());
        connection.until("message_start");
    }
    let handle = router.take_handle();
    let draining = thread::spawn(move || handle.drain(Duration::from_secs(3)));
    eventually("new connections are refused", || TcpStream::connect(router.client.address).is_err());
    assert!(!draining.is_finished(), "it was refused while calls were under way");
    assert_eq!(draining.join().unwrap(), 3);
}

#[test]
fn a_run_that_ends_takes_its_streams_along() {
    let server = half();
    let router = Setup::new(&[&server]).start();
    let (path, body) = STREAMS[2];
    let mut connection = router.client.connect();
    connection.send(request(path, body).as_bytes());
    connection.until("message_start");
    let mut waiting = router.client.connect();
    waiting.send(&request(path, body).as_bytes()[..200]);
    let revoked = router.handle().revoke("agent").unwrap().unwrap();
    assert!(!connection.reply().unwrap().is_whole);
    eventually("the upstream sees it", || server.left() == 1);
    assert_eq!(revoked.sums.records, 1, "what was broken off is in the sums");
    let lines = router.file("model-calls.jsonl");
    assert_eq!(lines.lines().count(), 1);
    assert!(lines.contains("\"ended\":\"client_left\""), "{lines}");
    router.post(path, body).error(path, 401);
    assert!(router.handle().revoke("agent").is_none());
    assert!(router.handle().runs().is_empty());
}

#[test]
fn after_a_run_has_ended_nothing_is_written_of_it() {
    for round in 0..40_u64 {
        let server = fine();
        let router = Setup::new(&[&server]).start();
        let (path, body) = ENDPOINTS[2];
        let (written, sums) = thread::scope(|scope| {
            for _ in 0..4 {
                let client = router.client;
                scope.spawn(move || {
                    for _ in 0..50 {
                        let mut connection = client.connect();
                        connection.send(request(path, body).as_bytes());
                        if connection.reply().is_some_and(|reply| reply.status == 401) {
                            return;
                        }
                    }
                });
            }
            thread::sleep(Duration::from_micros(round * 311 % 9000));
            let revoked = router.handle().revoke("agent").unwrap().unwrap();
            (router.file("model-calls.jsonl"), revoked.sums.records)
        });
        thread::sleep(Duration::from_millis(5));
        assert_eq!(router.file("model-calls.jsonl"), written, "written after its end");
        assert_eq!(written.lines().count() as u64, sums);
    }
}

#[test]
fn a_token_of_another_run_ends_with_its_own() {
    let server = half();
    let router = Setup::new(&[&server]).start();
    let other = router.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let mut grant = herma_router::grant::Grant {
        run: "other".into(),
        engine: None,
        models: std::collections::BTreeMap::new(),
        reaches: Vec::new(),
        limits: herma_router::budget::Limits::default(),
    };
    let empty = herma_router::grant::AdmittedModel { chain: Vec::new(), default_output: 1, ceiling: 1 };
    grant.models.insert("m".to_owned(), std::sync::Arc::new(empty));
    let said = router.handle().admit(grant.clone(), &other).unwrap_err().to_string();
    assert!(said.contains("empty chain") && said.contains("`m`"), "{said}");
    grant.models.clear();
    let token = router.handle().admit(grant, &other).unwrap();
    let (path, body) = STREAMS[2];
    let mut connection = router.client.connect();
    connection.send(request(path, body).as_bytes());
    connection.until("message_start");
    let asking = request(path, body).replace(TOKEN, token.expose());
    assert_eq!(router.client.send(asking.as_bytes()).status, 403, "it has no model");
    router.handle().revoke("other").unwrap().unwrap();
    assert_eq!(router.client.send(asking.as_bytes()).status, 401);
    assert_eq!(router.state().under_way, 1, "the other run's stream goes on");
    connection.leave();
    router.record();
}

/// A body that is all there, of which nobody has said yet that it ends.
struct Open(Option<Vec<u8>>);

impl http_body::Body for Open {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        match self.0.take() {
            Some(bytes) => std::task::Poll::Ready(Some(Ok(http_body::Frame::data(bytes.into())))),
            None => std::task::Poll::Pending,
        }
    }
}

#[test]
fn an_answer_is_whole_when_all_its_bytes_are_there() {
    const BODY: &str = r#"{"model":"x","usage":{"input_tokens":3,"output_tokens":4},"content":[]}"#;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let answer = hyper::service::service_fn(|_| async {
                let answer = http::Response::builder()
                    .header("content-type", "application/json")
                    .header("content-length", BODY.len())
                    .body(Open(Some(BODY.as_bytes().to_vec())));
                Ok::<_, std::convert::Infallible>(answer.unwrap())
            });
            let io = hyper_util::rt::TokioIo::new(stream);
            let executor = hyper_util::rt::TokioExecutor::new();
            drop(hyper::server::conn::http2::Builder::new(executor).serve_connection(io, answer).await);
        });
    });
    let mut setup = Setup::new(&[&Server::absent()]);
    setup.upstreams[0] =
        format!("[upstreams.a]\nprovider = \"compatible\"\nhttp = \"2\"\nurl = \"http://{address}\"\n");
    let router = setup.start();
    let reply = router.post(ENDPOINTS[2].0, ENDPOINTS[2].1);
    assert_eq!((reply.status, reply.is_whole, reply.text().as_str()), (200, true, BODY));
    let record = router.record();
    assert_eq!(
        (record.ended, record.settled, record.charged.tokens),
        (Ended::Answered, true, 7),
        "{record:?}"
    );
}

#[test]
fn an_immediate_next_call_is_not_limited_by_unsettled_calls() {
    const CALLS: u64 = 200;
    let server = fine();
    let (path, body) = ENDPOINTS[2];
    let router = Setup::new(&[&server]).start();
    assert_eq!(router.post(path, body).status, 200);
    let each = router.record().charged.tokens;
    // Room for one call at its most beside what the others cost, and not for two.
    let most = body.len() as u64 + 50;
    let budget = format!("budget = {{ tokens = {} }}\n", (CALLS - 1) * each + most);
    let router = Setup::new(&[&server]).client(&budget).start();
    let is_over = AtomicBool::new(false);
    let replies: Vec<_> = thread::scope(|scope| {
        // Others keep the router from what it does behind an answer.
        for _ in 0..8 {
            scope.spawn(|| {
                let mut other = router.client.connect();
                while !is_over.load(Ordering::Relaxed) {
                    other.send(b"GET /healthz HTTP/1.1\r\n\r\n");
                    other.reply().unwrap();
                }
            });
        }
        let mut connection = router.client.connect();
        let mut ask = |_| {
            connection.send(request(path, body).as_bytes());
            connection.reply()
        };
        let replies = (0..CALLS).map(&mut ask).collect();
        is_over.store(true, Ordering::Relaxed);
        replies
    });
    for reply in replies {
        let reply = reply.unwrap();
        assert_eq!((reply.status, reply.header("x-herma-max-output")), (200, None));
    }
    assert_eq!(router.budget().spent.tokens, CALLS * each);
}
