//! Clients that send slowly, or nothing. Each is let go in time, and others are served meanwhile.

use std::thread;
use std::time::Duration;

use super::client::request;
use super::kit::{ENDPOINTS, Setup, TOKEN};
use super::server::fine;

const LIMITS: &str = "head = \"400ms\"\nmax_connections = 40";

#[test]
fn a_head_that_does_not_end_ends_the_connection() {
    let server = fine();
    let router = Setup::new(&[&server]).limits(LIMITS).start();
    for start in ["", "P", "POST /v1/messages HTTP/1.1\r\nhost: r\r\nx: "] {
        let mut connection = router.client.connect();
        connection.send(start.as_bytes());
        let (_, took) = connection.rest();
        assert!(took < Duration::from_secs(10), "{took:?}");
    }
    // Also if it goes on and on.
    let mut connection = router.client.connect();
    let mut drips = connection.stream.try_clone().unwrap();
    let dripping = thread::spawn(move || {
        use std::io::Write as _;
        let mut sent = 0;
        while sent < 400 && drips.write_all(b"x").is_ok() {
            sent += 1;
            thread::sleep(Duration::from_millis(25));
        }
        sent
    });
    connection.rest();
    assert!(dripping.join().unwrap() < 400, "it could go on for ten seconds");
    assert_eq!(server.connections(), 0);
    router.records(0);
}

#[test]
fn a_body_that_does_not_end_is_refused_with_a_word_and_a_record() {
    let server = fine();
    let router = Setup::new(&[&server]).limits(LIMITS).start();
    for (path, body) in ENDPOINTS {
        let whole = request(path, body);
        let mut connection = router.client.connect();
        connection.send(&whole.as_bytes()[..whole.len() - 1]);
        let said = connection.reply().unwrap().error(path, 408);
        assert!(said.contains("in time"), "{said}");
        assert_eq!(connection.rest().0, "");
    }
    assert_eq!(server.connections(), 0);
    for record in router.records(ENDPOINTS.len()) {
        assert_eq!((record.reason.as_deref(), record.status), (Some("too_slow"), 408));
    }
}

#[test]
fn a_body_that_breaks_off_reaches_nothing() {
    let server = fine();
    let router = Setup::new(&[&server]).start();
    let (path, body) = ENDPOINTS[0];
    let whole = request(path, body);
    let mut connection = router.client.connect();
    connection.send(&whole.as_bytes()[..whole.len() - 1]);
    connection.leave();
    assert_eq!(router.post(path, body).status, 200);
    assert_eq!(server.requests().len(), 1);
    router.quiet();
    assert!(router.file("model-calls.jsonl").lines().count() <= 2);
}

#[test]
fn idle_connections_do_not_keep_others_out() {
    let server = fine();
    let router = Setup::new(&[&server]).limits(LIMITS).start();
    let mut idle: Vec<_> = (0..60).map(|_| router.client.connect()).collect();
    let (path, body) = ENDPOINTS[0];
    assert_eq!(router.post(path, body).status, 200);
    // One that was served and then says nothing is let go too.
    let mut one = router.client.connect();
    one.send(request(path, body).as_bytes());
    assert_eq!(one.reply().unwrap().status, 200);
    assert!(one.rest().1 < Duration::from_secs(10));
    for connection in &mut idle {
        connection.rest();
    }
    router.records(2);
}

#[test]
fn a_client_that_waits_for_leave_to_send_gets_it_only_with_its_token() {
    let server = fine();
    let router = Setup::new(&[&server]).start();
    let (path, body) = ENDPOINTS[0];
    let head = |token: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: r\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
    };
    let mut connection = router.client.connect();
    connection.send(head("wrong").as_bytes());
    assert_eq!(connection.reply().unwrap().status, 401);
    let mut connection = router.client.connect();
    connection.send(head(TOKEN).as_bytes());
    assert_eq!(connection.reply().unwrap().status, 100);
    connection.send(body.as_bytes());
    assert_eq!(connection.reply().unwrap().status, 200);
    router.record();
}
