//! A run of stage 5 on a real project with its environment: approved, landed as one branch, accepted, and tested in a fresh clone.

use std::fs;

use herma_core::report::OutcomeState;

use super::source::person;
use super::{check, init, table};
use crate::console::run_command;
use crate::kit::Herma;

/// The suite as a person runs it, who knows nothing of herma.
const SUITE: &str = "python3 -m venv ../venv && ../venv/bin/pip install -q -r requirements/tests.txt && \
    ../venv/bin/pip install -q -e . && ../venv/bin/python -m pytest -q";

/// The engine has proven five stages in this home.
pub(super) fn lands(herma: &Herma, engine: &str) {
    let project = table::named("itsdangerous");
    let person = person(herma);
    let dir = herma.at("owned");
    fs::create_dir(&dir).unwrap();
    project.source.import(project.name, &dir, &person);
    let root = dir.join(project.name);
    let sh = |command: &str| {
        let (output, code) = run_command(command, &dir, &person);
        assert_eq!(code, 0, "{command}: {output}");
        output.trim().to_owned()
    };
    let written = init(herma, project, &root);
    let words = ["admit", "target", project.name, "--json", "--path", root.to_str().unwrap()];
    let more = [
        "--owner=the team",
        "--ownership-evidence=a copy of a release",
        "--risk-class=low_risk_noncritical",
        "--rationale=nothing depends on this copy",
        "--allowed-path=src/**",
        "--allowed-path=tests/**",
        "--review-trigger=date=2099-01-01",
    ];
    let drafted = herma.json(&[&words[..], &more].concat());
    assert!(drafted["lacks"].is_null(), "{drafted:#}");
    assert_eq!(herma.sign("target", project.name)["status"], "admitted");
    // The two lines that a person changes for stage 5: the name of the admission, and the stage.
    let text = fs::read_to_string(&written).unwrap();
    let text = text
        .replace("target: { repo: ../.. }", &format!("target: {{ repo: {} }}", project.name))
        .replace("stage: 3", "stage: 5");
    fs::write(&written, text).unwrap();
    sh(&format!("cd {} && git add -A && git commit -q -m contract", project.name));
    let head = sh(&format!("git -C {} rev-parse HEAD", project.name));

    let contract = written.as_str();
    let asked = herma.json(&[
        "approvals",
        "request",
        contract,
        "--engine",
        engine,
        "--reason",
        "users asked for it",
        "--json",
    ]);
    let [id, code] = ["approval_id", "code"].map(|key| asked[key].as_str().unwrap());
    herma.json(&["approvals", "grant", id, "--reason", "it is small", "--code", code, "--json"]);
    let began = std::time::Instant::now();
    let finished =
        herma.finished_by(|| herma.run_patiently(&["run", contract, "--engine", engine, "--json"]));
    check(project, &finished, &root, began.elapsed());
    assert_eq!(finished.report.outcome, OutcomeState::Pending);
    let landing = finished.report.landing.as_ref().unwrap();
    assert!(landing.landed, "{landing:#?}");
    let branches = sh(&format!("git -C {} for-each-ref --format='%(refname)' refs/heads", project.name));
    let mut branches: Vec<&str> = branches.lines().collect();
    branches.sort_unstable();
    assert_eq!(branches, [landing.reference.as_str(), "refs/heads/main"], "one branch is new");
    assert_eq!(sh(&format!("git -C {} rev-parse HEAD", project.name)), head);
    let run = finished.report.run_id.to_string();
    herma.json(&["accept", &run, "--reason", "reads well", "--json"]);
    let verified = herma.run(&["verify", &run]);
    assert_eq!(verified.code, Some(0), "{verified:#?}");

    let branch = landing.reference.strip_prefix("refs/heads/").unwrap();
    sh(&format!("git clone -q --branch {branch} {} clone", project.name));
    let tested = sh(&format!("cd clone && {SUITE}"));
    assert!(tested.contains(" passed"), "{tested}");
    let (added, _) = project.test.unwrap();
    let new =
        sh(&format!("cd clone && git show --stat --format= HEAD && ../venv/bin/python -m pytest -q {added}"));
    assert!(new.contains(project.path) && new.contains("1 passed"), "{new}");
    fs::remove_dir_all(dir).unwrap();
}
