//! The requester in a request, and requests that are too large.

use super::{herma, listed, request};

/// Setting `USER` does not make somebody that user, and the packet says so.
#[test]
fn the_packet_shows_whether_the_requester_is_verified() {
    let mut herma = herma();
    herma.set("USER", "alice");
    request(&herma);
    let shown = herma.run(&["approvals", "show"]).stdout;
    assert!(shown.contains("  asked by      alice (nobody vouches for this name) at "), "{shown}");
    let asking = ["approvals", "request", "contracts/contract.md", "--reason", "it is time"];
    let signed = herma.run_as("alice", &asking);
    assert!(signed.stdout.contains("  asked by      alice (signed) at "), "{signed:#?}");
    assert_eq!(herma.run(&["approver", "revoke", "alice", "--reason", "left"]).code, Some(0));
    let shown = herma.run(&["approvals", "show"]).stdout;
    assert!(shown.contains("  asked by      alice (nobody vouches for this name) at "), "{shown}");
}

#[test]
fn a_request_that_is_too_long_to_read_is_refused() {
    let herma = herma();
    let ask = |reason: &str| {
        let ended = herma.run(&["approvals", "request", "contracts/contract.md", "--reason", reason]);
        (ended.code, ended.stderr.lines().next().unwrap_or_default().to_owned())
    };
    let too_long = |what: &str| (Some(2), format!("error: {what} is longer than 200 characters: shorten it"));
    assert_eq!(ask(&"x".repeat(201)), too_long("reason"));
    assert_eq!(ask(&"x".repeat(200)).0, Some(0));
    herma.contract(&[("stage", "4"), ("title", &"x".repeat(201))]);
    assert_eq!(ask("it is time"), too_long("title"));
    assert_eq!(listed(&herma, &["--all"]).len(), 1);
}
