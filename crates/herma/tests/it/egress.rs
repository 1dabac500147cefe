//! The hosts that a run may reach besides its model, from outside: denials, records, and who can allow more.

mod attacks;
mod lists;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use herma_core::contract::Action;
use herma_core::egress::{EgressMode, EgressUse};
use herma_core::{Blocker, EventType};
use serde_json::Value;

use crate::kit::{Bundle, Finished, Herma, contract_text, fix_and, until};

/// The counts of the run's proxy.
fn used(run: &Finished) -> EgressUse {
    run.report.egress.clone().unwrap_or_else(|| panic!("{:#?}", run.report))
}

/// The decisions that have an event of their own: host, port, and the reason of a denial.
pub(crate) fn decisions(bundle: &Bundle) -> Vec<(String, u64, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_egress = bundle.events().into_iter().filter(|event| event.kind == EventType::EgressDecided);
    of_egress
        .filter(|event| !event.data.contains_key("sums"))
        .map(|event| {
            (text(&event.data["host"]), event.data["port"].as_u64().unwrap(), text(&event.data["reason"]))
        })
        .collect()
}

#[test]
fn a_run_that_names_no_host_is_denied_every_one_and_each_attempt_is_recorded() {
    let herma = Herma::new();
    let steps = ["- connect: { to: \"example.org:443\" }", "- connect: { to: \"example.net:8443\" }"];
    let run = herma.play(&fix_and(&steps), &[]);
    // It did without them: nothing is wrong with the work.
    run.assert_pass();
    let denied = |host: &str, port| (host.to_owned(), port, "not_listed".to_owned());
    assert_eq!(decisions(&run.bundle), [denied("example.org", 443), denied("example.net", 8443)]);
    let used = used(&run);
    assert_eq!((used.mode, used.allowed, used.all_denied()), (EgressMode::Strict, 0, 2));
    assert_eq!((used.without_an_event, used.bytes_out, used.bytes_in), (0, 0, 0));
    let shown = herma.run(&["show", "--full"]).stdout;
    assert!(shown.contains("| egress | strict; 0 allowed, 2 denied (2 not_listed), 0 failed"), "{shown}");
}

/// The operator's metrics at a run's socket; none where there is none.
fn metrics(run: &Path) -> String {
    let mut text = String::new();
    if let Ok(mut operator) = UnixStream::connect(run.join("egress/metrics.sock")) {
        operator.write_all(b"GET /metrics HTTP/1.1\r\nHost: run\r\n\r\n").unwrap();
        operator.read_to_string(&mut text).unwrap();
    }
    text
}

#[test]
fn an_operator_reads_the_metrics_of_a_run_while_it_lasts_and_the_agent_cannot() {
    let herma = Herma::new();
    let steps = [
        "- connect: { to: \"example.org:443\" }",
        // System directories are left out: on a cold disk it takes longer to walk than an engine may be silent.
        "- shell: { command: \"! find / \\\\( -path /usr -o -path /proc \\\\) -prune -o -name metrics.sock -print 2>/dev/null | grep .\", must: true }",
        "- shell: { command: \"until rm go 2>/dev/null; do sleep 0.01; done\", must: true }",
    ];
    let script = herma.script(&fix_and(&steps));
    let args = ["run".as_ref(), "fixture:string-slugify".as_ref(), "--script".as_ref(), script.as_os_str()];
    let run = herma.finished_by(|| {
        let started = herma.start(&args);
        let place = || herma.runs().first().map(|run| herma.home().join("runs").join(run.to_string()));
        let denied = "\nherma_egress_decisions_total{verdict=\"denied\",reason=\"not_listed\"} 1\n";
        until("the decision is counted", || place().is_some_and(|run| metrics(&run).contains(denied)));
        std::fs::write(place().unwrap().join("workspace/go"), "").unwrap();
        started.end()
    });
    run.assert_pass();
    assert_eq!(used(&run).denied.get("not_listed"), Some(&1), "the report says the same");
}

#[test]
fn a_run_that_asks_for_nothing_says_so_and_has_no_event_of_it() {
    let run = Herma::new().play("fix", &[]);
    run.assert_pass();
    assert_eq!(run.report.egress, Some(EgressUse::default()));
    assert!(!run.bundle.has_event(EventType::EgressDecided));
}

#[test]
fn a_run_that_cannot_go_on_without_a_host_says_which() {
    let run = Herma::new().play("steps: [{ connect: { to: \"example.org:443\", must: true } }]", &[]);
    let record = run.report.blockers.iter().find(|record| record.blocker == Blocker::EgressDenied).unwrap();
    assert_eq!(record.detail, "the engine was denied example.org:443 (not_listed)");
}

#[test]
fn a_listed_host_is_let_through_by_the_list_and_then_fails_where_there_is_no_such_name() {
    let herma = Herma::new();
    let steps = ["- connect: { to: \"no-such-name.invalid:443\" }"];
    let run = herma.play(&fix_and(&steps), &[("egress", "[no-such-name.invalid]")]);
    run.assert_pass();
    let used = used(&run);
    assert_eq!((used.all_denied(), used.all_failed()), (0, 1), "{used:?}");
}

#[test]
fn an_upload_is_a_forbidden_action_and_a_forge_is_one_where_the_contract_names_it() {
    let herma = Herma::new();
    let upload = herma.play(&fix_and(&["- connect: { to: \"upload.pypi.org:443\" }"]), &[]);
    upload.assert_only(Blocker::ForbiddenAction);
    assert_eq!(upload.report.forbidden_actions_attempted, [Action::PublicPublication]);

    let forge = fix_and(&["- connect: { to: \"github.com:443\" }"]);
    // TLS hides what it was for, and a clone is no push.
    herma.play(&forge, &[]).assert_pass();
    let named = herma.play(&forge, &[("forbidden_actions", "[push]")]);
    named.assert_only(Blocker::ForbiddenAction);
    assert_eq!(named.report.forbidden_actions_attempted, [Action::Push]);
}

#[test]
fn on_host_a_contract_that_names_hosts_is_blocked_because_nothing_would_hold_the_engine_to_them() {
    let herma = Herma::new();
    herma.contract(&[("egress", "[example.org]")]);
    let run = herma.finished(&["run", "contracts/contract.md", "--destination", "host", "--json"]);
    run.assert_only(Blocker::DestinationUnready);
    assert!(
        run.report.blockers[0].detail.contains("`host` has no confinement"),
        "{:#?}",
        run.report.blockers
    );
    assert_eq!(run.report.egress, None);
}

#[test]
fn an_entry_that_is_no_rule_is_named_with_its_line_before_there_is_a_run() {
    let herma = Herma::new();
    let text = contract_text(&[("egress", "\n  - example.org\n  - https://example.net/path")]);
    let line = 1 + text.lines().position(|line| line.contains("example.net")).unwrap();
    herma.file("contracts/contract.md", text);
    for command in [&["contract", "check"][..], &["run"], &["approvals", "request", "--reason", "x"]] {
        let ended = herma.run(&[command, &["contracts/contract.md"]].concat());
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        let place = format!("contract.md:{line}:5: the egress entry `https://example.net/path`: ");
        assert!(ended.stderr.contains(&place), "{ended:#?}");
    }
    herma.assert_no_run();
}

#[test]
fn learning_is_for_fixtures_and_refused_from_stage_3_on() {
    let herma = Herma::new();
    herma.contract(&[("stage", "3")]);
    let run = herma.finished(&["run", "contracts/contract.md", "--egress", "learn", "--json"]);
    run.assert_only(Blocker::DestinationUnready);
    assert!(run.report.blockers[0].detail.contains("could carry source out"), "{:#?}", run.report.blockers);

    herma.contract(&[]);
    let run =
        herma.finished(&["run", "contracts/contract.md", "--egress", "learn", "--script", "fix", "--json"]);
    run.assert_pass();
    assert_eq!(used(&run).mode, EgressMode::Learn);
}
