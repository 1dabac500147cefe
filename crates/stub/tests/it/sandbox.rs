//! The real program in the real sandbox, started as the adapter says.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use herma_core::engine::EngineResult;
use herma_destination::{Destination as _, Exit, Job, JobPaths, Sandbox, Stdin};
use herma_engines::stub::{NAME, Stub};
use herma_engines::{AgentEvent, Assignment, Engine as _, Launch, LineSplitter};

use crate::program::{STUB, contract, digest};

/// herma's own program, which a build of the workspace puts beside the tests: the sandbox starts every job through it.
fn herma() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let herma = test.ancestors().nth(2).unwrap().join("herma");
    assert!(herma.exists(), "{} is not there: run `cargo build -p herma` first", herma.display());
    herma
}

/// Plays the script inside, or asks for the identity where there is none.
fn inside(dir: &tempfile::TempDir, script: Option<&str>) -> (Exit, Vec<u8>) {
    let engine = Stub::new(NAME.parse().unwrap(), Some(STUB.into()));
    let sandbox = Sandbox::find(herma(), "/usr/bin:/bin".as_ref());
    let (workspace, engine_dir) = (dir.path().join("workspace"), dir.path().join("engine"));
    fs::create_dir(&workspace).unwrap();
    fs::create_dir(&engine_dir).unwrap();
    let paths = JobPaths::new(workspace).with_engine_dir(engine_dir.clone());
    let view = sandbox.view(&paths);
    let contract = contract();
    let assignment = Assignment { contract: &contract, script, resume: None, note: None };
    engine.prepare(&assignment, &engine_dir, &view).unwrap();
    let Launch { argv, env, stdin, .. } = if script.is_some() {
        engine.launch(&assignment, &view).unwrap()
    } else {
        engine.identify(&view).unwrap()
    };
    let run_id = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
    let job = Job::new(run_id, argv, paths)
        .with_env(env)
        .with_mounts(engine.mounts(engine.program().unwrap()))
        .with_stdin(stdin.map_or(Stdin::Null, |name| Stdin::File(engine_dir.join(name))));
    let mut process = sandbox.start(&job).unwrap();
    let mut stdout = process.take_stdout().unwrap();
    let exit = process.wait(Duration::from_mins(2)).unwrap().expect("it did not end");
    process.kill_all().unwrap();
    let mut output = Vec::new();
    stdout.read_to_end(&mut output).unwrap();
    (exit, output)
}

#[test]
fn it_finds_everything_that_it_needs_inside() {
    let dir = tempfile::tempdir().unwrap();
    let (exit, output) = inside(&dir, None);
    assert!(exit.success(), "{exit:?}");
    let engine = Stub::new(NAME.parse().unwrap(), None);
    assert_eq!(engine.identity(&output), Some(format!("stub {}", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn it_works_in_the_workspace_and_cannot_change_its_own_program() {
    let dir = tempfile::tempdir().unwrap();
    let own = "/opt/herma-engine/herma-stub";
    let script = format!(
        "steps:\n  - write: {{ path: made, text: x }}\n  - append: {{ path: {own}, text: x }}\n  \
         - delete: {own}\n  - write: {{ path: /opt/herma-engine/more, text: x }}\n  - write: {{ path: /engine/own, text: x }}\n"
    );
    let (exit, output) = inside(&dir, Some(&script));
    assert!(exit.success(), "{exit:?}");
    let mut reader = Stub::new(NAME.parse().unwrap(), None).reader(digest());
    let mut said = Vec::new();
    LineSplitter::new().feed(&output, |line| said.extend(reader.line(line)));
    match &said[..] {
        [
            AgentEvent::Hello,
            AgentEvent::Message(append),
            AgentEvent::Message(delete),
            AgentEvent::Message(write),
            AgentEvent::Result(EngineResult::Completed),
        ] => {
            assert!(append.starts_with("could not append to"), "{append}");
            assert!(delete.starts_with("could not delete"), "{delete}");
            assert!(write.starts_with("could not write"), "{write}");
        }
        other => panic!("{other:?}"),
    }
    assert!(dir.path().join("workspace/made").exists() && dir.path().join("engine/own").exists());
}
