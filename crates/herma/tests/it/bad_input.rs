//! Input that cannot be read: the message says where and what was expected, exit 2, and no run is created.

use std::path::Path;

use crate::kit::{Herma, contract_text, run_tool};

/// The output of `herma run` for a contract with this content; the file is called `contract.md`.
fn said(content: impl AsRef<[u8]>) -> String {
    let herma = Herma::new();
    herma.file("contract.md", content);
    complaint(&herma, &["run", "contract.md"])
}

/// The output of a command that must end as bad input and must not create anything.
fn complaint(herma: &Herma, args: &[&str]) -> String {
    let ended = herma.run(args);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert_eq!(ended.stdout, "");
    herma.assert_no_run();
    ended.stderr.trim_end().to_owned()
}

/// The same complaint, from every command that reads a contract, and as JSON.
#[test]
fn every_command_that_reads_a_contract_says_the_same() {
    let herma = Herma::new();
    herma.file("contract.md", contract_text(&[("stge", "2")]));
    let said = complaint(&herma, &["run", "contract.md"]);
    assert_eq!(complaint(&herma, &["contract", "check", "contract.md"]), said);
    assert_eq!(complaint(&herma, &["contract", "digest", "contract.md"]), said);
    let ended = herma.run(&["run", "contract.md", "--json"]);
    assert_eq!(ended.code, Some(2));
    let json = ended.json();
    assert_eq!(json["schema"], "herma.error/v1");
    assert_eq!(json["exit_code"], 2);
    let (error, next) = (json["error"].as_str().unwrap(), json["next_step"].as_str().unwrap());
    assert_eq!(format!("error: {error}\nnext: {next}"), said);
    herma.assert_no_run();
}

#[test]
fn an_unknown_key_is_named_with_the_nearest_known_one() {
    insta::assert_snapshot!(said(contract_text(&[("alowed_paths", "[a]")])), @"
    error: contract.md:14:1: unknown key `alowed_paths`; did you mean `allowed_paths`?
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("limits", "{ totl: 2m }")])), @"
    error: contract.md:13:11: unknown key `totl`; did you mean `total`?
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("frobnicate", "1")])), @"
    error: contract.md:14:1: unknown key `frobnicate`; expected one of: id, title, target, stage, allowed_paths, forbidden_paths, lift_paths, forbidden_actions, verify, tests_may_change, success, require_diff, risk, authority, rollback, limits, model, destination, egress, toolchains, needs, environment, expect_before
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
}

#[test]
fn a_value_of_the_wrong_type_is_named() {
    insta::assert_snapshot!(said(contract_text(&[("stage", "two")])), @"
    error: contract.md:13:8: this is not a stage; expected a whole number from 1 to 6
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("stage", "7")])), @"
    error: contract.md:13:8: 7 is not a stage: expected 1 to 6
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("verify", "sh test.sh")])), @"
    error: contract.md:13:9: a value of another kind stands here; expected a list, like `[first, second]`
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("require_diff", "perhaps")])), @"
    error: contract.md:14:15: this is not a yes or no; expected `true` or `false`
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("risk", "hihg")])), @"
    error: contract.md:13:7: `hihg` is not known here; did you mean `high`? expected one of: low, medium, high, critical
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("limits", "{ total: soon }")])), @"
    error: contract.md:13:18: `soon` is not a length of time: write it like `250ms`, `90s`, `20m` or `2h`
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("limits", "{ idle: 0s }")])), @"
    error: contract.md: `limits.idle` is no time at all; expected a time, like `90s` or `20m`
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("limits", "{ memory: 1MiB }")])), @"
    error: contract.md: `limits.memory` is 1MiB, in which not even herma's own probes can run; expected at least 128MiB
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("forbidden_actions", "[dance]")])), @"
    error: contract.md:14:21: `dance` is not known here; expected one of: push, merge, deploy, close, pr_open, issue_close, public_publication, credential_change, vendor_source_mutation, tag
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("needs", "[resume, tool_hook]")])), @"
    error: contract.md:14:17: `tool_hook` is not known here; did you mean `tool_hooks`? expected one of: resume, structured_events, acp, tool_hooks, mcp, reviewer
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("needs", "resume")])), @"
    error: contract.md:14:8: a value of another kind stands here; expected a list, like `[first, second]`
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("id", "Not An Id")])), @"
    error: contract.md:13:5: `Not An Id` is not a contract's id: 1 to 64 lower-case letters, digits, `.`, `_` and `-`, starting with a letter or a digit
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("target", "{ repo: /absolute }")])), @"
    error: contract.md:13:17: `/absolute` is absolute: `repo` is a path relative to the contract, so that no bundle ever holds an absolute one
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("title", "\"\"")])), @"
    error: contract.md: `title` is empty or has more than one line; expected one line
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("verify", "[\"\"]")])), @"
    error: contract.md: `verify` has an empty command at position 1; expected a shell command, like `sh test.sh`
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
}

#[test]
fn a_missing_field_is_named() {
    let text = contract_text(&[]);
    for field in ["id", "title", "target", "stage", "allowed_paths"] {
        let without: String =
            text.split_inclusive('\n').filter(|line| !line.starts_with(&format!("{field}:"))).collect();
        let said = said(without);
        assert!(said.starts_with("error: contract.md:"), "{said}");
        assert!(
            said.contains(&format!("`{field}` is missing; add `{field}:` to the front matter")),
            "{said}"
        );
    }
}

#[test]
fn empty_allowed_paths_are_refused() {
    insta::assert_snapshot!(said(contract_text(&[("allowed_paths", "[]")])), @"
    error: contract.md:13:16: `allowed_paths` is empty: name at least one path that may change, for example `src/**`
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("allowed_paths", "[\"\"]")])), @"
    error: contract.md:13:17: `` is not a path pattern: it is empty, or starts or ends with a blank
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("allowed_paths", "[\"a[\"]")])), @"
    error: contract.md:13:17: `a[` is not a path pattern: a `[` is not closed
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(contract_text(&[("allowed_paths", "[\"\u{200c}!a\"]")])), @r"
    error: contract.md:13:17: `\u{200c}!a` is not a path pattern: it holds \u{200c}, which is invisible; write `*` in its place
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
}

#[test]
fn a_duplicate_key_is_refused() {
    let text = contract_text(&[]).replace("stage: 2\n", "stage: 2\nstage: 3\n");
    insta::assert_snapshot!(said(text), @"
    error: contract.md:6:1: the key `stage` occurs twice; expected each key once
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
}

#[test]
fn a_file_without_front_matter_or_brief_is_refused() {
    insta::assert_snapshot!(said("just words\n"), @"
    error: contract.md:1:1: the file does not start with front matter; expected `---` alone on the first line; `herma contract new` writes a contract to start from
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said(""), @"
    error: contract.md:1:1: the file does not start with front matter; expected `---` alone on the first line; `herma contract new` writes a contract to start from
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    insta::assert_snapshot!(said("---\nid: a\n"), @"
    error: contract.md:2:1: the front matter is not closed; expected `---` alone on a line before the brief
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    let text = contract_text(&[]);
    let front = text.rfind("---\n").unwrap() + 4;
    insta::assert_snapshot!(said(&text[..front]), @"
    error: contract.md:15:1: the brief is empty; expected the task in words after the closing `---`
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
}

#[test]
fn a_contract_of_a_hundred_megabytes_is_refused_without_reading_it() {
    let herma = Herma::new();
    let file = std::fs::File::create(herma.at("contract.md")).unwrap();
    file.set_len(100 << 20).unwrap();
    insta::assert_snapshot!(complaint(&herma, &["run", "contract.md"]), @"
    error: contract.md: the file has 104857600 bytes; expected a contract of at most 1048576 bytes
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
}

#[test]
fn a_file_that_is_not_utf_8_is_refused() {
    let text = contract_text(&[]).replace("slugify keeps", "slugify \u{fffd} keeps");
    let mut bytes = text.into_bytes();
    let at = bytes.windows(3).position(|window| window == "\u{fffd}".as_bytes()).unwrap();
    bytes.splice(at..at + 3, [0xff]);
    insta::assert_snapshot!(said(bytes), @"
    error: contract.md:3:16: the file is not UTF-8; expected UTF-8 text
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
}

#[test]
fn a_yaml_bomb_is_refused() {
    let bomb = "[&a [x, x], &b [*a, *a], &c [*b, *b], *c]";
    insta::assert_snapshot!(said(contract_text(&[("success", bomb)])), @"
    error: contract.md:11:14: the front matter is too complex (Anchors { anchors: 1 }); expected plain keys and lists, without anchors and aliases
    next: docs/contract.md describes every key; `herma contract new` writes a contract to start from
    ");
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let said_of_deep = said(contract_text(&[("success", &deep)]));
    assert!(said_of_deep.starts_with("error: contract.md:"), "{said_of_deep}");
    let long = format!("[{}]", "x, ".repeat(100_000));
    let said_of_long = said(contract_text(&[("success", &long)]));
    assert!(said_of_long.contains("the front matter is too complex"), "{said_of_long}");
    let documents = contract_text(&[]).replacen("stage: 2\n", "stage: 2\n...\n--- {}\n", 1);
    assert!(said(documents).starts_with("error: contract.md:"));
}

#[test]
fn control_characters_in_a_contract_do_not_reach_the_terminal() {
    let said = said(contract_text(&[("\"\\e[31mred\\u202e\"", "1")]));
    assert!(!said.contains('\u{1b}') && !said.contains('\u{202e}'), "{said:?}");
}

#[test]
fn a_path_that_is_no_file_is_refused() {
    let herma = Herma::new();
    insta::assert_snapshot!(complaint(&herma, &["run", "contracts"]), @"
    error: contracts: cannot be read: it is not a regular file
    next: name a contract's file, or fixture:NAME for a built-in one; `herma contract new` writes one
    ");
    insta::assert_snapshot!(complaint(&herma, &["run", "missing.md"]), @"
    error: missing.md: cannot be read: No such file or directory (os error 2)
    next: name a contract's file, or fixture:NAME for a built-in one; `herma contract new` writes one
    ");
    insta::assert_snapshot!(complaint(&herma, &["run", ""]), @"
    error: : cannot be read: No such file or directory (os error 2)
    next: name a contract's file, or fixture:NAME for a built-in one; `herma contract new` writes one
    ");
}

#[test]
fn a_named_pipe_does_not_block() {
    let herma = Herma::new();
    run_tool("mkfifo", &[herma.at("pipe").as_os_str()], &[]);
    insta::assert_snapshot!(complaint(&herma, &["run", "pipe"]), @"
    error: pipe: cannot be read: it is not a regular file
    next: name a contract's file, or fixture:NAME for a built-in one; `herma contract new` writes one
    ");
}

#[test]
fn a_secret_in_a_contract_is_refused_and_not_repeated() {
    let key = ["AKIA", "Z7Q4MXN2VB6TCK3D"].concat();
    let text = contract_text(&[]) + "The key is " + &key + ".\n";
    let said = said(text);
    assert!(!said.contains(&key), "{said}");
    insta::assert_snapshot!(said, @"
    error: contract.md:21:12: the contract holds what looks like a secret (aws_access_key)
    next: take it out: a contract goes into the evidence as it is
    ");
}

#[test]
fn a_fixture_that_is_not_there_is_named() {
    let herma = Herma::new();
    insta::assert_snapshot!(complaint(&herma, &["run", "fixture:strings"]), @"
    error: there is no fixture `strings`
    next: there are: string-slugify, nested-config, rename-module, binary-logo, odd-names, exec-script, python-totals, rust-median
    ");
    insta::assert_snapshot!(complaint(&herma, &["demo", "--fixture", "strings"]), @"
    error: there is no fixture `strings`
    next: there are: string-slugify, nested-config, rename-module, binary-logo, odd-names, exec-script, python-totals, rust-median
    ");
    insta::assert_snapshot!(complaint(&herma, &["demo", "--script", "fxi"]), @"
    error: the fixture `string-slugify` has no script `fxi`
    next: it has: fix, no-diff, delete-and-recreate, disallowed-file, forbidden-file, mode-only, rename-out, symlink-out, fifo, nested-repo, refused-by-git, breaks-test, edits-test, path-shim, secret, commit-and-amend, ignored-file, hostile-git, noisy, forbidden-action, protocol-error, malformed-result, rejected, engine-fails, needs-a-host, slow-start, goes-idle, never-ends, lingers-after-fix, fixes-then-hangs, daemon
    ");
}

#[test]
fn a_script_that_cannot_be_played_creates_no_run() {
    let herma = Herma::new();
    herma.contract(&[]);
    herma.file("bad.yaml", "steps:\n  - wirte: { path: a, text: b }\n");
    insta::assert_snapshot!(complaint(&herma, &["run", "contracts/contract.md", "--script", "none.yaml"]), @"
    error: --script none.yaml: No such file or directory (os error 2)
    next: name a file, or one of the fixture's scripts; docs/fake.md describes what a script can say
    ");
    let said = complaint(&herma, &["run", "contracts/contract.md", "--script", "bad.yaml"]);
    assert!(said.contains("line 2, column 5: `wirte` is not known here; did you mean `write`?"), "{said}");
}

#[test]
fn a_repository_without_a_script_for_fake_creates_no_run() {
    let herma = Herma::new();
    herma.contract(&[("target", "{ repo: ../repo }"), ("stage", "3")]);
    crate::kit::Repository::of_fixture(&herma, "string-slugify");
    let said = complaint(&herma, &["run", "contracts/contract.md"]);
    assert!(said.contains("there is no script for `fake`"), "{said}");
}

#[test]
fn a_command_line_that_means_nothing_is_refused() {
    let herma = Herma::new();
    let first_line = |args: &[&str]| complaint(&herma, args).lines().next().unwrap_or_default().to_owned();
    insta::assert_snapshot!(first_line(&["rnu"]), @"error: unrecognized subcommand 'rnu'");
    insta::assert_snapshot!(first_line(&["runs", "--limt", "3"]), @"error: unexpected argument '--limt' found");
    insta::assert_snapshot!(first_line(&["runs", "--limit", "0"]), @"error: invalid value '0' for '--limit <LIMIT>': 0 is not in 1..=1000");
    insta::assert_snapshot!(first_line(&["run"]), @"error: the following required arguments were not provided:");
    insta::assert_snapshot!(first_line(&["run", "x.md", "--engine", "No Name"]), @"error: invalid value 'No Name' for '--engine <NAME>': an engine's name is 1 to 32 lower-case letters, digits and hyphens, starting with a letter");
    insta::assert_snapshot!(first_line(&["demo", "--destination", "moon"]), @"error: invalid value 'moon' for '--destination <DESTINATION>'");
    insta::assert_snapshot!(first_line(&["completions", "tcsh"]), @"error: invalid value 'tcsh' for '<SHELL>'");
    assert!(complaint(&herma, &[]).contains("Usage: herma"));
    assert!(!Path::new(herma.home()).exists(), "a home was made for nothing");
}

#[test]
fn a_fault_that_is_none_is_refused() {
    let herma = Herma::new();
    for fault in ["kill:lunch", "explode", "fail-write:", "drop-event:nothing"] {
        let ended = herma.run_with_fault(fault, &["demo"]);
        assert_eq!(ended.code, Some(2), "{fault}: {ended:#?}");
        herma.assert_no_run();
    }
}

#[test]
fn a_schema_or_a_run_that_is_not_there_is_named() {
    let herma = Herma::new();
    insta::assert_snapshot!(complaint(&herma, &["schema", "reprot"]), @"
    error: there is no schema `reprot`
    next: `herma schema` lists the names
    ");
    insta::assert_snapshot!(complaint(&herma, &["show"]), @"
    error: there is no run yet
    next: start with `herma demo`
    ");
    insta::assert_snapshot!(complaint(&herma, &["show", "12345678"]), @"
    error: there is no run called `12345678`
    next: `herma runs` lists the names
    ");
    insta::assert_snapshot!(complaint(&herma, &["verify", "12345678"]), @"
    error: there is no run called `12345678`
    next: `herma runs` lists the names
    ");
    insta::assert_snapshot!(complaint(&herma, &["verify", "no/such/bundle"]), @"
    error: no/such/bundle: is not a bundle's directory
    next: name the directory that holds report.json and attestation.json
    ");
}

#[test]
fn a_destination_that_the_contract_contradicts_is_refused() {
    let herma = Herma::new();
    herma.file("contract.md", contract_text(&[("destination", "sandbox")]));
    let run = ["run", "contract.md", "--destination", "host"];
    insta::assert_snapshot!(complaint(&herma, &run), @"
    error: the contract says `destination: sandbox`, and --destination says `host`
    next: leave --destination out, or change `destination` in the contract, which makes it another contract
    ");
    herma.file("approved.md", contract_text(&[("destination", "sandbox"), ("stage", "4")]));
    let ask = ["approvals", "request", "approved.md", "--destination", "docker", "--reason", "x"];
    assert!(complaint(&herma, &ask).contains("--destination says `docker`"));
    // The same word twice is no contradiction.
    let agreed = herma.finished(&["run", "contract.md", "--destination", "sandbox", "--json"]);
    agreed.assert_pass();
}
