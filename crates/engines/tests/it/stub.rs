//! The engine `stub` through the seam.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use herma_core::engine::{EngineName, EngineResult};
use herma_core::{Contract, Digest};
use herma_destination::{Mount, View};
use herma_engines::stub::StubAssignment;
use herma_engines::{AgentEvent, Assignment, Engine, EngineError, Launch, Registry};

const INSIDE: &str = "/opt/herma-engine/herma-stub";

fn name() -> EngineName {
    "stub".parse().unwrap()
}

fn registry(program: Option<PathBuf>) -> Registry {
    let programs: BTreeMap<_, _> = program.into_iter().map(|program| (name(), program)).collect();
    Registry::new("/herma".into(), None, programs, &BTreeMap::new())
}

fn stub(registry: &Registry) -> &dyn Engine {
    registry.get(&name()).unwrap()
}

fn contract(target: &str) -> Contract {
    let text = format!("---\nid: t\ntitle: t\ntarget: {target}\nstage: 2\nallowed_paths: [a]\n---\nDo it.\n");
    Contract::parse(text.as_bytes()).unwrap()
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

#[test]
fn stub_is_a_program_that_was_let_in() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("herma-stub");
    fs::write(&program, "the program").unwrap();
    let registry = registry(Some(program.clone()));
    let stub = stub(&registry);
    assert!(!stub.built_in() && !stub.may_run_unconfined());
    assert_eq!(stub.program(), Some(program.as_path()));
    assert_eq!(stub.mounts(&program), [Mount { host: program.clone(), inside: INSIDE.into() }]);
    assert_eq!(stub.digest().unwrap(), Digest::of(b"the program"));

    fs::write(&program, "a program that was built again").unwrap();
    assert_eq!(stub.digest().unwrap(), Digest::of(b"a program that was built again"));
    fs::remove_file(&program).unwrap();
    let error = stub.digest().unwrap_err();
    assert!(matches!(error, EngineError::Digest { .. }));
    assert!(!error.to_string().contains(dir.path().to_str().unwrap()), "{error}");
}

#[test]
fn without_a_program_nothing_can_be_started() {
    let registry = registry(None);
    let (stub, contract) = (stub(&registry), contract("{ repo: ../r }"));
    let assignment = Assignment { contract: &contract, script: None, resume: None, note: None };
    let errors = [stub.digest().unwrap_err(), stub.launch(&assignment, &view()).unwrap_err()];
    for error in errors {
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"the engine `stub` has no program: admit one with `herma admit engine stub --program PATH`");
        }
    }
    assert!(stub.program().is_none() && stub.identify(&view()).is_none());
    // The gates decide whether it may run, so that a run without a program is blocked and has evidence.
    stub.check(&assignment).unwrap();
}

#[test]
fn the_assignment_goes_by_file_and_nothing_of_it_by_argument() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(Some("/outside/herma-stub".into()));
    let contract = contract("{ repo: ../r }");
    let assignment = Assignment {
        contract: &contract,
        script: Some("steps: [say: secret-plan]"),
        resume: None,
        note: None,
    };
    stub(&registry).prepare(&assignment, dir.path(), &view()).unwrap();
    let written = fs::read(dir.path().join("assignment.json")).unwrap();
    let read = StubAssignment::parse(&written).unwrap();
    assert_eq!(read, StubAssignment::of(&assignment).unwrap());
    assert_eq!(read.script.as_deref(), assignment.script);
    assert_eq!(read.contract_digest, contract.digest().unwrap());

    let launch = |argv: &[&str], stdin| Launch {
        argv: argv.iter().map(Into::into).collect(),
        stdin,
        ..Launch::default()
    };
    let stub = stub(&registry);
    assert_eq!(stub.launch(&assignment, &view()).unwrap(), launch(&[INSIDE], Some("assignment.json")));
    assert_eq!(stub.identify(&view()), Some(launch(&[INSIDE, "--identity"], None)));
    let blind = View { engine_dir: None, ..view() };
    assert!(matches!(stub.launch(&assignment, &blind), Err(EngineError::NoEngineDirectory(_))));
}

#[test]
fn a_script_that_cannot_be_read_is_refused_before_there_is_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(None);
    let contract = contract("{ fixture: string-slugify }");
    let assignment =
        Assignment { contract: &contract, script: Some("steps:\n  - wirte: x\n"), resume: None, note: None };
    let error = stub(&registry).prepare(&assignment, dir.path(), &view()).unwrap_err();
    insta::assert_snapshot!(error, @"the script for `stub` cannot be read: line 2, column 5: `wirte` is not known here; did you mean `write`?");
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none());

    let assignment = Assignment { contract: &contract, script: None, resume: None, note: None };
    let error = stub(&registry).prepare(&assignment, &dir.path().join("gone"), &view()).unwrap_err();
    insta::assert_snapshot!(error, @"`assignment.json` could not be written to the run's engine directory: No such file or directory (os error 2)");
}

#[test]
fn an_answer_for_another_contract_is_no_answer() {
    let registry = registry(None);
    let mut reader = stub(&registry).reader(Digest::of(b"this"));
    let mut result = |contract: Digest| {
        let line = format!(r#"{{"type":"result","status":"completed","contract_digest":"{contract}"}}"#);
        reader.line(line.as_bytes()).unwrap()
    };
    assert_eq!(result(Digest::of(b"this")), AgentEvent::Result(EngineResult::Completed));
    assert!(matches!(result(Digest::of(b"that")), AgentEvent::Malformed(_)));
}

#[test]
fn the_identity_is_parsed_from_the_output() {
    let registry = registry(None);
    let identity = |output: &str| stub(&registry).identity(output.as_bytes());
    assert_eq!(identity("{\"engine\":\"stub\",\"version\":\"0.1.0\"}\n").as_deref(), Some("stub 0.1.0"));
    assert_eq!(identity("stub 0.1.0"), None);
}
