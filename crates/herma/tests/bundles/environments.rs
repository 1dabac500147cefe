//! Somebody with a trusted key changes the record of the environment, or what the report says of it, and signs again.

use std::path::PathBuf;
use std::sync::LazyLock;

use herma_core::Digest;
use herma_core::report::BaseResult;
use herma_evidence::layout;
use herma_evidence::verify::CheckName;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::forge::Forge;
use crate::tamper::broken;
use crate::{herma, only_bundle};

const CONTRACT: &str = "---
id: trim-slug
title: slugify keeps outer and repeated whitespace
target: { fixture: string-slugify }
stage: 2
allowed_paths: [slugify.sh]
verify: [\"test -e deps/dep && sh tests/slugify_test.sh\"]
environment: { setup: [\"mkdir deps && touch deps/dep\"], cache: [deps] }
expect_before: fail
---
Make it right.
";

fn made() -> (TempDir, PathBuf) {
    let home = TempDir::new().unwrap();
    std::fs::write(home.path().join("contract.md"), CONTRACT).unwrap();
    let ended =
        herma(home.path()).args(["run", "contract.md", "--script", "fix", "--json"]).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let bundle = only_bundle(home.path());
    (home, bundle)
}

/// The bundle of a run in an environment.
fn forge() -> Forge {
    static BUNDLE: LazyLock<(TempDir, PathBuf)> = LazyLock::new(made);
    Forge::of(&BUNDLE.1)
}

fn is_contradicted(what: &str, change: impl FnOnce(&mut Forge)) {
    let mut forge = forge();
    let before = (forge.files.clone(), forge.report.clone());
    change(&mut forge);
    assert!((&forge.files, &forge.report) != (&before.0, &before.1), "{what} is as it was");
    let found = broken(&forge.sign());
    assert!(!found.is_empty(), "{what} can be changed");
    assert!(
        !found.contains(&CheckName::Signature) && !found.contains(&CheckName::Subjects),
        "{what}: {found:?}"
    );
}

fn changed(what: &str, pointer: &str, value: Value) {
    is_contradicted(what, |forge| {
        forge.json(layout::ENVIRONMENT, |record| *record.pointer_mut(pointer).unwrap() = value);
    });
}

#[test]
fn an_honest_bundle_that_is_signed_again_holds() {
    assert_eq!(broken(&forge().sign()), []);
}

#[test]
fn every_change_of_the_record_is_contradicted() {
    changed("the definition", "/definition/cache", json!(["other"]));
    changed("the digest of the definition", "/definition_digest", json!(Digest::of(b"x")));
    changed("the key of a layer", "/layers/1/key", json!(Digest::of(b"x")));
    changed("the files of a layer", "/layers/1/tree", json!(Digest::of(b"x")));
    changed("the commands of a layer", "/layers/1/commands/0/command", json!("true"));
    changed("the tree that setup ran on", "/layers/1/base_tree", json!("0".repeat(40)));
    changed("that setup ran on a tree", "/layers/1/base_tree", Value::Null);
    changed("the order of the layers", "/layers/0/kind", json!("setup"));
    changed("a result on the base", "/preflight/results/0", json!({ "result": "passed", "command": "true" }));
    changed("the results on the base", "/preflight/results", json!([]));
    changed("a key that the format has not", "/layers/0/key", json!("x"));
    is_contradicted("a failure that is hidden", |forge| {
        let failure = json!({ "message": "m", "last_lines": [], "denied": [] });
        forge.json(layout::ENVIRONMENT, |record| record["failure"] = failure);
    });
    is_contradicted("the record that is left out", |forge| {
        forge.files.remove(layout::ENVIRONMENT);
        forge.report.environment = None;
        forge.report.verify_before.clear();
    });
    is_contradicted("a contract without an environment", |forge| {
        let text =
            CONTRACT.lines().filter(|line| !line.starts_with("environment:") && !line.starts_with("expect"));
        forge.contract(&(text.collect::<Vec<_>>().join("\n") + "\n"));
    });
}

#[test]
fn every_change_of_what_the_report_says_of_it_is_contradicted() {
    is_contradicted("the environment that is left out", |forge| forge.report.environment = None);
    is_contradicted("another tree", |forge| {
        forge.report.environment.as_mut().unwrap().tree = Digest::of(b"x");
    });
    is_contradicted("another layer", |forge| {
        forge.report.environment.as_mut().unwrap().layers.pop();
    });
    is_contradicted("a base that passed", |forge| {
        forge.report.verify_before =
            vec![BaseResult::Passed { command: forge.report.verify_before[0].command().to_owned() }];
    });
}
