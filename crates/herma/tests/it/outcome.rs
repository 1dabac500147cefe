//! `herma accept` and `herma reject`, from outside: what is refused before anybody types a passphrase, and where a
//! list and a report say how a run stands with its operator.

mod meddling;

use std::fs;

use herma_core::outcome::{Outcome, OutcomeSchema, OutcomeWord};
use herma_core::report::{LandedIn, LandingRecord, OutcomeState};
use herma_core::signed::Signed;
use herma_core::{Report, RunId, Stage, Timestamp};
use herma_evidence::{ApproverKey, signed};
use herma_store::{BlockingStore, StoreLocation};
use serde_json::Value;

use crate::cli::assert_matches;
use crate::kit::{Ended, Herma, Repository, as_approver, fix_and};

const FUTURE: &str = "2999-01-01T00:00:00Z";
const PAST: &str = "2020-01-01T00:00:00Z";

/// A home with the approver alice and a run that says of itself that it landed. Its report was written by hand, so its
/// evidence does not hold.
fn landed(due: &str) -> (Herma, RunId) {
    let herma = Herma::new();
    herma.let_in("alice", None);
    let run = herma.demo(&["--destination", "host"]);
    let run_id = RunId::new("2026-01-01T00:00:00Z".parse().unwrap(), [7; 10]);
    let report = Report {
        run_id,
        stage: Stage::OwnedRepo,
        outcome: OutcomeState::Pending,
        outcome_due: Some(due.parse::<Timestamp>().unwrap()),
        landing: Some(LandingRecord {
            repository: LandedIn::Target,
            reference: format!("refs/heads/herma/{run_id}"),
            commit: "c".repeat(40),
            base: "b".repeat(40),
            landed: true,
            branch_policy: "one branch".to_owned(),
            disposal: None,
        }),
        ..run.report
    };
    let bundle = herma.bundle(run_id).dir;
    fs::create_dir_all(&bundle).unwrap();
    for entry in fs::read_dir(&run.bundle.dir).unwrap().map(Result::unwrap) {
        if entry.path().is_file() {
            fs::copy(entry.path(), bundle.join(entry.file_name())).unwrap();
        }
    }
    fs::write(bundle.join("report.json"), serde_json::to_string_pretty(&report).unwrap() + "\n").unwrap();
    let store = BlockingStore::open(&StoreLocation::file(herma.home().join("store.db"))).unwrap();
    store.call(|store| store.finish_run(&report, &[])).unwrap();
    (herma, run_id)
}

fn accept(herma: &Herma, run: &str) -> Ended {
    herma.run_as("alice", &["accept", run])
}

fn reject(herma: &Herma, run: &str) -> Ended {
    herma.run_as("alice", &["reject", run, "--reason", "not what I meant"])
}

/// The run as the list has it.
fn listed(herma: &Herma, run: RunId) -> Value {
    let runs = herma.json(&["runs", "--all", "--json"]);
    let runs = runs["runs"].as_array().unwrap();
    runs.iter().find(|row| row["run_id"] == run.to_string()).unwrap().clone()
}

#[test]
fn a_run_that_landed_nowhere_asks_for_no_outcome() {
    let herma = Herma::new();
    herma.let_in("alice", None);
    let run = herma.demo(&["--destination", "host"]).report.run_id;
    for ended in [accept(&herma, "last"), reject(&herma, "last")] {
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.contains("asks for no outcome"), "{ended:#?}");
    }
    let unknown = accept(&herma, "ffffffff");
    assert!(unknown.stderr.starts_with("error: there is no run called `ffffffff`\n"), "{unknown:#?}");
    let unsaid = herma.run_as("alice", &["reject", "last"]);
    assert_eq!(unsaid.code, Some(2), "{unsaid:#?}");
    assert_eq!(listed(&herma, run)["outcome"], Value::Null);
    assert!(!herma.run(&["show", "--full"]).stdout.contains("Outcome"));
    assert!(!herma.bundle(run).dir.join("outcome.json").exists());
}

#[test]
fn a_run_that_landed_is_shown_as_pending() {
    let (herma, run) = landed(FUTURE);
    let row = listed(&herma, run);
    assert_eq!((&row["outcome"]["state"], &row["outcome"]["due"]), (&"pending".into(), &FUTURE.into()));
    let shown = herma.run(&["show", "--full", &run.to_string()]).stdout;
    assert!(shown.contains(&format!("\nOutcome: pending until {FUTURE}\nnext: `herma accept ")), "{shown}");
    let runs = herma.run(&["runs", "--all"]).stdout;
    assert!(runs.contains(&format!("outcome pending until {FUTURE}")), "{runs}");
}

/// The subject is shown before the prompt for the passphrase, and broken evidence is not accepted.
#[test]
fn broken_evidence_is_not_accepted() {
    let (herma, run) = landed(FUTURE);
    let id = run.to_string();
    let unkeyed = herma.run(&["accept", &id, "--approver", "alice"]);
    assert_eq!(unkeyed.code, Some(2), "{unkeyed:#?}");
    assert!(unkeyed.stderr.contains("there is no terminal to type the passphrase at"), "{unkeyed:#?}");
    let about =
        ["target    fixture:string-slugify", "changed   slugify.sh", "refs/heads/herma/", &"c".repeat(40)];
    for said in about {
        assert!(unkeyed.stdout.contains(said), "{said}: {unkeyed:#?}");
    }
    let ended = accept(&herma, &id);
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stderr.contains("does not hold, so it cannot be accepted or rejected"), "{ended:#?}");
    assert!(!herma.bundle(run).dir.join("outcome.json").exists());
    // Nothing is known of what to take back, and nothing is claimed to be.
    let ended = reject(&herma, &id);
    assert_eq!(ended.code, Some(4), "{ended:#?}");
    assert!(!herma.bundle(run).dir.join("outcome.json").exists());
}

#[test]
fn after_its_time_a_run_cannot_be_accepted() {
    let (herma, run) = landed(PAST);
    let ended = accept(&herma, &run.to_string());
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stderr.starts_with("error: missing_outcome: "), "{ended:#?}");
    assert!(ended.stderr.contains("`herma reject "), "{ended:#?}");
    let json = herma.run_as("alice", &["accept", &run.to_string(), "--json"]).json();
    assert_eq!((&json["schema"], &json["exit_code"]), (&"herma.error/v1".into(), &3.into()));
    assert_eq!(listed(&herma, run)["outcome"]["state"], "missing_outcome");
    let shown = herma.run(&["show", "--full", &run.to_string()]).stdout;
    assert!(shown.contains(&format!("Outcome: missing_outcome: it had to be given until {PAST}")), "{shown}");
}

/// A file that somebody wrote there is shown for what it is.
#[test]
fn an_unsigned_outcome_does_not_count() {
    let (herma, run) = landed(FUTURE);
    let digest = |name: &str| herma_core::Digest::of(&herma.bundle(run).read(name)).to_string();
    for (run_id, attestation, why) in [
        (run.to_string(), digest("attestation.json"), "the signature of alice does not hold"),
        (run.to_string(), digest("report.json"), "it is on other evidence"),
        (
            RunId::new(Timestamp::UNIX_EPOCH, [1; 10]).to_string(),
            digest("attestation.json"),
            "it is the outcome of run ",
        ),
    ] {
        let forged = serde_json::json!({
            "record": {
                "schema": "herma.outcome/v1", "run_id": run_id, "attestation": attestation, "outcome": "accepted",
                "reason": "fine\u{202e}", "operator": "alice", "decided_at": "2026-01-02T00:00:00Z",
            },
            "key_id": digest("report.json"),
            "signature": "AAAA",
        });
        let forged = serde_json::to_string_pretty(&canonical(&forged)).unwrap() + "\n";
        fs::write(herma.bundle(run).dir.join("outcome.json"), forged).unwrap();
        let shown = herma.run(&["show", "--full", &run.to_string()]).stdout;
        assert!(shown.contains("; this does not count: ") && shown.contains(why), "{why}: {shown}");
        assert!(shown.contains("fine\\u{202e}"), "{shown}");
        let row = listed(&herma, run);
        assert!(row["outcome"]["void"].as_str().unwrap().contains(why), "{row:#}");
        assert_eq!(
            (&row["outcome"]["state"], &row["outcome"]["claims"]),
            (&"void".into(), &"accepted".into()),
            "who reads only the state is not deceived"
        );
        assert_matches(
            &herma.json(&["runs", "--all", "--json"]),
            &herma.json(&["schema", "runs"]),
            &["runs"],
        );
    }
    for ended in [accept(&herma, &run.to_string()), reject(&herma, &run.to_string())] {
        assert_eq!(ended.code, Some(3), "{ended:#?}");
        assert!(ended.stderr.contains("has an outcome that does not count: "), "{ended:#?}");
    }
    // A file that is not an outcome is reported.
    fs::write(herma.bundle(run).dir.join("outcome.json"), "accepted\n").unwrap();
    let row = listed(&herma, run);
    assert_eq!((&row["outcome"]["state"], &row["outcome"]["claims"]), (&"void".into(), &Value::Null));
    assert!(herma.run(&["runs", "--all"]).stdout.contains("outcome void: not an outcome: expected value"));
    assert_eq!(accept(&herma, &run.to_string()).code, Some(3));
}

/// bob is trusted as well, and still he does not speak for alice.
#[test]
fn an_approver_gives_an_outcome_in_no_other_name() {
    let (herma, run) = landed(FUTURE);
    let by = ["--by", "alice", "--by-passphrase-file", "alice.txt", "--json"];
    let bob = herma.json(&[&["approver", "init", "bob", "--token"], &by[..]].concat());
    let bob = ApproverKey::from_token(bob["token"].as_str().unwrap()).unwrap();
    let give = |operator: &str| {
        let outcome = Outcome {
            trust_head: None,
            schema: OutcomeSchema::V1,
            run_id: run,
            attestation: herma_core::Digest::of(&herma.bundle(run).read("attestation.json")),
            outcome: OutcomeWord::Accepted,
            reason: String::new(),
            operator: operator.parse().unwrap(),
            decided_at: "2026-01-02T00:00:00Z".parse().unwrap(),
        };
        let text = serde_json::to_string_pretty(&signed::sign(outcome, &bob).unwrap()).unwrap() + "\n";
        fs::write(herma.bundle(run).dir.join("outcome.json"), text).unwrap();
        let verified = herma.run(&["verify", &run.to_string(), "--json"]).json();
        let checks = verified["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == "outcome").unwrap().clone();
        (listed(&herma, run)["outcome"].clone(), check)
    };
    let (row, check) = give("bob");
    assert_eq!((&row["state"], &row["void"]), (&"accepted".into(), &Value::Null));
    assert_eq!(check["outcome"], "passed", "{check:#}");
    let (row, check) = give("alice");
    assert_eq!(row["state"], "void", "{row:#}");
    assert!(row["void"].as_str().unwrap().contains("the signature of alice does not hold"), "{row:#}");
    assert_eq!(check["detail"], "it names alice as its operator, and bob signed it");
    assert_eq!(check["outcome"], "failed", "{check:#}");
}

/// The value with its fields in the order of the record, which is the only one that counts.
fn canonical(forged: &Value) -> Signed<Outcome> {
    serde_json::from_value(forged.clone()).unwrap()
}

#[test]
fn a_reason_holds_no_secret_and_hides_nothing() {
    let (herma, run) = landed(FUTURE);
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    for (reason, why) in
        [(token.as_str(), "secret"), ("a\u{202e}b", "not seen"), ("two\nlines", "not seen"), ("", "empty")]
    {
        for args in [
            ["accept", &run.to_string(), "--reason", reason],
            ["reject", &run.to_string(), "--reason", reason],
        ] {
            let ended = herma.run_as("alice", &args);
            assert_eq!(ended.code, Some(2), "{ended:#?}");
            assert!(ended.stderr.contains(why), "{why}: {ended:#?}");
        }
    }
}

/// A home in which `fake` has proven every stage, and alice admitted the repository `my-repo`.
fn with_target() -> (Herma, Repository) {
    let herma = Herma::new();
    herma.let_in("alice", None);
    for stage in ["4", "5"] {
        let proven = herma.run_as("alice", &["prove", "--engine", "fake", "--stage", stage]);
        assert_eq!(proven.code, Some(0), "{proven:#?}");
    }
    let repository = Repository::of_fixture(&herma, "string-slugify");
    let path = repository.dir.to_str().unwrap();
    let draft =
        ["admit", "target", "my-repo", "--path", path, "--owner", "me", "--ownership-evidence", "I made it"];
    let more = ["--risk-class", "low_risk_noncritical", "--rationale", "a test", "--allowed-path", "**"];
    let drafted = herma.run(&[&draft[..], &more, &["--review-trigger", "runs=50"]].concat());
    assert_eq!(drafted.code, Some(0), "{drafted:#?}");
    let sign = ["admit", "sign", "target", "my-repo"];
    let unsigned = herma.run_as("alice", &sign);
    let code = unsigned.stderr.split("--code ").nth(1).unwrap().split('`').next().unwrap();
    let signed = herma.run_as("alice", &[&sign[..], &["--code", code]].concat());
    assert_eq!(signed.code, Some(0), "{signed:#?}");
    herma.contract(&[("target", "{ repo: my-repo }"), ("stage", "5")]);
    herma.script(&fix_and(&[]));
    (herma, repository)
}

/// Has the contract approved and run, which lands a branch; gives the run.
fn land(herma: &Herma) -> RunId {
    let contract = "contracts/contract.md";
    let asked = herma.json(&["approvals", "request", contract, "--reason", "it is time", "--json"]);
    let [id, code] = ["approval_id", "code"].map(|key| asked[key].as_str().unwrap());
    let granted = herma.run_as("alice", &["approvals", "grant", id, "--reason", "yes", "--code", code]);
    assert_eq!(granted.code, Some(0), "{granted:#?}");
    let ran = herma.run(&["run", contract, "--script", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.contains("next: `herma accept "), "{ran:#?}");
    let used = herma.json(&["approvals", "show", id, "--json"]);
    let run: RunId = used["approval"]["consumed_by"].as_str().unwrap().parse().unwrap();
    assert_eq!(used["state"], "consumed");
    let again = herma.run_as("alice", &["approvals", "grant", id, "--reason", "yes", "--code", code]);
    assert_eq!(again.code, Some(3), "{again:#?}");
    assert!(again.stderr.contains("is consumed"), "{again:#?}");
    run
}

#[test]
fn a_landed_branch_is_accepted_or_taken_back() {
    let (herma, repository) = with_target();
    let untouched = repository.picture();
    let refs = |repository: &Repository| repository.git(&["for-each-ref", "--format=%(refname)"]);

    let run = land(&herma);
    assert_eq!(refs(&repository), format!("refs/heads/herma/{run}\nrefs/heads/main\n"));
    let rejected = reject(&herma, &run.to_string());
    assert_eq!(rejected.code, Some(0), "{rejected:#?}");
    assert!(rejected.stdout.starts_with("run       ") && rejected.stdout.contains("\ntarget    my-repo\n"));
    assert!(
        rejected
            .stdout
            .ends_with("rejected by alice: the branch is deleted, and no trace is left in the target\n")
    );
    assert!(!rejected.stdout.contains(repository.dir.to_str().unwrap()), "a target is called by its name");
    assert!(repository.picture() == untouched, "the target is bit for bit as before");
    assert_eq!(listed(&herma, run)["outcome"]["state"], "rejected");
    herma.assert_verifies(&herma.bundle(run));
    assert_eq!(accept(&herma, &run.to_string()).code, Some(3), "an outcome is final");

    // One flipped byte of the evidence, and there is nothing to accept.
    let run = land(&herma);
    let log = herma.bundle(run).dir.join("test.log");
    let before = fs::read(&log).unwrap();
    fs::write(&log, [&before[..], b"!"].concat()).unwrap();
    let broken = accept(&herma, &run.to_string());
    assert_eq!(broken.code, Some(3), "{broken:#?}");
    assert_eq!(listed(&herma, run)["outcome"]["state"], "pending");
    fs::write(&log, before).unwrap();
    let accepted = herma.run(&as_approver("alice", &["accept", &run.to_string(), "--json"])).json();
    assert_matches(&accepted, &herma.json(&["schema", "outcome-given"]), &["accept"]);
    assert_eq!(
        (&accepted["target"], &accepted["outcome"]["record"]["outcome"]),
        (&"my-repo".into(), &"accepted".into())
    );
    assert_eq!(refs(&repository), format!("refs/heads/herma/{run}\nrefs/heads/main\n"));
    herma.assert_verifies(&herma.bundle(run));
    let shown = herma.run(&["show", "--full", &run.to_string()]).stdout;
    assert!(shown.contains("\nOutcome: accepted by alice on "), "{shown}");
    assert_eq!(reject(&herma, &run.to_string()).code, Some(3), "an outcome is final");

    // A branch that somebody moved is theirs.
    let run = land(&herma);
    repository.git(&["update-ref", &format!("refs/heads/herma/{run}"), "refs/heads/main"]);
    let moved = reject(&herma, &run.to_string());
    assert_eq!(moved.code, Some(3), "{moved:#?}");
    assert!(moved.stderr.contains("somebody moved it, so nothing was done"), "{moved:#?}");
    assert_eq!(listed(&herma, run)["outcome"]["state"], "pending");

    // The word of an operator who is revoked does not count any more.
    let revoked = herma.run(&["approver", "revoke", "alice", "--reason", "left", "--last"]);
    assert_eq!(revoked.code, Some(0), "{revoked:#?}");
    let shown = herma.run(&["runs", "--all"]).stdout;
    assert!(shown.matches("this does not count: alice was revoked").count() >= 2, "{shown}");
}
