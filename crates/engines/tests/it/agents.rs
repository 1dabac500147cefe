//! The engines of real agents, and their recorded streams.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::view::view;

use herma_core::engine::{EngineName, EngineResult};
use herma_core::{Contract, Digest};
use herma_destination::{Mount, View};
use herma_engines::{AgentEvent, Assignment, EngineError, Launch, Registry};
use proptest::prelude::*;

const AGENTS: [&str; 5] = ["codex", "claude", "opencode", "pi", "hermes"];

/// The recorded streams of each agent.
const STREAMS: [(&str, &str, &str); 14] = [
    ("codex", "codex", include_str!("streams/codex.jsonl")),
    ("codex", "codex-auth-error", include_str!("streams/codex-auth-error.jsonl")),
    ("codex", "codex-resume", include_str!("streams/codex-resume.jsonl")),
    ("claude", "claude", include_str!("streams/claude.jsonl")),
    ("claude", "claude-auth-error", include_str!("streams/claude-auth-error.jsonl")),
    ("claude", "claude-refused", include_str!("streams/claude-refused.jsonl")),
    ("claude", "claude-resume", include_str!("streams/claude-resume.jsonl")),
    ("opencode", "opencode", include_str!("streams/opencode.jsonl")),
    ("opencode", "opencode-auth-error", include_str!("streams/opencode-auth-error.jsonl")),
    ("pi", "pi", include_str!("streams/pi.jsonl")),
    ("pi", "pi-auth-error", include_str!("streams/pi-auth-error.jsonl")),
    ("pi", "pi-resume", include_str!("streams/pi-resume.jsonl")),
    ("hermes", "hermes", include_str!("streams/hermes.jsonl")),
    ("hermes", "hermes-auth-error", include_str!("streams/hermes-auth-error.jsonl")),
];

fn name(engine: &str) -> EngineName {
    engine.parse().unwrap()
}

fn registry(engine: &str, tree: Option<&Path>) -> Registry {
    let programs: BTreeMap<_, _> = tree.into_iter().map(|tree| (name(engine), tree.to_owned())).collect();
    Registry::new("/herma".into(), None, programs, &BTreeMap::new())
}

fn contract(model: bool) -> Contract {
    let model = if model { "model: { provider: p, model: 'big\"model' }\n" } else { "" };
    let text = format!(
        "---\nid: t\ntitle: repair it\ntarget: {{ repo: ../r }}\nstage: 2\nallowed_paths: [src/**]\n\
         forbidden_paths: [src/keys]\nverify: [make check]\nsuccess: [it is quick]\n{model}---\nDo it, quietly.\n"
    );
    Contract::parse(text.as_bytes()).unwrap()
}

/// A tree that looks installed, and what it holds besides.
fn tree(package: &str, version: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let own = format!("site/{}-{version}.dist-info/METADATA", package.replace('-', "_"));
    for (file, text) in [
        (format!("node_modules/{package}/package.json"), format!("{{\"version\":{version:?}}}")),
        (own, format!("Metadata-Version: 2.4\nName: {package}\nVersion: {version}\n\nVersion: 0.0.0\n")),
        // Another package whose name begins alike.
        ("site/hermes_agent_tools-0.1.0.dist-info/METADATA".to_owned(), "Version: 0.1.0\n".to_owned()),
    ] {
        let file = dir.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    dir
}

/// All that a reader understands of a stream, and how many lines it does not.
fn heard(engine: &str, stream: &[u8]) -> (Vec<AgentEvent>, usize) {
    let registry = registry(engine, None);
    let mut reader = registry.get(&name(engine)).unwrap().reader(Digest::of(b"contract"));
    let (mut all, mut unknown) = (Vec::new(), 0);
    for line in stream.split(|b| *b == b'\n') {
        match reader.line(line) {
            Some(said) => flatten(said, &mut all),
            None => unknown += 1,
        }
    }
    (all, unknown)
}

fn flatten(said: AgentEvent, all: &mut Vec<AgentEvent>) {
    match said {
        AgentEvent::All(several) => several.into_iter().for_each(|said| flatten(said, all)),
        said => all.push(said),
    }
}

fn results(said: &[AgentEvent]) -> Vec<EngineResult> {
    said.iter()
        .filter_map(|said| if let AgentEvent::Result(result) = said { Some(*result) } else { None })
        .collect()
}

#[test]
fn recorded_streams_of_real_agents_are_parsed() {
    for (engine, stream, text) in STREAMS {
        let (said, unknown) = heard(engine, text.as_bytes());
        // The last line ends with a newline; what follows it is no line.
        assert_eq!(unknown, 1, "{stream}");
        insta::assert_debug_snapshot!(stream, said);
    }
}

#[test]
fn an_agent_that_could_not_ask_its_model_says_that_it_failed() {
    for (engine, stream, text) in STREAMS {
        let expected = match stream {
            "codex-auth-error"
            | "claude-refused"
            | "opencode-auth-error"
            | "pi-auth-error"
            | "hermes-auth-error" => {
                vec![EngineResult::Failed]
            }
            // This one was ended while it still tried: it owes no result.
            "claude-auth-error" => vec![],
            _ => vec![EngineResult::Completed],
        };
        assert_eq!(results(&heard(engine, text.as_bytes()).0), expected, "{stream}");
    }
}

#[test]
fn an_agent_is_a_tree_that_was_installed() {
    for (engine, package) in [
        ("codex", "@openai/codex"),
        ("claude", "@anthropic-ai/claude-code"),
        ("opencode", "opencode-ai"),
        ("pi", "@earendil-works/pi-coding-agent"),
        ("hermes", "hermes-agent"),
    ] {
        let tree = tree(package, "9.8.7");
        let registry = registry(engine, Some(tree.path()));
        let engine = registry.get(&name(engine)).unwrap();
        assert!(!engine.built_in() && !engine.may_run_unconfined() && engine.asks().is_some());
        assert_eq!(engine.version(), "9.8.7");
        assert_eq!(engine.source().unwrap().name, package);
        assert_eq!(engine.program(), Some(tree.path()));
        let mount = Mount { host: tree.path().to_owned(), inside: "/opt/herma-engine".into() };
        assert_eq!(engine.mounts(tree.path()), [mount]);
        let before = engine.digest().unwrap();
        fs::write(tree.path().join("more"), "").unwrap();
        assert_ne!(engine.digest().unwrap(), before);
        fs::remove_dir_all(tree.path()).unwrap();
        let error = engine.digest().unwrap_err();
        assert!(
            matches!(error, EngineError::Digest { .. }) && !error.to_string().contains("/tmp"),
            "{error}"
        );
    }
}

#[test]
fn without_a_tree_nothing_can_be_started_and_the_message_says_what_to_do() {
    for engine in AGENTS {
        let registry = registry(engine, None);
        let agent = registry.get(&name(engine)).unwrap();
        let assignment = Assignment { contract: &contract(true), script: None, resume: None, note: None };
        for error in [agent.digest().unwrap_err(), agent.launch(&assignment, &view()).unwrap_err()] {
            let expected =
                format!("the engine `{engine}` is not installed: `herma engines install {engine}` does it");
            assert_eq!(error.to_string(), expected);
        }
        assert!(agent.identify(&view()).is_none() && agent.program().is_none());
        assert_eq!(agent.version(), "not installed");
    }
}

#[test]
fn the_identity_is_one_line() {
    for engine in AGENTS {
        let registry = registry(engine, None);
        let agent = registry.get(&name(engine)).unwrap();
        let source = agent.source().unwrap();
        let said = source.identity_of(source.version).unwrap();
        assert_eq!(agent.identity(format!("{said}\n").as_bytes()).as_deref(), Some(said.as_str()));
        let long = "x".repeat(129);
        for bad in ["", "\n", "one\ntwo\n", "a\u{1b}[31m", "\u{202e}x", &long] {
            assert_eq!(agent.identity(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(agent.identity(b"\xff"), None);
    }
}

/// The files of a run, and the command of the agent.
fn prepared(engine: &str) -> (String, Launch) {
    let tree = tree("none", "1");
    let registry = registry(engine, Some(tree.path()));
    let agent = registry.get(&name(engine)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let assignment = Assignment { contract: &contract(true), script: None, resume: None, note: None };
    agent.prepare(&assignment, dir.path(), &view()).unwrap();
    let mut files = vec![];
    for place in [dir.path().to_owned(), dir.path().join(engine)] {
        for entry in fs::read_dir(&place).unwrap().map(Result::unwrap) {
            if entry.path().is_file() {
                let shown = entry.path().strip_prefix(dir.path()).unwrap().display().to_string();
                files.push(format!("== {shown}\n{}", fs::read_to_string(entry.path()).unwrap()));
            }
        }
    }
    files.sort();
    let mut launch = agent.launch(&assignment, &view()).unwrap();
    // Its place in the tree depends on the machine.
    let program = Path::new("/opt/herma-engine").join(agent.source().unwrap().program);
    assert_eq!(launch.argv[0], program);
    launch.argv[0] = "PROGRAM".into();
    (files.join("\n"), launch)
}

#[test]
fn the_brief_goes_by_file_the_model_by_configuration_and_no_secret_by_either() {
    for engine in AGENTS {
        let (files, launch) = prepared(engine);
        insta::assert_snapshot!(format!("{engine}-files"), files);
        insta::assert_debug_snapshot!(format!("{engine}-launch"), launch);
        for word in &launch.argv {
            assert!(!word.to_string_lossy().contains("quietly"), "the brief is in argv");
        }
    }
}

#[test]
fn without_a_model_or_a_way_to_it_nothing_is_prepared() {
    for engine in AGENTS {
        let registry = registry(engine, Some(Path::new("/nowhere")));
        let agent = registry.get(&name(engine)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (with, without) = (contract(true), contract(false));
        for (contract, view) in [(&without, view()), (&with, View { router_port: None, ..view() })] {
            let error = agent
                .prepare(&Assignment { contract, script: None, resume: None, note: None }, dir.path(), &view)
                .unwrap_err();
            assert!(matches!(error, EngineError::NoModel(_)), "{error}");
        }
        assert!(fs::read_dir(dir.path()).unwrap().next().is_none());
        let blind = View { engine_dir: None, ..view() };
        let assignment = Assignment { contract: &with, script: None, resume: None, note: None };
        assert!(matches!(agent.launch(&assignment, &blind), Err(EngineError::NoEngineDirectory(_))));
    }
}

#[test]
fn unknown_types_are_ignored_and_broken_lines_are_malformed() {
    for (engine, unknown, broken) in [
        ("codex", r#"{"type":"thread.compacted"}"#, r#"{"type":"turn.completed"}"#),
        ("claude", r#"{"type":"stream_event"}"#, r#"{"type":"result","subtype":"success"}"#),
        ("opencode", r#"{"type":"step_paused"}"#, r#"{"type":"step_finish"}"#),
        ("pi", r#"{"type":"compaction_start"}"#, r#"{"type":"message_end"}"#),
        ("hermes", r#"{"type":"thought"}"#, r#"{"type":"result"}"#),
    ] {
        assert_eq!(heard(engine, unknown.as_bytes()), (vec![], 1));
        for other in ["", "Reading prompt from stdin...", "[]", "{\"type\":7}", "\u{1b}[32mdone"] {
            assert_eq!(heard(engine, other.as_bytes()), (vec![], 1), "{other}");
        }
        let (said, _) = heard(engine, broken.as_bytes());
        assert!(matches!(said[..], [AgentEvent::Malformed(_)]), "{said:?}");
    }
    // One whose model never answered, or did not end by itself, has not completed anything.
    assert_eq!(results(&heard("pi", br#"{"type":"agent_settled"}"#).0), [EngineResult::Failed]);
    let cut = br#"{"type":"step_finish","sessionID":"s","part":{"type":"step-finish","reason":"length"}}"#;
    assert_eq!(results(&heard("opencode", cut).0), [EngineResult::Failed]);
    let lies = br#"{"type":"result","completed":true,"error":"HTTP 500"}"#;
    assert_eq!(results(&heard("hermes", lies).0), [EngineResult::Failed]);
    let other = br#"{"type":"text","sessionID":"s","part":{"type":"step-finish","reason":"stop"}}"#;
    assert!(matches!(heard("opencode", other).0[..], [AgentEvent::Malformed(_)]), "a text is no end");
    // A reported success does not outweigh a reported error.
    let lies = br#"{"type":"result","subtype":"success","is_error":true}"#;
    assert_eq!(results(&heard("claude", lies).0), [EngineResult::Failed]);
    let turns = br#"{"type":"result","subtype":"error_max_turns","is_error":false}"#;
    assert_eq!(results(&heard("claude", turns).0), [EngineResult::Failed]);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm_and_are_no_result(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        which in 0..AGENTS.len(),
    ) {
        prop_assert!(results(&heard(AGENTS[which], &bytes).0).is_empty());
    }

    #[test]
    fn a_stream_that_is_cut_doubled_or_damaged_never_says_more_than_was_said(
        which in 0..STREAMS.len(),
        cut in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        noise in prop::collection::vec(any::<u8>(), 0..64),
        doubled in any::<bool>(),
    ) {
        let (engine, _, text) = STREAMS[which];
        let whole = results(&heard(engine, text.as_bytes()).0);
        let mut bytes = text.as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(cut.index(bytes.len() + 1));
        bytes.extend(&noise);
        if doubled {
            bytes.push(b'\n');
            bytes.extend(text.as_bytes());
        }
        for result in results(&heard(engine, &bytes).0) {
            // A damaged stream may yield a failure, but no success that the whole one lacks.
            prop_assert!(result == EngineResult::Failed || whole.contains(&result));
        }
    }
}
