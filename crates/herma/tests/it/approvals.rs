//! `herma approvals`, from outside: asked for, read, granted, denied, and what a run makes of it.

mod asked;

use herma_core::Blocker;
use serde_json::Value;

use crate::cli::assert_matches;
use crate::kit::{Ended, Herma, as_approver, contract_text};

/// A contract that needs an approval.
const STAGE_4: &[(&str, &str)] = &[("stage", "4")];

/// A home with the approvers alice and bob, and a contract that needs an approval.
fn herma() -> Herma {
    let herma = Herma::proven(4);
    herma.let_in("bob", Some("alice"));
    herma.contract(STAGE_4);
    herma
}

/// The approvals that are listed, but for those of the proof that the home has.
fn listed(herma: &Herma, options: &[&str]) -> Vec<Value> {
    let printed = herma.json(&[&["approvals", "list", "--limit", "100", "--json"], options].concat());
    assert_eq!(printed["schema"], "herma.approvals/v1");
    let rows = printed["approvals"].as_array().unwrap().iter();
    rows.filter(|row| !row["contract_id"].as_str().unwrap().starts_with("prove-")).cloned().collect()
}

/// Asks for an approval of the contract and gives what was printed.
fn request(herma: &Herma) -> Value {
    let args = ["approvals", "request", "contracts/contract.md", "--reason", "it is time", "--json"];
    let asked = herma.json(&args);
    assert_eq!((&asked["schema"], &asked["state"]), (&"herma.approval/v1".into(), &"requested".into()));
    assert_matches(&asked, &herma.json(&["schema", "approval"]), &args);
    asked
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key}: {value:#}"))
}

fn state(herma: &Herma, id: &str) -> String {
    text(&herma.json(&["approvals", "show", id, "--json"]), "state").to_owned()
}

fn grant(herma: &Herma, who: &str, asked: &Value) -> Ended {
    let (id, code) = (text(asked, "approval_id"), text(asked, "code"));
    herma.run_as(who, &["approvals", "grant", id, "--reason", "I read it", "--code", code])
}

/// The approval of a run of the contract, as its report shows it.
fn at_the_gate(herma: &Herma) -> (Blocker, String) {
    let run = herma.finished(&["run", "contracts/contract.md", "--json"]);
    assert_eq!(run.ended.code, Some(3), "{:#?}", run.ended);
    let about =
        |record: &&herma_core::blocker::BlockerRecord| record.blocker.as_str().starts_with("approval_");
    let record =
        run.report.blockers.iter().find(about).unwrap_or_else(|| panic!("{:#?}", run.report.blockers));
    (record.blocker, record.detail.clone())
}

/// The run is not blocked for lack of an approval.
fn passes_the_gate(herma: &Herma) -> bool {
    // Another gate keeps it from its start, so that the approval is not used.
    let run = herma.unproven("fake", 4, || herma.finished(&["run", "contracts/contract.md", "--json"]));
    !run.report.blockers.iter().any(|record| record.blocker.as_str().starts_with("approval_"))
}

#[test]
fn an_approval_is_asked_for_read_and_granted() {
    let mut herma = herma();
    herma.set("USER", "carol");
    assert_eq!(at_the_gate(&herma).0, Blocker::ApprovalVoid);
    let asked = request(&herma);
    let id = text(&asked, "approval_id").to_owned();
    assert_eq!(asked["approval"]["request"]["requested_by"], "carol");
    assert_eq!(asked["approval"]["signed_request"], Value::Null);
    let (_, waits) = at_the_gate(&herma);
    assert!(waits.contains("requested, not granted: "), "{waits}");

    let granted = grant(&herma, "alice", &asked);
    assert_eq!(granted.code, Some(0), "{granted:#?}");
    assert!(granted.stdout.contains("granted   by alice on "), "{granted:#?}");
    let shown = herma.json(&["approvals", "show", &id, "--json"]);
    assert_eq!(
        (&shown["state"], &shown["void"], &shown["code"]),
        (&"granted".into(), &Value::Null, &Value::Null)
    );
    assert_eq!(shown["approval"]["ruling"]["record"]["reason"], "I read it");
    assert!(passes_the_gate(&herma));

    let again = grant(&herma, "bob", &asked);
    assert_eq!(again.code, Some(3), "{again:#?}");
    assert!(again.stderr.contains("is granted, so that nobody can rule on it any more"), "{again:#?}");
}

#[test]
fn the_packet_is_shown_whole_and_as_a_text_that_does_nothing() {
    let herma = herma();
    let asked = request(&herma);
    let id = text(&asked, "approval_id");
    let shown = herma.run(&["approvals", "show", id]);
    assert_eq!(shown.code, Some(0), "{shown:#?}");
    for line in asked["packet"].as_array().unwrap() {
        assert!(shown.stdout.contains(line.as_str().unwrap()), "{line}: {}", shown.stdout);
    }
    for said in ["it is time", "What stays blocked", "fixture:string-slugify", "requested, until "] {
        assert!(shown.stdout.contains(said), "{said}: {}", shown.stdout);
    }
    let copy = herma.run(&["approvals", "show", id, "--copy"]);
    assert_eq!(copy.code, Some(0), "{copy:#?}");
    assert!(
        copy.stdout.lines().count() > 20 && copy.stdout.lines().all(|line| line.starts_with('#')),
        "{copy:#?}"
    );
}

#[test]
fn without_the_code_nothing_is_granted() {
    let herma = herma();
    let asked = request(&herma);
    let (id, code) = (text(&asked, "approval_id"), text(&asked, "code"));
    let grant = ["approvals", "grant", id, "--reason", "yes"];

    let nobody = herma.run_as("alice", &grant);
    assert_eq!(nobody.code, Some(2), "{nobody:#?}");
    assert!(nobody.stdout.contains("What will change") && nobody.stdout.contains(code), "{nobody:#?}");
    assert!(nobody.stderr.contains(&format!("`--code {code}`")), "{nobody:#?}");

    let program = herma.run(&as_approver("alice", &[&grant[..], &["--json"]].concat()));
    assert_eq!(program.code, Some(2), "{program:#?}");
    assert_eq!((&program.json()["state"], &program.json()["code"]), (&"requested".into(), &code.into()));

    for wrong in ["", "000000", "AAAAAA", &code[..5]] {
        let ended = herma.run_as("alice", &[&grant[..], &["--code", wrong]].concat());
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.contains("that is not the code"), "{ended:#?}");
    }
    // The code of one packet is not that of another.
    let other = request(&herma);
    let ended = herma.run_as("alice", &[&grant[..], &["--code", text(&other, "code")]].concat());
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert_eq!((state(&herma, id).as_str(), state(&herma, "last").as_str()), ("requested", "requested"));
}

/// Nobody types a passphrase into something unread: who has not typed the code is not asked for one.
#[test]
fn the_code_is_asked_for_on_the_terminal_and_before_the_key() {
    let herma = herma();
    let asked = request(&herma);
    let (id, code) = (text(&asked, "approval_id"), text(&asked, "code"));
    let unkeyed = ["approvals", "grant", id, "--reason", "yes", "--approver", "alice"];
    let wrong = herma.run_typing("no", &unkeyed);
    assert_eq!(wrong.code, Some(2), "{wrong:#?}");
    assert!(wrong.stderr.contains("Type the code") && !wrong.stderr.contains("Passphrase"), "{wrong:#?}");
    assert_eq!(state(&herma, id), "requested");
    let typed = code.to_ascii_lowercase();
    let right = herma.run_typing(&typed, &as_approver("alice", &unkeyed[..5]));
    assert_eq!(right.code, Some(0), "{right:#?}");
    assert_eq!(state(&herma, id), "granted");
}

#[test]
fn only_an_approver_with_the_right_passphrase_grants_or_denies() {
    let herma = herma();
    let asked = request(&herma);
    let (id, code) = (text(&asked, "approval_id"), text(&asked, "code"));
    herma.file("zoe.txt", "the passphrase of zoe\n");
    for (who, file) in [("alice", "bob.txt"), ("zoe", "zoe.txt")] {
        for word in ["grant", "deny"] {
            let mut args =
                vec!["approvals", word, id, "--reason", "x", "--approver", who, "--passphrase-file", file];
            if word == "grant" {
                args.extend(["--code", code]);
            }
            let ended = herma.run(&args);
            assert_eq!(ended.code, Some(2), "{ended:#?}");
        }
    }
    assert_eq!(state(&herma, id), "requested");
}

#[test]
fn a_denial_is_final() {
    let herma = herma();
    let asked = request(&herma);
    let id = text(&asked, "approval_id");
    let denied = herma.run_as("bob", &["approvals", "deny", id, "--reason", "too much at once"]);
    assert_eq!(denied.code, Some(0), "{denied:#?}");
    assert!(denied.stdout.contains("What will change"), "{denied:#?}");
    let ended = grant(&herma, "alice", &asked);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stderr.contains("is denied"), "{ended:#?}");
    assert_eq!(at_the_gate(&herma), (Blocker::ApprovalDenied, at_the_gate(&herma).1));
    assert!(at_the_gate(&herma).1.contains("too much at once"));
    // Approvals that cannot be granted or used are listed on request only.
    assert_eq!(listed(&herma, &[]), [Value::Null; 0]);
    let all = listed(&herma, &["--all"]);
    assert_eq!((&all[0]["state"], &all[0]["approver"]), (&"denied".into(), &"bob".into()));
}

#[test]
fn a_request_that_is_not_granted_in_time_expires() {
    let herma = herma();
    herma.settings("approval_valid_for: 1ms\n");
    let args = ["approvals", "request", "contracts/contract.md", "--reason", "quick", "--json"];
    let asked = herma.json(&args);
    let id = text(&asked, "approval_id");
    assert_eq!(state(&herma, id), "expired");
    for word in ["grant", "deny"] {
        let ended = herma.run_as("alice", &["approvals", word, id, "--reason", "late"]);
        assert_eq!(ended.code, Some(3), "{ended:#?}");
        assert!(ended.stderr.contains("is expired"), "{ended:#?}");
    }
    assert_eq!(at_the_gate(&herma).0, Blocker::ApprovalExpired);
}

#[test]
fn the_grant_of_a_revoked_approver_is_void() {
    let herma = herma();
    let asked = request(&herma);
    assert_eq!(grant(&herma, "bob", &asked).code, Some(0));
    assert!(passes_the_gate(&herma));
    let revoked = herma.run(&["approver", "revoke", "bob", "--reason", "left the house"]);
    assert_eq!(revoked.code, Some(0), "{revoked:#?}");
    let (blocker, detail) = at_the_gate(&herma);
    assert_eq!(blocker, Blocker::ApprovalVoid);
    assert!(detail.contains("bob was revoked"), "{detail}");
    let shown = herma.json(&["approvals", "show", "--json"]);
    assert!(text(&shown, "void").contains("bob was revoked"), "{shown:#}");
    let shown = herma.run(&["approvals", "show"]).stdout;
    assert!(shown.contains("void      bob was revoked"), "{shown}");
}

#[test]
fn a_changed_contract_is_not_what_was_granted() {
    let herma = herma();
    assert_eq!(grant(&herma, "alice", &request(&herma)).code, Some(0));
    let file = herma.at("contracts/contract.md");
    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{before}!\n")).unwrap();
    let (blocker, detail) = at_the_gate(&herma);
    assert_eq!(blocker, Blocker::ApprovalVoid);
    assert!(detail.contains("the contract changed"), "{detail}");
    std::fs::write(&file, before).unwrap();
    assert!(passes_the_gate(&herma));
}

#[test]
fn with_separation_of_duties_the_requester_cannot_grant() {
    let herma = herma();
    let unsigned = request(&herma);
    herma.settings("separation_of_duties: true\n");
    let asking = ["approvals", "request", "contracts/contract.md", "--reason", "two of us", "--json"];
    let nobody = herma.run(&asking);
    assert_eq!(nobody.code, Some(2), "{nobody:#?}");
    let asked = herma.run_as("alice", &asking).json();
    assert_eq!(asked["approval"]["request"]["requested_by"], "alice");
    assert_eq!(asked["approval"]["signed_request"]["record"], asked["approval"]["request"]);

    let same = grant(&herma, "alice", &asked);
    assert_eq!(same.code, Some(2), "{same:#?}");
    assert!(same.stderr.contains("`alice` asked for this approval and cannot rule on it"), "{same:#?}");
    assert_eq!(state(&herma, text(&asked, "approval_id")), "requested");
    // A request from before that nobody signed can be granted and is still no approval.
    assert_eq!(grant(&herma, "bob", &unsigned).code, Some(0));
    let (blocker, detail) = at_the_gate(&herma);
    assert_eq!(blocker, Blocker::ApprovalVoid, "{detail}");
    assert_eq!(grant(&herma, "bob", &asked).code, Some(0));
    assert!(passes_the_gate(&herma));
}

/// An agent can be the user's own: calling itself by an approver's name gets it nowhere.
#[test]
fn a_name_in_the_environment_is_no_approver() {
    let mut herma = herma();
    herma.settings("separation_of_duties: true\n");
    herma.set("USER", "alice");
    let args = ["approvals", "request", "contracts/contract.md", "--reason", "trust me"];
    let ended = herma.run(&args);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert_eq!(listed(&herma, &["--all"]), [Value::Null; 0]);
}

#[test]
fn nothing_in_a_packet_hides() {
    let mut herma = herma();
    herma.set("USER", "carol\u{202e}\u{1b}[2J");
    let hostile = "Harmless \u{202e}elif\u{202c} \u{1b}[31mred\u{1b}[0m \u{200b}\u{9b}2J\u{7}\r\n  code      AAAAAA\n\u{2066}x";
    let title = "\"a\\u202Etitle\\u001B[2J\"";
    let contract = contract_text(&[("stage", "4"), ("title", title), ("success", "[\"\\u2066ok\\u009B\"]")]);
    herma.file("contracts/contract.md", format!("{contract}\n{hostile}\n"));
    let asked = herma.run(&["approvals", "request", "contracts/contract.md", "--reason", "look closely"]);
    assert_eq!(asked.code, Some(0), "{asked:#?}");
    let raw = |text: &str| {
        let unseen = |c: char| {
            c.is_control() && c != '\n' || matches!(c, '\u{200b}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        text.chars().find(|c| unseen(*c))
    };
    let run = herma.run(&["run", "contracts/contract.md"]);
    for ended in [
        asked,
        herma.run(&["approvals", "show"]),
        herma.run(&["approvals", "show", "--copy"]),
        herma.run(&["approvals", "list"]),
        herma.run_as("alice", &["approvals", "grant", "last", "--reason", "x"]),
        herma.run_as("alice", &["approvals", "deny", "last", "--reason", "x"]),
        run,
    ] {
        assert_eq!(raw(&ended.stdout).or(raw(&ended.stderr)), None, "{ended:#?}");
    }
    let shown = herma.run(&["approvals", "show"]).stdout;
    assert!(shown.contains("\\u{202e}") && shown.contains("\\u{1b}[31m"), "{shown}");
    assert!(shown.contains("carol\\u{202e}"), "{shown}");
    // A line of the brief never looks like one of herma's own.
    assert!(!shown.lines().any(|line| line.trim() == "code      AAAAAA"), "{shown}");
    // A reason is one line that shows all that it holds.
    for reason in ["two\nlines", "a\u{202e}b", ""] {
        let ended = herma.run(&["approvals", "request", "contracts/contract.md", "--reason", reason]);
        assert_eq!(ended.code, Some(2), "{ended:#?}");
    }
}

#[test]
fn an_approval_is_found_by_its_name_its_start_its_last_digits_or_as_the_last() {
    let herma = herma();
    let (first, last) = (request(&herma), request(&herma));
    let id = text(&first, "approval_id");
    let found =
        |name: &str| text(&herma.json(&["approvals", "show", name, "--json"]), "approval_id").to_owned();
    assert_eq!([found(id), found(&id[..23]), found(&id[id.len() - 8..])], [id, id, id]);
    assert_eq!(found("last"), text(&last, "approval_id"));
    for (name, why) in [
        ("0", "more than one approval is called `0`"),
        ("ffffffff", "there is no approval"),
        ("", "there is no"),
    ] {
        let ended = herma.run(&["approvals", "show", name]);
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.contains(why), "{ended:#?}");
    }
    let one = herma.json(&["approvals", "list", "--limit", "1", "--json"]);
    assert_eq!(one["approvals"].as_array().unwrap().len(), 1);
    assert_eq!(one["approvals"][0]["approval_id"], last["approval_id"]);
    assert_eq!(listed(&herma, &[]).len(), 2);
    let shown = herma.run(&["approvals", "list"]).stdout;
    assert_eq!(shown.lines().filter(|line| !line.contains("prove-")).count(), 2, "{shown}");
}

#[test]
fn a_request_without_need_or_possibility_of_approval_is_refused() {
    let herma = Herma::new();
    let ask = |contract: &str, engine: &str| {
        herma.run(&["approvals", "request", contract, "--engine", engine, "--reason", "x"])
    };
    let none = ask("fixture:string-slugify", "fake");
    assert_eq!(none.code, Some(2), "{none:#?}");
    assert!(none.stderr.contains("stage 2 needs no approval"), "{none:#?}");
    herma.contract(STAGE_4);
    for engine in ["stub", "codex", "no-such-engine"] {
        let ended = ask("contracts/contract.md", engine);
        assert_eq!(ended.code, Some(3), "{ended:#?}");
        assert!(ended.stderr.contains("there is nothing to approve yet"), "{ended:#?}");
    }
    herma.contract(&[("stage", "5"), ("target", "{ repo: not-admitted }")]);
    let ended = ask("contracts/contract.md", "fake");
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    let listed = herma.run(&["approvals", "list"]);
    assert!(listed.stdout.starts_with("no approvals that can be granted"), "{listed:#?}");
    let ended = herma.run(&["approvals", "show"]);
    assert!(ended.stderr.starts_with("error: there is no approval yet\n"), "{ended:#?}");
}

/// Nobody is asked for a yes to what cannot happen.
#[test]
fn an_approval_for_a_stage_that_is_not_proven_is_refused_with_the_command_that_proves_it() {
    let herma = herma();
    herma.contract(&[("stage", "5"), ("target", "{ repo: my-repo }")]);
    let ask = || herma.run(&["approvals", "request", "contracts/contract.md", "--reason", "x"]);
    let refused = |ended: &Ended, why: &str, stage: u8| {
        assert_eq!(ended.code, Some(3), "{ended:#?}");
        let said = format!(
            "error: there is nothing to approve yet: {why}\nnext: Run `herma prove --engine fake --up-to {stage}`; \
             `herma ladder` shows what is missing.\n"
        );
        assert_eq!(ended.stderr, said);
    };
    refused(&ask(), "`fake` has no proof of stage 5", 5);
    herma.contract(STAGE_4);
    let unproven = herma.unproven("fake", 4, ask);
    refused(&unproven, "`fake` has no proof of stage 4", 4);
    assert_eq!(listed(&herma, &["--all"]), [Value::Null; 0]);
    assert_eq!(ask().code, Some(0));
    assert_eq!(listed(&herma, &["--all"]).len(), 1);
}

#[test]
fn a_run_without_an_approval_shows_the_next_command() {
    let herma = herma();
    let run = herma.run(&["run", "contracts/contract.md"]);
    assert_eq!(run.code, Some(3), "{run:#?}");
    let ask = "`herma approvals request contracts/contract.md --engine fake --reason TEXT`";
    assert!(run.stdout.contains(&format!("next: ask for an approval with {ask}\n")), "{run:#?}");
    let asked = request(&herma);
    let id = text(&asked, "approval_id");
    let run = herma.run(&["run", "contracts/contract.md"]);
    let next =
        format!("next: an approver says `herma approvals grant {} --reason TEXT`\n", &id[id.len() - 8..]);
    assert!(run.stdout.contains(&next), "{run:#?}");
    let denied = herma.run_as("alice", &["approvals", "deny", id, "--reason", "no"]);
    assert_eq!(denied.code, Some(0), "{denied:#?}");
    let run = herma.run(&["run", "contracts/contract.md"]);
    assert!(!run.stdout.contains("herma approvals request contracts"), "{run:#?}");
}
