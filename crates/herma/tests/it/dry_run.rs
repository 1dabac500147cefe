//! `herma run --dry-run`: what would block a run, before an engine starts and a model is asked.

use crate::kit::{Herma, ON_REPOSITORY, Repository, fix_and};

#[test]
fn a_dry_run_evaluates_everything_but_the_engine_and_leaves_no_run() {
    let herma = Herma::new();
    let environment = "{ setup: [\"mkdir deps && echo made > deps/dep\"], cache: [deps] }";
    let verify = "[\"grep -q made deps/dep\", \"sh tests/slugify_test.sh\"]";
    let contract = herma.contract(&[("environment", environment), ("verify", verify)]);
    let contract = contract.to_str().unwrap();
    let tried = herma.json(&["run", contract, "--dry-run", "--json"]);
    assert_eq!(tried["would_start"], true, "{tried:#}");
    let gates = tried["gates"].as_array().unwrap();
    let of = |name: &str| gates.iter().find(|gate| gate["gate"] == name).unwrap()["result"].clone();
    for (gate, result) in [
        ("confinement", "passed"),
        ("environment", "passed"),
        ("preflight", "passed"),
        ("model_admitted", "not_applicable"),
        ("engine_identity", "not_evaluated"),
        ("provider_response_shape", "not_evaluated"),
    ] {
        assert_eq!(of(gate), result, "{gate}: {tried:#}");
    }
    assert_eq!(tried["layers"].as_array().unwrap().len(), 2);
    let results: Vec<&str> = tried["verify_before"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["result"].as_str().unwrap())
        .collect();
    assert_eq!(results, ["passed", "failed"], "{tried:#}");
    herma.assert_no_run();
    // The environment stays for the run.
    let shown = herma.run(&["run", contract, "--dry-run"]);
    assert_eq!(shown.code, Some(0), "{shown:#?}");
    assert!(shown.stderr.contains("environment: using the one that is there"), "{shown:#?}");
    for line in [
        "on the base `grep -q made deps/dep` passes\n",
        "on the base `sh tests/slugify_test.sh` fails with exit code 1\n",
        "nothing that was tried blocks this run; no engine was started and no model was called\n",
    ] {
        assert!(shown.stdout.contains(line), "{shown:#?}");
    }
}

#[test]
fn a_dry_run_shows_an_environment_as_a_run_does() {
    let herma = Herma::new();
    // Large enough to be mounted: then the directory itself cannot be removed.
    let environment =
        "{ setup: [\"mkdir deps && touch $(seq -f deps/f%g 100) && echo home > ~/own\"], cache: [deps] }";
    let verify = "[\"rm -rf deps\", \"cat ~/own\"]";
    let terms = [("environment", environment), ("verify", verify)];
    let contract = herma.contract(&terms);
    let tried = herma.json(&["run", contract.to_str().unwrap(), "--dry-run", "--json"]);
    let run = herma.play(&fix_and(&[]), &terms);
    let seen = serde_json::to_value(&run.report.verify_before).unwrap();
    assert_eq!(tried["verify_before"], seen);
}

#[test]
fn a_dry_run_names_every_blocker_with_the_next_step() {
    let herma = Herma::new();
    let contract = herma.contract(&[("verify", "[\"no-such-program --check\"]"), ("expect_before", "pass")]);
    let shown = herma.run(&["run", contract.to_str().unwrap(), "--dry-run", "--engine", "claude"]);
    assert_eq!(shown.code, Some(3), "{shown:#?}");
    for line in [
        "blocked  engine_enabled: ",
        "blocked  preflight: verification_unrunnable: ",
        "next: ",
        "this run would be blocked",
    ] {
        assert!(shown.stdout.contains(line), "{line}: {shown:#?}");
    }
    // An unclean target is not tried at all.
    let repository = Repository::of_fixture(&herma, "string-slugify");
    herma.file("repo/slugify.sh", "changed\n");
    let contract = herma.contract(&ON_REPOSITORY);
    let tried = herma.run(&["run", contract.to_str().unwrap(), "--dry-run", "--json"]);
    assert_eq!(tried.code, Some(3));
    assert_eq!(tried.json()["verify_before"].as_array().unwrap().len(), 0, "{tried:#?}");
    drop(repository);
    herma.assert_no_run();
}
