//! The router of a run below another one: its calls count against the budget of the run above, however they end.

use herma_router::service::ParentBudget;

use super::client::request;
use super::kit::{ENDPOINTS, Router, Setup, eventually};
use super::server::{Do, Server, fine};

/// A router whose client has so many tokens, and one below it without a limit of its own.
fn two(server: &Server, tokens: u64) -> (Router, Router, ParentBudget) {
    let parent = Setup::new(&[server]).client(&format!("budget = {{ tokens = {tokens} }}")).start();
    let above = parent.handle().above("agent").unwrap();
    let child = Setup::new(&[server]).start_below(Some(&above));
    (parent, child, above)
}

#[test]
fn before_a_call_is_lowered_or_refused_what_has_ended_above_or_below_is_settled() {
    let server = fine();
    let (path, body) = ENDPOINTS[2];
    // The maximum cost of one call.
    let most = body.len() as u64 + 50;
    let used = {
        let router = Setup::new(&[&server]).start();
        assert_eq!(router.post(path, body).status, 200);
        router.record().charged.tokens
    };
    assert!(used > 0 && used < 50, "{used}");
    // A call fits only when all that were before it are settled, and records follow a moment behind.
    for calls in [2, 3, 6] {
        let (parent, child, above) = two(&server, most + (calls - 1) * used);
        for call in 0..calls {
            let router = if call % 2 == 0 { &parent } else { &child };
            let reply = router.post(path, body);
            assert_eq!(reply.status, 200, "{call} of {calls}: {}", reply.text());
            assert_eq!(reply.header("x-herma-max-output"), None, "{call} of {calls}");
        }
        child.quiet();
        parent.quiet();
        assert_eq!(parent.budget().spent.tokens, calls * used);
        assert_eq!(child.budget().spent, above.charged());
        let of_child = usize::try_from(calls / 2).unwrap();
        assert_eq!(child.records(of_child).len() as u64 * used, above.charged().tokens);
        parent.records(usize::try_from(calls).unwrap() - of_child);
    }
}

#[test]
fn a_child_that_is_broken_off_in_the_middle_of_a_call_is_charged_above_at_the_most() {
    let server = Server::new(|_, _| vec![Do::Hang]);
    let (path, body) = ENDPOINTS[2];
    let most = body.len() as u64 + 50;
    for revoked in [true, false] {
        let (parent, mut child, above) = two(&server, most + 10);
        let asked = server.requests().len();
        let mut connection = child.client.connect();
        connection.send(request(path, body).as_bytes());
        eventually("it is asked", || server.requests().len() == asked + 1);
        assert_eq!(parent.budget().reserved.tokens, most);
        parent.post(path, body).error(path, 429);
        // As a run ends, or as a router does that nobody ended in order.
        if revoked {
            child.handle().revoke("agent").unwrap().unwrap();
        } else {
            drop(child.take_handle());
        }
        eventually("it is settled", || parent.budget().reserved.tokens == 0);
        assert_eq!(parent.budget().spent.tokens, most);
        assert_eq!(above.charged().tokens, most);
    }
}

#[test]
fn a_call_that_the_budget_above_does_not_allow_is_refused_below_and_nobody_is_asked() {
    let server = fine();
    let (path, body) = ENDPOINTS[2];
    let (parent, child, _) = two(&server, 10);
    child.post(path, body).error(path, 429);
    assert!(parent.handle().above("nobody").is_none());
    assert_eq!(child.record().reason.as_deref(), Some("budget_exhausted"));
    assert_eq!(server.requests().len(), 0);
    assert_eq!((parent.budget().spent.tokens, child.budget().spent.tokens), (0, 0));
}
