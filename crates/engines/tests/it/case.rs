//! The engine `case`: its files, its identity, and the parsing of its output.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::view::view;

use herma_core::Contract;
use herma_core::engine::EngineResult;
use herma_destination::View;
use herma_engines::case::CaseReader;
use herma_engines::{AgentEvent, Assignment, EngineError, OutputReader as _, Registry};
use proptest::prelude::*;

fn results(output: &str) -> Vec<EngineResult> {
    let (mut reader, mut results) = (CaseReader::default(), Vec::new());
    for line in output.split('\n') {
        let all = match reader.line(line.as_bytes()) {
            Some(AgentEvent::All(all)) => all,
            said => said.into_iter().collect(),
        };
        results.extend(all.into_iter().filter_map(|said| match said {
            AgentEvent::Result(result) => Some(result),
            _ => None,
        }));
    }
    results
}

const COMPLETED: &str = "Pipeline completed successfully.";

#[test]
fn the_last_start_counts_and_the_first_end_after_it() {
    use EngineResult::{Completed, Failed};
    for (said, expected) in [
        ("<<<AGENT_RESULT\n{\"status\":\"completed\"}\nAGENT_RESULT>>>", Completed),
        ("<<<AGENT_RESULT {\"status\":\"completed\"} AGENT_RESULT>>>", Completed),
        ("<<<AGENT_RESULT {\"status\":\"failed\"} AGENT_RESULT>>>", Failed),
        ("<<<AGENT_RESULT {\"status\":\"blocked\"} AGENT_RESULT>>>", Failed),
        ("<<<AGENT_RESULT {\"status\":\"perhaps\"} AGENT_RESULT>>>", Failed),
        ("<<<AGENT_RESULT {\"summary\":\"no status\"} AGENT_RESULT>>>", Failed),
        ("<<<AGENT_RESULT done AGENT_RESULT>>>", Failed),
        // An agent quotes the mark, and then gives its result.
        (
            "I end with <<<AGENT_RESULT\n<<<AGENT_RESULT\n{\"status\":\"completed\"}\nAGENT_RESULT>>>",
            Completed,
        ),
        (
            "<<<AGENT_RESULT {\"status\":\"completed\"} <<<AGENT_RESULT {\"status\":\"failed\"} AGENT_RESULT>>>",
            Failed,
        ),
        (
            "<<<AGENT_RESULT {\"status\":\"failed\"} AGENT_RESULT>>> {\"status\":\"completed\"} AGENT_RESULT>>>",
            Failed,
        ),
        // It failed, was tried once more, and completed.
        (
            "<<<AGENT_RESULT {\"status\":\"failed\"} AGENT_RESULT>>>\n<<<AGENT_RESULT {\"status\":\"completed\"} AGENT_RESULT>>>",
            Completed,
        ),
        ("", Completed),
    ] {
        for end in [COMPLETED, r#"{"type":"pipeline_end","outcome":"completed"}"#] {
            assert_eq!(results(&format!("{said}\n{end}")), [expected], "{said} {end}");
        }
    }
}

#[test]
fn a_pipeline_that_failed_says_so_and_the_reviewers_no_is_a_rejection() {
    use EngineResult::{Completed, Failed, Rejected};
    for (output, expected) in [
        ("Pipeline failed at implementer phase.", vec![Failed]),
        ("Pipeline failed at reviewer phase.", vec![Rejected]),
        ("[unattended] Pipeline failed at reviewer phase.", vec![Rejected]),
        ("[unattended] Pipeline completed successfully.", vec![Completed]),
        ("Fatal: unknown model", vec![Failed]),
        ("Error: no such task", vec![Failed]),
        (r#"{"type":"pipeline_end","outcome":"failed","failedAgent":"reviewer"}"#, vec![Rejected]),
        (r#"{"type":"pipeline_end","outcome":"failed","failedAgent":null}"#, vec![Failed]),
        (r#"{"type":"pipeline_end","outcome":"completed"}"#, vec![Completed]),
        // Cut off in the middle of a result.
        ("<<<AGENT_RESULT\n{\"status\":\"comp\nPipeline failed at implementer phase.", vec![Failed]),
        ("Working on it.\nThe pipeline_end is near.", vec![]),
    ] {
        assert_eq!(results(output), expected, "{output}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm_and_are_no_result(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut reader = CaseReader::default();
        for line in bytes.split(|b| *b == b'\n') {
            prop_assert!(!matches!(reader.line(line), Some(AgentEvent::Result(_))));
        }
    }
}

#[test]
fn a_result_without_end_is_not_held_for_ever() {
    let mut reader = CaseReader::default();
    assert_eq!(reader.line(b"<<<AGENT_RESULT"), None);
    let line = [b'x'; 4096];
    assert!((0..1000).any(|_| matches!(reader.line(&line), Some(AgentEvent::Malformed(_)))));
    assert!(format!("{reader:?}").len() < 1 << 20);
}

fn registry(program: Option<&Path>) -> Registry {
    let programs = program.map(|path| ("case".parse().unwrap(), path.to_owned())).into_iter().collect();
    Registry::new("/herma".into(), None, programs, &BTreeMap::new())
}

fn contract() -> Contract {
    let text = "---\nid: t\ntitle: repair it\ntarget: { repo: ../r }\nstage: 2\nallowed_paths: [src/**]\n\
                verify: [make check]\nmodel: { provider: p, model: 'big\"m' }\n---\nDo it, quietly.\n";
    Contract::parse(text.as_bytes()).unwrap()
}

#[test]
fn the_task_goes_by_file_and_the_model_by_configuration() {
    let contract = contract();
    let assignment = Assignment { contract: &contract, script: None, resume: None, note: None };
    let (registry, dir) = (registry(Some(Path::new("/programs/ca"))), tempfile::tempdir().unwrap());
    let case = registry.get(&"case".parse().unwrap()).unwrap();
    case.prepare(&assignment, dir.path(), &view()).unwrap();
    let files = ["data/config.json", "data/projects.json", "models/models.json", "task/contract.task.json"];
    let files = files.map(|file| fs::read_to_string(dir.path().join("case").join(file)).unwrap());
    insta::assert_snapshot!("case-files", files.join("\n"));
    assert!(
        fs::read_to_string(dir.path().join("case/task/contract.md")).unwrap().contains("Do it, quietly.")
    );
    let launch = case.launch(&assignment, &view()).unwrap();
    insta::assert_debug_snapshot!("case-launch", launch);
    assert!(matches!(
        case.prepare(&assignment, dir.path(), &View { router_port: None, ..view() }),
        Err(EngineError::NoModel(_))
    ));
}

/// The output of this script in place of the program, in a workspace with files of an earlier Case run.
fn printed(program: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let [workspace, task, ca] = ["workspace", "task", "ca"].map(|name| dir.path().join(name));
    for stale in ["contract", "zz"] {
        let events = workspace.join(".case").join(stale).join("events");
        fs::create_dir_all(&events).unwrap();
        fs::write(events.join("run-9.jsonl"), "{\"type\":\"pipeline_end\",\"outcome\":\"completed\"}\n")
            .unwrap();
    }
    fs::create_dir(&task).unwrap();
    fs::write(task.join("contract.task.json"), "{}").unwrap();
    fs::write(&ca, format!("#!/bin/sh\n{program}\n")).unwrap();
    fs::set_permissions(&ca, fs::Permissions::from_mode(0o755)).unwrap();
    let registry = registry(Some(Path::new("/programs/ca")));
    let contract = contract();
    let assignment = Assignment { contract: &contract, script: None, resume: None, note: None };
    let launch = registry.get(&"case".parse().unwrap()).unwrap().launch(&assignment, &view()).unwrap();
    let [shell, c, script, name, ..] = &launch.argv[..] else { panic!("{launch:?}") };
    let mut command = Command::new(shell);
    command.args([c, script, name]).args([&ca, &task]).current_dir(&workspace);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn files_of_an_earlier_case_run_do_not_count() {
    assert_eq!(printed("test -f \"$3\""), "");
    let end = r#"{"type":"pipeline_end","outcome":"failed"}"#;
    let fails = format!("mkdir -p .case/contract/events && echo '{end}' > .case/contract/events/run-1.jsonl");
    assert_eq!(printed(&fails), format!("{end}\n"));
}

#[test]
fn identity_is_read_from_the_help_and_the_version_is_never_queried() {
    let registry = registry(Some(Path::new("/programs/ca")));
    let case = registry.get(&"case".parse().unwrap()).unwrap();
    assert_eq!(case.identify(&view()).unwrap().argv, ["/opt/herma-engine/ca", "--help"]);
    let help = "Usage: ca <command> [options]\n  mark-manual-tested\n  analyze-failure\n";
    assert_eq!(case.identity(help.as_bytes()).as_deref(), Some("WorkOS Case"));
    for other in ["", "Usage: ca <command> [options]\n", &format!("\n{help}"), &help.replace("analyze", "x")]
    {
        assert_eq!(case.identity(other.as_bytes()), None, "{other}");
    }
    assert_eq!(case.identity(b"\xff"), None);
}
