//! Grants: what they need, how long they last, and that they end.

use herma_core::Timestamp;
use herma_egress::grants::{BadGrant, Grant};
use herma_egress::proxy::Cut;
use herma_egress::rules::{EgressRequest, Listing, RequestKind};
use herma_egress::{Allowlist, Host, Reason};
use serde_json::json;

use super::client::{refused, tunnel};
use super::kit::Setup;
use super::server::echo;

const DAY: i64 = 24 * 60 * 60;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn grant(hosts: &[&str], reason: &str, made: i64, expires: i64) -> Result<Grant, BadGrant> {
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    Grant::new(hosts, reason.to_owned(), at(made), at(expires))
}

#[test]
fn a_grant_needs_hosts_a_reason_and_an_end_within_seven_days() {
    assert!(grant(&["a.example"], "to fetch the schema", 0, 7 * DAY).is_ok());
    let too_long = grant(&["a.example"], "why", 0, 7 * DAY + 1).unwrap_err();
    assert_eq!(too_long, BadGrant::TooLong { expires: at(7 * DAY + 1), latest: at(7 * DAY) });
    assert!(matches!(grant(&["a.example"], "why", 9, 9), Err(BadGrant::Over { .. })));
    assert!(matches!(grant(&["a.example"], "why", 9, 8), Err(BadGrant::Over { .. })));
    assert_eq!(grant(&[], "why", 0, 1), Err(BadGrant::Hosts(0)));
    assert_eq!(grant(&["a.example"; 101], "why", 0, 1), Err(BadGrant::Hosts(101)));
    assert!(matches!(grant(&["127.0.0.1"], "why", 0, 1), Err(BadGrant::Rule(_))));
    for reason in ["", "  ", "two\nlines", "\u{202e}back", &"x".repeat(501)] {
        assert_eq!(grant(&["a.example"], reason, 0, 1), Err(BadGrant::Reason), "{reason:?}");
    }
}

#[test]
fn a_grant_that_breaks_a_rule_cannot_be_read() {
    let written = |expires: &str| json!({"hosts": ["a.example"], "reason": "why", "made": "2026-01-01T00:00:00Z", "expires": expires});
    let good: Grant = serde_json::from_value(written("2026-01-08T00:00:00Z")).unwrap();
    assert_eq!(serde_json::to_value(&good).unwrap(), written("2026-01-08T00:00:00Z"));
    let said = serde_json::from_value::<Grant>(written("2026-01-08T00:00:01Z")).unwrap_err().to_string();
    assert!(said.contains("at most 7 days"), "{said}");
    let mut more = written("2026-01-08T00:00:00Z");
    more["forever"] = json!(true);
    assert!(serde_json::from_value::<Grant>(more).is_err());
}

#[test]
fn a_grant_holds_from_its_making_to_its_end() {
    let grant = grant(&["a.example"], "why", 100, 200).unwrap();
    let holds: Vec<bool> = [99, 100, 199, 200].map(|second| grant.holds_at(at(second))).to_vec();
    assert_eq!(holds, [false, true, true, false]);
    assert_eq!(grant.allowlist(at(150)).rules().count(), 1);
    assert!(grant.allowlist(at(99)).is_empty() && grant.allowlist(at(200)).is_empty());
}

#[test]
fn a_grant_ends_during_a_run_for_requests_and_for_tunnels() {
    let server = echo();
    let mut setup = Setup::new(server.address);
    let granted = grant(&["example.org"], "why", 0, 1).unwrap();
    setup.allowlist = Some(Allowlist::default().and(granted.allowlist(at(0))));
    let proxy = setup.start();
    let (mut client, hello) = tunnel(&proxy, "example.org");
    assert_eq!(client.exactly(hello.len()), hello);
    assert_eq!(client.rest(), b"", "the tunnel ends with the grant that it leans on");
    proxy.until(|counts| counts.cut.get(&Cut::Lifetime) == Some(&1));
    *proxy.clock.0.lock().unwrap() = at(1);
    let answer = refused(&proxy, "example.org:443");
    assert!(answer.contains(Reason::GrantExpired.code()), "{answer}");
}

#[test]
fn of_two_rules_for_the_same_host_the_one_that_lasts_longer_counts() {
    let contract = Allowlist::parse(&["example.org"]).unwrap();
    let granted = |end| grant(&["example.org"], "why", 0, end).unwrap().allowlist(at(0));
    let asked =
        EgressRequest { host: Host::parse("example.org").unwrap(), port: 443, kind: RequestKind::Tunnel };
    for (list, ends) in [
        (granted(5).and(contract.clone()), None),
        (contract.and(granted(5)), None),
        (granted(5).and(granted(9)), Some(at(9))),
        (granted(9).and(granted(5)), Some(at(9))),
    ] {
        let Listing::Allowed { until, .. } = list.decide(&asked, at(1)).listing else {
            panic!("it is listed")
        };
        assert_eq!(until, ends);
    }
}

#[test]
fn a_rule_of_the_contract_outlasts_a_grant_for_the_same_host() {
    let server = echo();
    let mut setup = Setup::new(server.address);
    let granted = grant(&["example.org"], "why", 0, 1).unwrap().allowlist(at(0));
    setup.allowlist = Some(granted.and(Allowlist::parse(&["example.org"]).unwrap()));
    let proxy = setup.start();
    *proxy.clock.0.lock().unwrap() = at(2);
    let (mut client, hello) = tunnel(&proxy, "example.org");
    assert_eq!(client.exactly(hello.len()), hello);
}
