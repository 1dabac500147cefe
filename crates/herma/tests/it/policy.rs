//! `herma policy`, and that no run starts under a policy that is wrong.

#![allow(clippy::disallowed_types, reason = "a hook is started as an agent starts it")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use herma_engines::hook;

use crate::kit::{HERMA, Herma};

const RULE: &str = "@id(\"no-env\")\nforbid (principal, action == Action::\"read\", resource)\n\
                    when { resource.subject like \"*.env\" };\n";

fn with_policy(name: &str, text: &str) -> Herma {
    let herma = Herma::new();
    let dir = herma.marked_home().join("policy");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join(name), text).unwrap();
    herma
}

#[test]
fn no_run_starts_under_a_policy_that_is_wrong() {
    let permits = RULE.replace("forbid", "permit");
    for (name, text, said) in [
        ("own.cedar", "forbid (", "own.cedar:1:"),
        ("own.cedar", permits.as_str(), "the rule `no-env` permits"),
        ("own.ceder", RULE, "own.ceder is neither a policy"),
    ] {
        let herma = with_policy(name, text);
        let ended = herma.run(&["run", "fixture:string-slugify", "--destination", "host"]);
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.contains(said), "{ended:#?}");
        assert!(ended.stderr.contains("next: fix it; `herma policy check`"), "{ended:#?}");
        assert_eq!(herma.json(&["runs", "--all", "--json"])["runs"], serde_json::json!([]), "{name}");
        assert_eq!(herma.run(&["policy", "check"]).code, Some(2));
    }
    let herma = with_policy("own.cedar", RULE);
    assert_eq!(herma.run(&["policy", "check"]).code, Some(0));
    let ended = herma.run(&["run", "fixture:string-slugify", "--destination", "host"]);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
}

#[test]
fn the_policies_of_the_installation_decide_and_a_case_that_differs_is_named() {
    let herma = with_policy("own.cedar", RULE);
    let asked = ["policy", "explain", "--action", "read", "--resource", "a/.env", "--json"];
    let explained = herma.json(&asked);
    assert_eq!(explained["decision"]["allowed"], false);
    assert_eq!(explained["decision"]["rules"][0]["id"], "no-env");
    assert_eq!(explained["policy"], herma.json(&["policy", "check", "--json"])["digest"]);

    let cases = |expect: &str, rules: &str| {
        format!("cases:\n- {{ name: a, action: read, resource: x.env, expect: {expect}, rules: {rules} }}\n")
    };
    for (text, code, said) in [
        (cases("deny", "[no-env]"), 0, "ok     a"),
        (cases("allow", "[]"), 1, "wrong  a: it is denied: the operator's policy forbids it (rule no-env)"),
        (cases("deny", "[other]"), 1, "wrong  a: no-env decides it, and not other"),
        ("cases: []\n".to_owned(), 2, "holds no case"),
        (cases("perhaps", "[]"), 2, "line 2, column"),
        (cases("deny", "[no-env], stagee: 3"), 2, "unknown key `stagee`"),
    ] {
        let file = herma.file("cases.yaml", &text);
        let ended = herma.run(&["policy", "test", file.to_str().unwrap()]);
        assert_eq!(ended.code, Some(code), "{ended:#?}");
        assert!(format!("{}{}", ended.stdout, ended.stderr).contains(said), "{ended:#?}");
    }
}

#[test]
fn a_contract_brings_its_stage_its_hosts_and_what_it_forbids() {
    let herma = Herma::new();
    let contract = herma.contract(&[("forbidden_actions", "[tag]"), ("egress", "[example.com]")]);
    let decided = |action: &str, resource: &str, with: &[&str]| {
        let args =
            [&["policy", "explain", "--action", action, "--resource", resource, "--json"], with].concat();
        herma.json(&args)["decision"]["allowed"].clone()
    };
    let under = ["--contract", contract.to_str().unwrap()];
    assert_eq!(
        (decided("shell", "git tag v1", &[]), decided("shell", "git tag v1", &under)),
        (true.into(), false.into())
    );
    assert_eq!((decided("fetch", "x", &[]), decided("fetch", "x", &under)), (false.into(), true.into()));
}

#[test]
fn a_child_run_can_be_asked_about_and_is_no_tool_call() {
    let rule =
        "@id(\"no-stub\")\nforbid (principal, action == Action::\"spawn\", resource in Engine::\"stub\");\n";
    let herma = with_policy("own.cedar", rule);
    let explained = |with: &[&str]| {
        let args =
            [&["policy", "explain", "--resource", "part", "--action", "spawn", "--json"], with].concat();
        let decision = herma.json(&args)["decision"].clone();
        (decision["allowed"].clone(), decision["rules"][0]["id"].clone())
    };
    assert_eq!(explained(&["--child", "fake"]), (true.into(), "herma.child".into()));
    assert_eq!(explained(&["--child", "stub"]), (false.into(), "no-stub".into()));
    assert_eq!(explained(&[]), (false.into(), "herma.spawn".into()));

    let shell = herma.run(&["policy", "explain", "--resource", "x", "--action", "shell", "--child", "fake"]);
    assert_eq!(shell.code, Some(2), "{shell:#?}");
    assert!(shell.stderr.contains("by the action `spawn`"), "{shell:#?}");

    for (with, said) in [
        (["--engine", "nosuch"], "herma has no engine `nosuch`"),
        (["--child", "nosuch"], "herma has no engine `nosuch`"),
        (["--resource", "no name"], "a child run is named by its contract"),
    ] {
        let mut args = vec!["policy", "explain", "--action", "spawn"];
        for (option, usual) in [("--resource", "part"), ("--child", "fake"), ("--engine", "fake")] {
            args.extend([option, if with[0] == option { with[1] } else { usual }]);
        }
        let ended = herma.run(&args);
        assert!(ended.code == Some(2) && ended.stderr.contains(said), "{ended:#?}");
    }

    let case = |rest: &str| format!("- {{ name: a, resource: part, {rest} }}\n");
    for (case, code, said) in [
        (case("action: spawn, child: fake, expect: allow, rules: [herma.child]"), 0, "ok     a"),
        (case("action: spawn, child: stub, expect: allow"), 1, "rule no-stub"),
        (case("action: read, child: stub, expect: deny"), 2, "the case `a`: a child run is asked for"),
        (case("action: spawn, tool: Task, child: fake, expect: deny"), 2, "by no tool"),
    ] {
        let file = herma.file("cases.yaml", format!("cases:\n{case}"));
        let ended = herma.run(&["policy", "test", file.to_str().unwrap()]);
        assert_eq!(ended.code, Some(code), "{ended:#?}");
        assert!(format!("{}{}", ended.stdout, ended.stderr).contains(said), "{ended:#?}");
    }
}

/// How the command of an agent's configuration ends, with nothing to read.
fn hooked(program: &Path, socket: &Path) -> Output {
    let command = hook::command(program, socket);
    Command::new("/bin/sh").args(["-c", &command]).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_hook_that_is_killed_fails_or_is_not_there_is_a_no() {
    let herma = Herma::new();
    let socket = herma.at("no ' socket");
    for (text, code) in [("kill -9 $$", 2), ("exit 1", 2), ("exit 139", 2), ("exit 0", 0)] {
        let program = herma.file("a 'hook", format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(hooked(&program, &socket).status.code(), Some(code), "{text}");
    }
    assert_eq!(hooked(&herma.at("gone"), &socket).status.code(), Some(2));
    let ended = hooked(Path::new(HERMA), &socket);
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.starts_with("herma denied this tool call: herma does not understand the call"), "{said}");
    // Without a socket at all it is no hook, and a no all the same.
    let ended = Command::new(HERMA).arg("hook").stdin(Stdio::null()).output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
}
