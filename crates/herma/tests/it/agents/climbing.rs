//! A real agent earns every stage: it proves five in one command, lands work of two contracts in an own repository, which its
//! operator accepts, and is compared; then stage 6 records whether it is eligible.

use std::ffi::OsStr;
use std::fs;

use herma_core::proof::{Criterion, Proof};
use herma_core::report::OutcomeState;
use herma_core::{Stage, Status};

use super::rows;
use crate::kit::{Herma, Repository, run_tool, stage_rows};

/// The contracts that land: the file that each changes, its test, and the words by which its model knows it.
const WORK: [(&str, &str, &str); 2] = [
    ("greeting", "grep -qx 'Hello, friend.' greeting.txt", "the greeting is not friendly"),
    ("goodbye", "grep -qx 'Goodbye, friend.' goodbye.txt", "the goodbye is not friendly"),
];

/// Proves everything up to stage 5 in one command, and sees that every row of every stage was run. Only the rejection by a
/// reviewer does not apply: none of these agents has one.
pub(super) fn proves_five_stages(herma: &Herma, engine: &str) {
    let climbed = herma.run_patiently(&["prove", "--engine", engine, "--up-to", "5", "--json"]);
    assert_eq!(climbed.code, Some(0), "{climbed:#?}");
    let printed = climbed.json();
    let steps = printed["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 5, "{printed:#}");
    for (step, stage) in steps.iter().zip(Stage::ALL) {
        let proof: Proof = serde_json::from_value(step["proof"].clone()).unwrap();
        assert_eq!((proof.stage, proof.status), (stage, Status::Pass), "{proof:#?}");
        stage_rows::assert_complete(&proof, false);
    }
}

/// Lands the work of two contracts, which are accepted, is compared with `fake`, and is a candidate then.
pub(super) fn lands_and_is_a_candidate(herma: &Herma, engine: &str) {
    let shop = own_repository(herma);
    for (name, test, title) in WORK {
        land(herma, engine, &shop, (name, test, title));
    }
    let judged = herma.run_patiently(&["prove", "--engine", engine, "--stage", "6", "--json"]);
    assert_eq!(judged.code, Some(3), "it was never compared: {judged:#?}");
    compare(herma, engine);
    let judged = herma.run_patiently(&["prove", "--engine", engine, "--up-to", "6", "--json"]);
    assert_eq!(judged.code, Some(0), "{judged:#?}");
    let last = judged.json()["steps"][5]["proof"].clone();
    let proof: Proof = serde_json::from_value(last).unwrap();
    let candidate = proof.candidate.unwrap();
    assert!(candidate.eligible, "{candidate:#?}");
    assert_eq!((candidate.accepted.len(), candidate.blocked_lanes.len()), (2, 0), "{candidate:#?}");
    let mut criteria: Vec<Criterion> = proof.comparison.iter().map(|row| row.criterion).collect();
    criteria.sort();
    assert_eq!(criteria, Criterion::DECIDING, "against `fake`, the one other lane");
}

/// A repository with two texts, admitted as `shop`.
fn own_repository(herma: &Herma) -> Repository {
    let made = Repository::of_fixture(herma, "string-slugify");
    let shop = Repository { dir: herma.at("shop") };
    fs::rename(&made.dir, &shop.dir).unwrap();
    for (name, ..) in WORK {
        fs::write(shop.dir.join(format!("{name}.txt")), "Not yet.\n").unwrap();
    }
    shop.commit("two texts");
    let dir = shop.dir.to_str().unwrap();
    let words = ["admit", "target", "shop", "--json", "--path", dir, "--owner", "the shop's team"];
    let more = [
        "--ownership-evidence=we made it",
        "--risk-class=low_risk_noncritical",
        "--rationale=two texts; nothing depends on them",
        "--allowed-path=*.txt",
        "--review-trigger=date=2099-01-01",
    ];
    let drafted = herma.json(&[&words[..], &more].concat());
    assert!(drafted["lacks"].is_null(), "{drafted:#}");
    assert_eq!(herma.sign("target", "shop")["status"], "admitted");
    shop
}

/// Has the work of one contract approved, done, landed and accepted, and runs its test on the branch.
fn land(herma: &Herma, engine: &str, shop: &Repository, (name, test, title): (&str, &str, &str)) {
    let line = if name == "greeting" { "Hello, friend." } else { "Goodbye, friend." };
    let turns = format!(
        "\n  - call: {{ read: {name}.txt }}\n  - call: {{ write: {{ path: {name}.txt, text: \"{line}\\n\" }} }}\n  - say: It is done.\n"
    );
    let script = format!("name: {name}\nmodels: [m]\nmatch: {{ marker: {title} }}\nturns:{turns}");
    fs::write(herma.home().join("case.yaml"), script).unwrap();
    let contract = format!(
        "---\nid: {name}\ntitle: {title}\ntarget: {{ repo: shop }}\nstage: 5\nallowed_paths: [{name}.txt]\n\
         verify: [\"{test}\"]\nlimits: {}\nmodel: {{ provider: rehearsal, model: m }}\n---\n\
         {name}.txt must speak to a friend.\n",
        rows::LIMITS
    );
    let contract = herma.file(&format!("contracts/{name}.md"), contract);
    let contract = contract.to_str().unwrap();
    let words =
        ["approvals", "request", contract, "--engine", engine, "--reason", "customers asked", "--json"];
    let asked = herma.json(&words);
    let [id, code] = ["approval_id", "code"].map(|key| asked[key].as_str().unwrap());
    herma.json(&["approvals", "grant", id, "--reason", "it is small", "--code", code, "--json"]);
    let head = shop.git(&["rev-parse", "HEAD"]);
    let finished =
        herma.finished_by(|| herma.run_patiently(&["run", contract, "--engine", engine, "--json"]));
    finished.assert_pass();
    assert_eq!(finished.changed(), [format!("{name}.txt")]);
    assert_eq!(finished.report.outcome, OutcomeState::Pending);
    let landing = finished.report.landing.as_ref().unwrap();
    assert!(landing.landed, "{landing:#?}");
    assert_eq!(shop.git(&["rev-parse", "HEAD"]), head, "only a branch is new");
    // The contract's own test, on what landed and on what was there before.
    let branch = herma.at(&format!("branch-{name}"));
    shop.git(&["worktree", "add", "-q", "--detach", branch.to_str().unwrap(), &landing.reference]);
    let at = |dir: &str, code: &str| {
        let line = format!("cd {dir}; {test}; test $? -eq {code}");
        run_tool("sh", &[OsStr::new("-c"), OsStr::new(&line)], &[]);
    };
    at(branch.to_str().unwrap(), "0");
    at(shop.dir.to_str().unwrap(), "1");
    shop.git(&["worktree", "remove", "--force", branch.to_str().unwrap()]);
    let run = finished.report.run_id.to_string();
    herma.json(&["accept", &run, "--reason", "reads well", "--json"]);
}

/// Compares the engine with `fake` on the built-in fixture.
fn compare(herma: &Herma, engine: &str) {
    fs::write(herma.home().join("case.yaml"), rows::FIXES.script()).unwrap();
    let contract =
        herma.contract(&[("model", "{ provider: rehearsal, model: m }"), ("limits", rows::LIMITS)]);
    let engines = format!("fake,{engine}");
    let contract = contract.to_str().unwrap();
    let words = ["compare", "--contract", contract, "--engines", &engines, "--runs", "2", "--json"];
    let compared = herma.run_patiently(&words);
    assert_eq!(compared.code, Some(0), "{compared:#?}");
}
