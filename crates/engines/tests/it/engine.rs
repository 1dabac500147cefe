//! The engine `fake` through the seam.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use herma_core::engine::EngineName;
use herma_core::{Contract, Digest, VERSION};
use herma_destination::View;
use herma_engines::{AgentEvent, Assignment, Engine, EngineError, Launch, Registry};
use herma_fixtures::find;

fn registry(herma: impl Into<PathBuf>) -> Registry {
    Registry::new(herma.into(), None, BTreeMap::new(), &BTreeMap::new())
}

fn fake(registry: &Registry) -> &dyn Engine {
    registry.get(&EngineName::fake()).unwrap()
}

fn view() -> View {
    View {
        workspace: "/workspace".into(),
        engine_dir: Some("/engine".into()),
        router: None,
        router_port: None,
        egress_port: None,
        certificates: None,
        governance: None,
        herma: "/herma/herma".into(),
    }
}

fn contract(target: &str) -> Contract {
    let text = format!("---\nid: t\ntitle: t\ntarget: {target}\nstage: 2\nallowed_paths: [a]\n---\nDo it.\n");
    Contract::parse(text.as_bytes()).unwrap()
}

#[test]
fn fake_is_herma_itself() {
    let dir = tempfile::tempdir().unwrap();
    let herma = dir.path().join("herma");
    fs::write(&herma, "the program").unwrap();
    let registry = registry(&herma);
    let fake = fake(&registry);
    assert_eq!(fake.digest().unwrap(), Digest::of(b"the program"));
    assert_eq!(fake.version(), VERSION);
    assert!(fake.built_in() && fake.may_run_unconfined() && fake.scratch_paths().is_empty());

    assert!(fake.program().is_none());

    // The present content of the file is what would be started.
    fs::write(&herma, "another program").unwrap();
    assert_eq!(fake.digest().unwrap(), Digest::of(b"another program"));
}

#[test]
fn a_program_that_is_not_there_has_no_digest() {
    let registry = registry("/no/such/program");
    let error = fake(&registry).digest().unwrap_err();
    assert!(matches!(error, EngineError::Digest { .. }));
    assert!(!error.to_string().contains("/no/such"), "no message holds an absolute path: {error}");
}

#[test]
fn the_script_goes_by_file_and_all_paths_are_those_inside() {
    let dir = tempfile::tempdir().unwrap();
    let contract = contract("{ repo: ../r }");
    let registry = registry("/outside/herma");
    let assignment = Assignment {
        contract: &contract,
        script: Some("steps: [say: secret-plan]"),
        resume: None,
        note: None,
    };
    fake(&registry).prepare(&assignment, dir.path(), &view()).unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("script.yaml")).unwrap(), "steps: [say: secret-plan]");

    let view = view();
    let argv = ["/herma/herma", "__fake", "/engine/script.yaml"].map(Into::into).to_vec();
    assert_eq!(fake(&registry).launch(&assignment, &view).unwrap(), Launch { argv, ..Launch::default() });

    let blind = View { engine_dir: None, ..view };
    assert!(matches!(fake(&registry).launch(&assignment, &blind), Err(EngineError::NoEngineDirectory(_))));
}

#[test]
fn without_a_script_a_fixture_is_fixed() {
    let dir = tempfile::tempdir().unwrap();
    let contract = contract("{ fixture: binary-logo }");
    let registry = registry("/herma");
    fake(&registry)
        .prepare(
            &Assignment { contract: &contract, script: None, resume: None, note: None },
            dir.path(),
            &view(),
        )
        .unwrap();
    let fix = find("binary-logo").unwrap().script("fix").unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("script.yaml")).unwrap(), fix);
}

#[test]
fn a_failed_preparation_is_reported_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry("/herma");
    let error = |target: &str, script: Option<&str>| {
        let contract = contract(target);
        let error = fake(&registry)
            .prepare(
                &Assignment { contract: &contract, script, resume: None, note: None },
                dir.path(),
                &view(),
            )
            .unwrap_err();
        assert!(fs::read_dir(dir.path()).unwrap().next().is_none());
        error.to_string()
    };
    insta::assert_snapshot!(error("{ repo: ../r }", None), @"there is no script for `fake`, which only plays scripts: the repository `../r` has none of its own");
    insta::assert_snapshot!(error("{ fixture: gone }", None), @"there is no script for `fake`, which only plays scripts: the fixture `gone` has none of its own");
    insta::assert_snapshot!(error("{ fixture: string-slugify }", Some("steps:\n  - wirte: x\n")), @"the script for `fake` cannot be read: line 2, column 5: `wirte` is not known here; did you mean `write`?");
}

#[test]
fn a_missing_engine_directory_is_an_error_without_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let contract = contract("{ fixture: string-slugify }");
    let registry = registry("/herma");
    let gone = dir.path().join("gone");
    let error = fake(&registry)
        .prepare(&Assignment { contract: &contract, script: None, resume: None, note: None }, &gone, &view())
        .unwrap_err()
        .to_string();
    insta::assert_snapshot!(error, @"`script.yaml` could not be written to the run's engine directory: No such file or directory (os error 2)");
}

#[test]
fn each_run_has_its_own_reader() {
    let registry = registry("/herma");
    let mut reader = fake(&registry).reader(Digest::of(b"contract"));
    assert_eq!(reader.line(br#"{"type":"message","text":"hi"}"#), Some(AgentEvent::Message("hi".into())));
}
