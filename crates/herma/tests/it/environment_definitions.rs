//! Where an environment is defined, and how each mistake in a definition is reported.

use herma_core::Blocker;

use crate::kit::{Ended, Herma, ON_REPOSITORY, Repository, fix_and};

/// A definition whose result the tests can see.
const DEFINITION: &str = "setup: [\"mkdir deps && echo made > deps/dep\"]\ncache: [deps]\n";
const VERIFY: (&str, &str) = ("verify", "[\"grep -q made deps/dep\"]");

/// A text of the form of a registry's token, in pieces: the scanner reads this file too.
fn token() -> String {
    format!("np{}{}", "m_", "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW0xY12aB")
}

fn refused(herma: &Herma, terms: &[(&str, &str)]) -> Ended {
    let contract = herma.contract(terms);
    let ended = herma.run(&["run", contract.to_str().unwrap()]);
    assert_eq!(ended.code, Some(2), "{terms:?}: {ended:#?}");
    let checked = herma.run(&["contract", "check", contract.to_str().unwrap()]);
    assert_eq!((checked.code, &checked.stderr), (Some(2), &ended.stderr));
    ended
}

#[test]
fn a_bad_definition_is_refused_with_line_column_and_suggestion() {
    let herma = Herma::new();
    let secret = format!("{{ env: {{ REGISTRY: \"{}\" }} }}", token());
    let bomb = "{ fetch: &a [\"true\"], setup: *a }";
    let before = herma.contract(&[("environment", "{}")]);
    let before = std::fs::read_to_string(before).unwrap();
    let line = 1 + before.lines().position(|line| line.starts_with("environment:")).unwrap();
    for (environment, column, said) in [
        ("{ tool: [node] }", 16, "did you mean `tools`?"),
        ("{ tools: [nodee] }", 24, "unknown tool `nodee`; did you mean `node`?"),
        ("{ tools: [\"node@latest\"] }", 24, "not a version"),
        ("{ tools: [\"node@22.x\"] }", 24, "`22.x` is not a version"),
        ("{ tools: [\"python@3.x.1\"] }", 24, "did you mean `3`?"),
        ("{ tools: [node, node] }", 30, "listed twice"),
        ("{ registries: [npmm] }", 29, "did you mean `npm`?"),
        ("{ inputs: [/etc/passwd] }", 25, "did you mean `etc/passwd`?"),
        ("{ history: some }", 25, "expected `none`, `full` or a number"),
        ("{ env: { PATH: /workspace } }", 29, "herma sets the variable `PATH` itself; expected another name"),
        ("{ env: { LD_PRELOAD: /workspace/x.so } }", 35, "LD_PRELOAD"),
        ("{ setup: [\"\"] }", 24, "empty command"),
        (&secret, 33, "the value of `REGISTRY` looks like a secret"),
        (bomb, 0, "too complex"),
        ("node", 14, "expected `repository`, the path of a file"),
    ] {
        let ended = refused(&herma, &[("environment", environment)]);
        let column = if column == 0 { String::new() } else { format!("{column}: ") };
        let place = format!("contract.md:{line}:{column}");
        assert!(ended.stderr.contains(&place) && ended.stderr.contains(said), "{environment}: {ended:#?}");
        assert!(!ended.stderr.contains(&token()), "{ended:#?}");
    }
    herma.assert_no_run();
}

#[test]
fn a_tool_of_the_operators_own_is_known_and_a_version_that_is_not_there_blocks() {
    let herma = Herma::new();
    herma.marked_home();
    herma.settings("tools: { greeter: { path: /usr/bin/env } }\n");
    herma.play(&fix_and(&[]), &[("environment", "{ tools: [greeter] }")]).assert_pass();
    let missing = herma.play(&fix_and(&[]), &[("environment", "{ tools: [python@2.0] }")]);
    missing.assert_only(Blocker::ToolMissing);
}

#[test]
fn a_file_defines_an_environment_that_several_contracts_share() {
    let herma = Herma::new();
    herma.file("environments/shell.yaml", DEFINITION);
    let run = herma.play(&fix_and(&[]), &[("environment", "../environments/shell.yaml # shared"), VERIFY]);
    run.assert_pass();
    // The evidence holds the definition itself.
    assert!(run.bundle.text("contract.md").contains("made > deps/dep"), "{}", run.bundle.text("contract.md"));
    let inline = herma.play(
        &fix_and(&[]),
        &[("environment", "{ setup: [\"mkdir deps && echo made > deps/dep\"], cache: [deps] }"), VERIFY],
    );
    assert_eq!(inline.report.environment, run.report.environment);
    assert_eq!(inline.report.contract_digest, run.report.contract_digest);

    herma.file("environments/shell.yaml", "setup: [\"true\"]\ntools:\n  - pyton\n");
    let ended = refused(&herma, &[("environment", "../environments/shell.yaml")]);
    let named = ended.stderr.contains("shell.yaml:3:5: unknown tool `pyton`; did you mean `python`?");
    assert!(named && ended.stderr.contains("contract.md:"), "{ended:#?}");
    let ended = refused(&herma, &[("environment", "../environments/none.yaml")]);
    assert!(ended.stderr.contains("none.yaml: cannot be read"), "{ended:#?}");
}

#[test]
fn a_repository_defines_its_own_environment_at_the_base() {
    let herma = Herma::new();
    let repository = Repository::of_fixture(&herma, "string-slugify");
    let [target, stage] = ON_REPOSITORY;
    let terms = [target, stage, ("environment", "repository"), VERIFY];
    let ended = refused(&herma, &terms);
    assert!(ended.stderr.contains("has no file .herma/environment.yaml"), "{ended:#?}");
    herma.file("repo/.herma/environment.yaml", DEFINITION);
    repository.commit("define the environment");
    // An uncommitted definition is not read.
    herma.file("repo/.herma/environment.yaml", "setup: [\"exit 1\"]\n");
    repository.git(&["update-index", "--assume-unchanged", ".herma/environment.yaml"]);
    herma.play(&fix_and(&[]), &terms).assert_pass();
    // A link could lead to a file of the machine.
    std::fs::remove_file(herma.at("repo/.herma/environment.yaml")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", herma.at("repo/.herma/environment.yaml")).unwrap();
    repository.git(&["update-index", "--no-assume-unchanged", ".herma/environment.yaml"]);
    repository.commit("link it");
    assert!(refused(&herma, &terms).stderr.contains("has no file"));
    assert!(refused(&herma, &[("environment", "repository")]).stderr.contains("the target is a fixture"));
}
