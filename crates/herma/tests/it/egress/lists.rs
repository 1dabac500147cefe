//! The hosts that every run of an installation may reach: its list, signed or not, and grants.

use herma_core::Blocker;
use serde_json::{Value, json};

use crate::cli::assert_matches;
use crate::kit::{Herma, as_approver};

/// The output of `herma egress test` for a host, without a resolver.
fn verdict(herma: &Herma, host: &str) -> (String, Option<String>) {
    let ended = herma.run(&["egress", "test", host, "--offline", "--json"]);
    let said = ended.json();
    let text = |key: &str| said[key].as_str().map(str::to_owned);
    assert_eq!(ended.code, Some(i32::from(said["verdict"] != "allowed")), "{ended:#?}");
    assert_matches(&said, &herma.json(&["schema", "egress-test"]), &["egress", "test"]);
    (text("verdict").unwrap(), text("allowed_by").or(text("reason")))
}

fn allowed(by: &str) -> (String, Option<String>) {
    ("allowed".to_owned(), Some(by.to_owned()))
}

fn denied() -> (String, Option<String>) {
    ("denied".to_owned(), Some("not_listed".to_owned()))
}

fn grant(herma: &Herma, lasts: &str) -> Value {
    let args = as_approver(
        "alice",
        &["egress", "grant", "files.example", "--reason", "a download", "--for", lasts, "--json"],
    );
    let granted = herma.json(&args);
    assert_matches(&granted, &herma.json(&["schema", "egress-grant-shown"]), &["egress", "grant"]);
    granted["grant"].clone()
}

fn list(herma: &Herma, text: &str) {
    std::fs::create_dir_all(herma.marked_home().join("egress")).unwrap();
    std::fs::write(herma.home().join("egress/allowlist"), text).unwrap();
}

#[test]
fn the_installations_list_allows_and_a_line_that_is_no_rule_blocks_every_run() {
    let herma = Herma::new();
    assert_eq!(verdict(&herma, "files.example"), denied());
    list(&herma, "# for all\nfiles.example\n\n*.mirror.example:8443\n");
    assert_eq!(verdict(&herma, "files.example"), allowed("installation"));
    assert_eq!(verdict(&herma, "a.mirror.example:8443"), allowed("installation"));
    let shown = herma.json(&["egress", "show", "--json"]);
    assert_matches(&shown, &herma.json(&["schema", "egress"]), &["egress", "show"]);
    assert_eq!(shown["installation"]["hosts"], json!(["files.example", "*.mirror.example:8443"]));
    herma.play("fix", &[]).assert_pass();

    list(&herma, "files.example\nhttps://other.example\n");
    let ended = herma.run(&["egress", "show"]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!(ended.stderr.contains("egress/allowlist:2: the egress entry"), "{ended:#?}");
    let run = herma.play("fix", &[]);
    run.assert_only(Blocker::DestinationUnready);
    assert!(run.report.blockers[0].detail.contains("egress/allowlist:2: "), "{:#?}", run.report.blockers);
}

#[test]
fn nobody_is_advised_to_list_an_address_that_no_list_opens() {
    let herma = Herma::new();
    for host in ["10.0.0.1:443", "127.0.0.1", "http://169.254.169.254", "[::1]:8443"] {
        let said = herma.run(&["egress", "test", host, "--json"]).json();
        assert_eq!(
            (&said["verdict"], &said["reason"]),
            (&"denied".into(), &"private_address".into()),
            "{said}"
        );
        let next = said["next_step"].as_str().unwrap();
        assert!(next.contains("no list and no grant") && !next.contains("Add"), "{said}");
    }
    let run = herma.play("steps: [{ connect: { to: \"10.0.0.1:443\", must: true } }]", &[]);
    let record = run.report.blockers.iter().find(|record| record.blocker == Blocker::EgressDenied).unwrap();
    assert_eq!(record.detail, "the engine was denied 10.0.0.1:443 (private_address)");
    assert!(record.blocker.next_step().contains("is reached by no list and no grant"), "{record:?}");
}

#[test]
fn a_grant_is_signed_counts_for_a_while_and_can_be_taken_back() {
    let herma = Herma::new();
    let nobody = herma.run(&["egress", "grant", "files.example", "--reason", "x", "--for", "2h"]);
    assert_eq!(nobody.code, Some(2), "{nobody:#?}");
    herma.let_in("alice", None);
    let made = grant(&herma, "2h");
    let id = made["id"].as_str().unwrap().to_owned();
    assert_eq!((&made["state"], &made["by"]), (&"holds".into(), &"alice".into()), "{made:#}");
    assert_eq!(verdict(&herma, "files.example"), allowed(&format!("grant {id}")));

    let long = as_approver("alice", &["egress", "grant", "a.example", "--reason", "x", "--for", "169h"]);
    let long = herma.run(&long);
    assert_eq!(long.code, Some(2), "{long:#?}");
    assert!(long.stderr.contains("at most 7 days, which is `168h`"), "{long:#?}");
    let days = herma.run(&["egress", "grant", "a.example", "--reason", "x", "--for", "9d"]);
    assert_eq!(days.code, Some(2), "{days:#?}");
    let said = "`9d` is not a length of time: write it like `250ms`, `90s`, `20m` or `2h`; at most 7 days, which is `168h`";
    assert!(days.stderr.contains(said), "{days:#?}");

    let revoked = herma.json(&["egress", "revoke", &id, "--json"]);
    assert_eq!(revoked["grant"]["state"], "revoked", "{revoked:#}");
    assert_eq!(verdict(&herma, "files.example"), denied());
}

#[test]
fn a_grant_expires_and_a_changed_one_or_one_of_a_revoked_signer_never_counts() {
    let herma = Herma::new();
    herma.let_in("alice", None);
    herma.let_in("bob", Some("alice"));
    grant(&herma, "1ms");
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert_eq!(verdict(&herma, "files.example"), denied());

    let made = grant(&herma, "2h");
    let file = herma.home().join(format!("egress/grants/{}.json", made["id"].as_str().unwrap()));
    let sound = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, sound.replace("files.example", "other.example")).unwrap();
    assert_eq!(verdict(&herma, "other.example"), denied());
    std::fs::write(&file, sound).unwrap();
    assert_eq!(verdict(&herma, "files.example").0, "allowed");
    assert_eq!(herma.run(&["approver", "revoke", "alice", "--reason", "left"]).code, Some(0));
    assert_eq!(verdict(&herma, "files.example"), denied());
}

#[test]
fn a_list_that_must_be_signed_counts_as_it_was_signed_and_a_bad_signature_blocks_new_runs() {
    let herma = Herma::new();
    herma.let_in("alice", None);
    herma.let_in("bob", Some("alice"));
    herma.settings("egress_signed_by: alice\n");
    herma.play("fix", &[]).assert_pass();
    list(&herma, "files.example\n");
    assert_eq!(verdict(&herma, "files.example"), denied());
    herma.play("fix", &[]).assert_only(Blocker::DestinationUnready);

    let other = herma.run_as("bob", &["egress", "sign"]);
    assert_eq!(other.code, Some(2), "{other:#?}");
    let signed = herma.run_as("alice", &["egress", "sign", "--json"]);
    assert_eq!(signed.code, Some(0), "{signed:#?}");
    assert_matches(&signed.json(), &herma.json(&["schema", "egress-list-changed"]), &["egress", "sign"]);
    assert_eq!(verdict(&herma, "files.example"), allowed("installation"));
    herma.play("fix", &[]).assert_pass();
    // Hosts added since do not count.
    list(&herma, "files.example\nother.example\n");
    assert_eq!(verdict(&herma, "other.example"), denied());
    herma.play("fix", &[]).assert_pass();

    let file = herma.home().join("egress/allowlist.signed.json");
    let sound = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, sound.replace("files.example", "evils.example")).unwrap();
    let shown = herma.json(&["egress", "show", "--json"]);
    assert_eq!(shown["installation"]["hosts"], json!(["files.example"]), "the last good one: {shown:#}");
    assert_eq!(verdict(&herma, "evils.example"), denied());
    let run = herma.play("fix", &[]);
    run.assert_only(Blocker::DestinationUnready);
    assert!(run.report.blockers[0].detail.contains("not signed by the key `alice`"), "{:#?}", run.report);

    // An older list cannot take the place of a newer one.
    std::fs::write(&file, &sound).unwrap();
    assert_eq!(herma.run_as("alice", &["egress", "sign"]).code, Some(0));
    std::fs::write(&file, &sound).unwrap();
    assert_eq!(herma.json(&["egress", "show", "--json"])["installation"]["serial"], 2);
    herma.play("fix", &[]).assert_only(Blocker::DestinationUnready);
    // Nor where the record of the last good list is restored with it: the trust chain names the newer one.
    std::fs::write(herma.home().join("egress/last-good.json"), &sound).unwrap();
    assert_eq!(verdict(&herma, "files.example"), denied());
    let run = herma.play("fix", &[]);
    run.assert_only(Blocker::DestinationUnready);
    assert!(run.report.blockers[0].detail.contains("the trust chain names another one"), "{:#?}", run.report);
    assert_eq!(herma.run_as("alice", &["egress", "sign"]).code, Some(0));
    assert_eq!(herma.json(&["egress", "show", "--json"])["installation"]["serial"], 3);
    herma.play("fix", &[]).assert_pass();
}

#[test]
fn only_a_person_adopts_the_hosts_that_a_run_learned() {
    let herma = Herma::new();
    let run = herma.play("fix", &[]).report.run_id;
    let nothing = herma.run(&["egress", "adopt", "last", "--yes"]);
    assert_eq!(nothing.code, Some(2), "{nothing:#?}");
    // As a run leaves it that could reach something.
    let proposal = json!({ "run_id": run, "contract_id": "trim-slug", "made": "2026-01-01T00:00:00Z",
        "hosts": ["files.example", "other.example:8443"] });
    let dir = herma.home().join("egress/learned");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(format!("{run}.json")), proposal.to_string()).unwrap();
    let learned = herma.json(&["egress", "learned", "last", "--json"]);
    assert_matches(&learned, &herma.json(&["schema", "egress-learned"]), &["egress", "learned"]);
    assert_eq!(learned["proposals"][0], proposal);
    assert_eq!(verdict(&herma, "files.example"), denied(), "a proposal is no list");

    let unasked = herma.run(&["egress", "adopt", "last"]);
    assert_eq!(unasked.code, Some(2), "{unasked:#?}");
    assert_eq!(herma.run_typing("no", &["egress", "adopt", "last"]).code, Some(2));
    assert_eq!(herma.run(&["egress", "adopt", "last", "evils.example", "--yes"]).code, Some(2));
    assert_eq!(verdict(&herma, "files.example"), denied());
    let adopted = herma.json(&["egress", "adopt", "last", "files.example", "--yes", "--json"]);
    assert_eq!(adopted["added"], json!(["files.example"]));
    assert_eq!(verdict(&herma, "files.example"), allowed("installation"));
    assert_eq!(verdict(&herma, "other.example:8443"), denied());
    assert_eq!(herma.run_typing("yes", &["egress", "adopt", "last"]).code, Some(0));
    assert_eq!(verdict(&herma, "other.example:8443"), allowed("installation"));
}

#[test]
fn an_approval_is_void_when_the_installation_allows_more_or_less_than_was_shown() {
    let herma = Herma::proven(4);
    list(&herma, "files.example\n");
    herma.contract(&[("stage", "4")]);
    let asked =
        herma.json(&["approvals", "request", "contracts/contract.md", "--reason", "it is time", "--json"]);
    assert!(
        asked["packet"].to_string().contains("files.example (every run of this installation)"),
        "{asked:#}"
    );
    let (id, code) = (asked["approval_id"].as_str().unwrap(), asked["code"].as_str().unwrap());
    let granted = herma.run_as("alice", &["approvals", "grant", id, "--reason", "read", "--code", code]);
    assert_eq!(granted.code, Some(0), "{granted:#?}");
    let void = || {
        // Another gate keeps it from its start, so that the approval is not used.
        let run = herma.unproven("fake", 4, || herma.finished(&["run", "contracts/contract.md", "--json"]));
        let about = run.report.blockers.iter().find(|record| record.blocker == Blocker::ApprovalVoid);
        about.map(|record| record.detail.clone())
    };
    assert_eq!(void(), None);
    let changed = |what: &str| assert!(void().is_some_and(|why| why.contains("the egress rules")), "{what}");
    list(&herma, "files.example\nother.example\n");
    changed("another host");
    list(&herma, "");
    changed("no host");
    list(&herma, "# the same\nfiles.example\n");
    assert_eq!(void(), None);
    let made = grant(&herma, "2h");
    changed("a grant");
    herma.json(&["egress", "revoke", made["id"].as_str().unwrap(), "--json"]);
    assert_eq!(void(), None);
}
