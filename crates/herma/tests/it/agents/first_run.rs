//! The first run of a newcomer with the real agents: nothing but the binary, bubblewrap, npm and a stand-in for a provider.

use std::fs;

use herma_engines::{Package, claude, codex};
use serde_json::Value;

use super::home::{installed, link, make_removable};
use crate::kit::{Herma, KEY, Provider, Repository, environment};

/// The model's script for the task.
const SCRIPT: &str = r#"
name: task
models: [m]
match: { marker: keeps outer whitespace }
turns:
  - say: I look at the function first.
    call: { read: slugify.sh }
  - call:
      write:
        path: slugify.sh
        text: |
          slugify() {
              printf '%s' "$1" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-' | sed 's/^-//; s/-$//'
          }
  - call: { shell: sh tests/slugify_test.sh }
  - say: The test passes.
"#;

const TASK: &str = "slugify keeps outer whitespace";

#[test]
fn a_newcomer_gets_a_verified_change_from_claude_by_flags() {
    by_flags(claude::NAME, "claude-sonnet-4-5");
}

#[test]
fn a_newcomer_gets_a_verified_change_from_codex_by_flags() {
    by_flags(codex::NAME, "gpt-5");
}

#[test]
fn a_newcomer_gets_a_verified_change_from_claude_at_a_terminal() {
    at_a_terminal(claude::NAME, &claude::PACKAGE, "claude-sonnet-4-5");
}

#[test]
fn a_newcomer_gets_a_verified_change_from_codex_at_a_terminal() {
    at_a_terminal(codex::NAME, &codex::PACKAGE, "gpt-5");
}

/// Three commands, no answer at a terminal, and no file written by hand: the passphrase comes from a pipe.
fn by_flags(engine: &str, model: &str) {
    let provider = Provider::start(&[model], SCRIPT);
    let mut herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    let repo = repository.dir.to_str().unwrap();
    herma.set("STAND_IN_KEY", KEY);
    // npm finds its registry as it does for the person who runs the tests.
    herma.set("HOME", environment("HOME"));
    herma.wrap(&["sh", "-c", "echo the passphrase of alice | exec \"$@\"", "sh"]);
    let mut flags = vec![
        "quickstart",
        engine,
        "--json",
        "--url",
        &provider.url,
        "--key-env=STAND_IN_KEY",
        "--model",
        model,
        "--repo",
        repo,
        "--allow=slugify.sh",
        "--verify=sh tests/slugify_test.sh",
    ];
    let mut page = herma.run_patiently(&[&flags[..], &["--dry-run"]].concat());
    if page.stdout.contains("private_address") {
        // The registry of this machine is a mirror in a network of its own, which has to be said.
        flags.push("--own-network");
        page = herma.run_patiently(&[&flags[..], &["--dry-run"]].concat());
    }
    assert_eq!(page.code, Some(0), "{page:#?}");
    let page = page.json();
    let code = page["page"]["code"].as_str().unwrap();
    let signer = ["--approver=alice", "--passphrase-file=/dev/stdin", "--yes", "--code", code];
    let done = herma.run_patiently(&[&flags[..], &signer].concat());
    assert_eq!(done.code, Some(0), "{done:#?}");
    assert_eq!(done.json()["ready"], true);
    changes(&herma, engine, repo);
    let tree = herma.home().join("installed");
    fs::read_dir(tree).unwrap().for_each(|entry| make_removable(&entry.unwrap().path()));
}

/// Two commands and three answers: a passphrase, a key, and a code.
fn at_a_terminal(engine: &str, package: &Package, model: &str) {
    let provider = Provider::start(&[model, "another"], SCRIPT);
    let mut herma = Herma::new();
    herma.set("USER", "alice");
    let repository = Repository::of_fixture(&herma, "string-slugify");
    let tree = installed(engine, package);
    let place = herma.marked_home().join("installed").join(tree.file_name().unwrap());
    link(&tree, &place);
    let args = [
        "quickstart",
        engine,
        "--program",
        place.to_str().unwrap(),
        "--url",
        &provider.url,
        "--model",
        model,
        "--ask-key",
        "--allow=slugify.sh",
        "--verify=sh tests/slugify_test.sh",
    ];
    let mut at = herma.at_terminal(&repository.dir, &args);
    at.answer("New passphrase for alice", "correct horse");
    at.answer("Repeat passphrase:", "correct horse");
    at.answer("API key of compatible", KEY);
    at.wait_for("Type the code ");
    let code = at.shown().rsplit("Type the code ").next().unwrap()[..6].to_owned();
    at.answer(" to continue", &code);
    let ended = at.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    assert!(ended.stdout.contains("herma do 'say what to change'"), "{}", ended.stdout);
    changes(&herma, engine, repository.dir.to_str().unwrap());
}

fn changes(herma: &Herma, engine: &str, repo: &str) {
    let done = herma.run_patiently(&["do", TASK, "--repo", repo, "--json"]);
    assert_eq!(done.code, Some(0), "{done:#?}");
    let report: Value = done.json();
    assert_eq!((&report["status"], &report["engine"]), (&"pass".into(), &engine.into()), "{report:#}");
    assert_eq!(report["changed_files"][0]["path"], "slugify.sh");
    assert_eq!(report["source_mutated"], false);
}
