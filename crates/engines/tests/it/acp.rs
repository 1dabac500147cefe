//! The engine `acp`: recorded dialogues with real agents, and messages at the wrong time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::view::view;

use herma_core::Contract;
use herma_core::engine::EngineResult;
use herma_core::model_call::Endpoint;
use herma_destination::{Mount, View};
use herma_engines::acp::{AcpAgent, AcpConversation};
use herma_engines::{
    AgentEvent, Assignment, Conversation, DenialReply, DialogueAction, Engine, EngineError,
    PermissionRequest, Registry,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Recorded dialogues with real agents, line by line with their direction.
const DIALOGUES: [(&str, &str); 4] = [
    ("acp-claude", include_str!("streams/acp-claude.jsonl")),
    ("acp-codex", include_str!("streams/acp-codex.jsonl")),
    ("acp-hermes", include_str!("streams/acp-hermes.jsonl")),
    ("acp-opencode", include_str!("streams/acp-opencode.jsonl")),
];

/// One direction of a dialogue.
fn side(text: &str, dir: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["dir"] == dir).map(|line| line["msg"].clone()).collect()
}

/// The agent's side as the bytes that it wrote.
fn stream(text: &str) -> Vec<u8> {
    side(text, "<-").iter().flat_map(|message| format!("{message}\n").into_bytes()).collect()
}

#[derive(Debug, Default)]
struct Heard {
    said: Vec<AgentEvent>,
    turns: Vec<DialogueAction>,
    /// The number of unknown lines.
    unknown: usize,
}

impl Heard {
    fn results(&self) -> Vec<EngineResult> {
        let results = self.said.iter().filter_map(|said| match said {
            AgentEvent::Result(result) => Some(*result),
            _ => None,
        });
        results.collect()
    }

    fn malformed(&self) -> usize {
        self.said.iter().filter(|said| matches!(said, AgentEvent::Malformed(_))).count()
    }
}

fn dialogue() -> (AcpConversation, Heard) {
    let mut dialogue = AcpConversation::new("Repair it.".to_owned(), "/workspace".to_owned());
    let turns = dialogue.open();
    (dialogue, Heard { turns, ..Heard::default() })
}

fn hear(dialogue: &mut AcpConversation, line: &[u8], heard: &mut Heard) {
    let (said, turns) = dialogue.hear(line);
    match said {
        Some(AgentEvent::All(several)) => heard.said.extend(several),
        Some(said) => heard.said.push(said),
        None => heard.unknown += 1,
    }
    heard.turns.extend(turns);
}

/// Everything that is parsed from a stream.
fn heard(stream: &[u8]) -> Heard {
    let (mut dialogue, mut all) = dialogue();
    for line in stream.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        hear(&mut dialogue, line, &mut all);
    }
    all
}

/// The same for messages.
fn told(messages: &[Value]) -> Heard {
    heard(&messages.iter().flat_map(|message| format!("{message}\n").into_bytes()).collect::<Vec<_>>())
}

fn hello() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": 1 } })
}

fn session() -> Value {
    json!({ "jsonrpc": "2.0", "id": 2, "result": { "sessionId": "s" } })
}

fn ends(reason: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 3, "result": { "stopReason": reason } })
}

fn update(update: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } })
}

fn asks(command: &str, kinds: &[&str]) -> Value {
    let options: Vec<Value> = kinds
        .iter()
        .map(|kind| json!({ "optionId": format!("o-{kind}"), "name": kind, "kind": kind }))
        .collect();
    let call =
        json!({ "toolCallId": "c", "kind": "execute", "title": "Run", "rawInput": { "command": command } });
    let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
    json!({ "jsonrpc": "2.0", "id": "q-7", "method": "session/request_permission", "params": params })
}

#[test]
fn a_dialogue_with_a_real_agent_is_led_to_its_end() {
    for (name, text) in DIALOGUES {
        let all = heard(&stream(text));
        assert_eq!(
            (all.results(), all.malformed(), all.unknown),
            (vec![EngineResult::Completed], 0, 0),
            "{name}"
        );
        insta::assert_debug_snapshot!(name, (&all.said, &all.turns));
        // herma sends the recorded requests, except for client info, paths and prompt.
        let said: Vec<String> = all.turns.iter().filter_map(method_of).collect();
        let recorded = side(text, "->");
        let recorded: Vec<&str> = recorded.iter().filter_map(|message| message["method"].as_str()).collect();
        assert_eq!(said, recorded, "{name}");
    }
}

fn method_of(turn: &DialogueAction) -> Option<String> {
    let DialogueAction::Say(line) = turn else { return None };
    let message: Value = serde_json::from_str(line).unwrap();
    message["method"].as_str().map(ToOwned::to_owned)
}

#[test]
fn only_a_turn_that_the_agent_ended_by_itself_is_a_completed_one() {
    assert_eq!(told(&[hello(), session(), ends("end_turn")]).results(), [EngineResult::Completed]);
    for reason in ["max_tokens", "max_turn_requests", "refusal", "cancelled", "", "END_TURN", "tomorrow"] {
        let all = told(&[hello(), session(), ends(reason)]);
        assert_eq!(all.results(), [EngineResult::Failed], "{reason}");
        assert_eq!(all.turns.last(), Some(&DialogueAction::End));
    }
}

#[test]
fn an_agent_that_rejects_a_request_has_failed_and_gets_no_more() {
    let error = |id: u64| {
        let error =
            json!({ "code": -32000, "message": "Authentication required", "data": { "why": "no key" } });
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    };
    let old = json!({ "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": 7 } });
    for messages in
        [vec![error(1)], vec![hello(), error(2)], vec![hello(), session(), error(3)], vec![old.clone()]]
    {
        let all = told(&messages);
        assert_eq!((all.results(), all.malformed()), (vec![EngineResult::Failed], 0), "{messages:?}");
        assert_eq!(all.turns.last(), Some(&DialogueAction::End));
    }
    let words = AgentEvent::Message(r#"error -32000: Authentication required: {"why":"no key"}"#.to_owned());
    assert!(told(&[error(1)]).said.contains(&words));
}

#[test]
fn no_result_counts_before_the_prompt() {
    for messages in [vec![ends("end_turn")], vec![hello(), ends("end_turn")], vec![session()]] {
        let all = told(&messages);
        assert!(all.results().is_empty() && all.malformed() == 1, "{all:?}");
    }
    // A duplicate response adds nothing and opens no second session.
    let all =
        told(&[hello(), hello(), session(), session(), ends("end_turn"), ends("end_turn"), ends("refusal")]);
    assert_eq!((all.results(), all.malformed()), (vec![EngineResult::Completed], 0));
    assert_eq!(all.turns.len(), 5, "{:?}", all.turns);
}

#[test]
fn a_question_has_two_answers_and_a_yes_is_for_this_once() {
    let question = |kinds: &[&str]| -> PermissionRequest {
        let all = told(&[hello(), session(), asks("git push", kinds)]);
        match all.turns.last() {
            Some(DialogueAction::Answer(question)) => question.clone(),
            other => panic!("{other:?}"),
        }
    };
    let all = question(&["allow_always", "allow_once", "reject_once", "reject_always"]);
    assert_eq!((all.tool.as_str(), all.command.as_str()), ("shell", "git push"));
    let answer = |choice: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"q-7","result":{{"outcome":{{"outcome":"selected","optionId":"{choice}"}}}}}}"#
        )
    };
    assert_eq!((all.yes, all.no), (Some(answer("o-allow_once")), DenialReply::Bare(answer("o-reject_once"))));
    let always = question(&["allow_always", "reject_always"]);
    assert_eq!((always.yes, always.no), (None, DenialReply::Bare(answer("o-reject_always"))));
    let none = question(&[]);
    let cancelled = r#"{"jsonrpc":"2.0","id":"q-7","result":{"outcome":{"outcome":"cancelled"}}}"#;
    assert_eq!((none.yes, none.no), (None, DenialReply::Bare(cancelled.to_owned())));
}

#[test]
fn unsupported_requests_get_an_error_response() {
    for method in ["fs/read_text_file", "fs/write_text_file", "terminal/create", "_own/thing"] {
        let request = json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": {} });
        let all = told(&[hello(), session(), request]);
        let Some(DialogueAction::Say(answer)) = all.turns.last() else { panic!("{all:?}") };
        let answer: Value = serde_json::from_str(answer).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(9), &json!(-32601)), "{method}");
        assert_eq!(all.malformed(), 0);
    }
    let broken = json!({ "jsonrpc": "2.0", "id": 9, "method": "session/request_permission", "params": {} });
    let all = told(&[hello(), session(), broken]);
    assert!(all.malformed() == 1 && matches!(all.turns.last(), Some(DialogueAction::Say(_))), "{all:?}");
}

#[test]
fn a_call_is_reported_when_its_subject_is_known_and_again_when_it_changes() {
    let call = |kind: &str, more: Value| {
        let mut call = json!({ "sessionUpdate": kind, "toolCallId": "c", "kind": "execute" });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        update(&call)
    };
    let tools = |messages: &[Value]| -> Vec<String> {
        let all = told(messages);
        let tools = all.said.into_iter().filter_map(|said| match said {
            AgentEvent::Tool { name, command } => Some(format!("{name}: {command}")),
            _ => None,
        });
        tools.collect()
    };
    let input = |command: Value| json!({ "rawInput": command });
    let begun = call("tool_call", json!({ "status": "pending", "title": "Terminal", "rawInput": {} }));
    let ls = call("tool_call_update", input(json!({ "command": "ls" })));
    let push = call("tool_call_update", input(json!({ "command": ["git", "push", "a b", "it's"] })));
    let done = call("tool_call_update", json!({ "status": "completed" }));
    assert_eq!(tools(&[begun.clone(), ls.clone(), ls.clone(), done.clone()]), ["shell: ls"]);
    assert_eq!(
        tools(&[begun.clone(), ls, push, done.clone()]),
        ["shell: ls", r"shell: git push 'a b' 'it'\''s'"],
        "who says something else meanwhile has said both"
    );
    assert_eq!(tools(&[begun.clone(), done]), ["shell: Terminal"]);
    assert_eq!(tools(&[hello(), session(), begun, ends("end_turn")]), ["shell: Terminal"]);
    let words = call("tool_call", input(json!({ "command": "git", "args": ["push"] })));
    assert_eq!(tools(&[words]), ["shell: git push"]);
}

#[test]
fn buffered_output_is_bounded() {
    let (mut dialogue, mut all) = dialogue();
    let chunk = update(&json!({
        "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "x".repeat(1000) },
    }));
    for at in 0..1000 {
        hear(&mut dialogue, chunk.to_string().as_bytes(), &mut all);
        let call = json!({ "sessionUpdate": "tool_call", "toolCallId": at.to_string(), "title": "t" });
        // Calls that are never heard of again.
        let (said, _) = dialogue.hear(update(&call).to_string().as_bytes());
        drop(said);
    }
    assert!(format!("{dialogue:?}").len() < 200_000, "it holds {} bytes", format!("{dialogue:?}").len());
}

proptest! {
    // A dialogue is long, and each case reads up to three.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_bytes_are_heard_without_harm_and_are_no_result(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(heard(&bytes).results().is_empty());
    }

    #[test]
    fn a_stream_that_is_cut_doubled_mixed_or_damaged_never_says_more_than_was_said(
        which in 0..DIALOGUES.len(),
        other in 0..DIALOGUES.len(),
        cut in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        noise in prop::collection::vec(any::<u8>(), 0..64),
        mixed in any::<bool>(),
    ) {
        let whole = stream(DIALOGUES[which].1);
        let mut bytes = whole.clone();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(cut.index(bytes.len() + 1));
        bytes.extend(&noise);
        // No result counts before the prompt, whatever the stream contains.
        let prompted = |all: &Heard| all.turns.iter().filter_map(method_of).any(|method| method == "session/prompt");
        let all = heard(&bytes);
        prop_assert!(all.results().is_empty() || prompted(&all) || all.results() == [EngineResult::Failed]);
        prop_assert!(all.results().len() <= 1);
        if mixed {
            let other = stream(DIALOGUES[other].1);
            let lines = |bytes: &[u8]| bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
            let (one, two) = (lines(&whole), lines(&other));
            let mut both = Vec::new();
            for at in 0..one.len().max(two.len()) {
                for line in [one.get(at), two.get(at)].into_iter().flatten() {
                    both.extend(line);
                    both.push(b'\n');
                }
            }
            prop_assert!(heard(&both).results().len() <= 1);
        }
    }
}

fn contract(model: &str) -> Contract {
    let text = format!(
        "---\nid: t\ntitle: repair it\ntarget: {{ repo: ../r }}\nstage: 2\nallowed_paths: [src/**]\n\
         model: {{ provider: p, model: '{model}' }}\n---\nDo it, quietly.\n"
    );
    Contract::parse(text.as_bytes()).unwrap()
}

fn agent() -> AcpAgent {
    AcpAgent {
        package: None,
        program: Some("bin/some".to_owned()),
        args: vec!["acp".to_owned(), "--model={model}".to_owned(), "{tree}/cli.js".to_owned()],
        identity: vec!["{tree}/cli.js".to_owned(), "--version".to_owned()],
        asks: Some(Endpoint::Chat),
        token: Some("SOME_KEY".to_owned()),
        env: [("SOME_BASE".to_owned(), "{router}/v1".to_owned())].into(),
        files: [(
            "deep/config.json".to_owned(),
            r#"{"model":"{model}","dir":"{home}","in":"{workspace}"}"#.to_owned(),
        )]
        .into(),
        sessions: Vec::new(),
        hides: Vec::new(),
    }
}

fn registry(agent: Option<AcpAgent>, program: Option<&Path>) -> Registry {
    let agents: BTreeMap<_, _> = agent.into_iter().map(|agent| ("some".parse().unwrap(), agent)).collect();
    let programs = program.map(|path| ("acp-some".parse().unwrap(), path.to_owned())).into_iter().collect();
    Registry::new("/herma".into(), None, programs, &agents)
}

fn get(registry: &Registry) -> &dyn Engine {
    registry.get(&"acp-some".parse().unwrap()).unwrap()
}

#[test]
fn each_configured_agent_is_an_engine_and_without_one_there_is_only_the_name() {
    let none = registry(None, None);
    let acp = none.get(&"acp".parse().unwrap()).unwrap();
    assert!(
        acp.unconfigured().is_some() && acp.version() == "not configured" && acp.identify(&view()).is_none()
    );
    let assignment = Assignment { contract: &contract("m"), script: None, resume: None, note: None };
    for error in [acp.digest().unwrap_err(), acp.launch(&assignment, &view()).unwrap_err()] {
        assert_eq!(
            error.to_string(),
            "the engine `acp` is not configured: describe an agent under `acp` in settings.yaml in herma's home"
        );
    }
    let one = registry(Some(agent()), None);
    assert!(one.get(&"acp".parse().unwrap()).is_none());
    let some = get(&one);
    assert!(!some.built_in() && !some.may_run_unconfined() && some.asks() == Some(Endpoint::Chat));
    assert!(matches!(some.digest(), Err(EngineError::NoProgram { .. })));
    assert!(some.sessions().is_empty() && some.hidden_paths().is_empty());
    let (sessions, hides) = (vec!["data".to_owned()], vec![".some".to_owned()]);
    let more = registry(Some(AcpAgent { sessions, hides, ..agent() }), None);
    assert_eq!((get(&more).sessions(), get(&more).hidden_paths()), (vec!["agent/data"], vec![".some"]));
}

#[test]
fn an_agent_is_started_as_the_operator_says() {
    let (tree, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let registry = registry(Some(agent()), Some(tree.path()));
    let (some, contract) = (get(&registry), contract("big/m-1"));
    let assignment = Assignment { contract: &contract, script: None, resume: None, note: None };
    some.prepare(&assignment, dir.path(), &view()).unwrap();
    let config = fs::read_to_string(dir.path().join("agent/deep/config.json")).unwrap();
    assert_eq!(config, r#"{"model":"big/m-1","dir":"/engine/agent","in":"/workspace"}"#);
    insta::assert_debug_snapshot!("acp-launch", some.launch(&assignment, &view()).unwrap());
    insta::assert_debug_snapshot!("acp-identify", some.identify(&view()).unwrap());
    let mount = Mount { host: tree.path().to_owned(), inside: "/opt/herma-engine".into() };
    assert_eq!(some.mounts(tree.path()), [mount]);
    assert!(some.conversation(&assignment, &view()).is_some());
    let blind = View { engine_dir: None, ..view() };
    assert!(matches!(some.launch(&assignment, &blind), Err(EngineError::NoEngineDirectory(_))));
    let no_way = View { router_port: None, ..view() };
    assert!(matches!(some.launch(&assignment, &no_way), Err(EngineError::NoModel(_))));
}

#[test]
fn a_model_whose_name_would_say_more_in_a_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(Some(agent()), Some(dir.path()));
    for model in ["m\"x", "m}", "a b", "é"] {
        let contract = contract(model);
        let assignment = Assignment { contract: &contract, script: None, resume: None, note: None };
        let error = get(&registry).prepare(&assignment, dir.path(), &view()).unwrap_err();
        assert!(matches!(error, EngineError::ModelName { .. }), "{error}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn the_same_program_with_another_configuration_is_another_engine() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("some");
    fs::write(&program, "the program").unwrap();
    let file = AcpAgent { program: None, ..agent() };
    let digest = |agent: &AcpAgent| get(&registry(Some(agent.clone()), Some(&program))).digest().unwrap();
    let before = digest(&file);
    assert_eq!(digest(&file), before);
    for other in [
        AcpAgent { args: vec!["--yolo".to_owned()], ..file.clone() },
        AcpAgent { env: BTreeMap::new(), ..file.clone() },
        AcpAgent { files: BTreeMap::new(), ..file.clone() },
        AcpAgent { token: None, ..file.clone() },
        AcpAgent { sessions: vec!["data".to_owned()], ..file.clone() },
        AcpAgent { hides: vec![".some".to_owned()], ..file.clone() },
    ] {
        assert_ne!(digest(&other), before, "{other:?}");
    }
    // The origin of the program, or its next version, is not part of the digest.
    let package = |text: &str| Some(serde_json::from_str(text).unwrap());
    for text in [r#"{"npm":"some","version":"1.2.3"}"#, r#"{"pypi":"some","version":"1.2"}"#] {
        let named = AcpAgent { package: package(text), ..file.clone() };
        assert_eq!(digest(&named), before);
    }
    let registry = registry(Some(file), Some(&program));
    // A run's copy of the program has the digest of the program, and another program another one.
    let copy = dir.path().join("copy");
    fs::write(&copy, "the program").unwrap();
    assert_eq!(get(&registry).digest_with(&copy).unwrap(), before);
    fs::write(&copy, "another").unwrap();
    assert_ne!(get(&registry).digest_with(&copy).unwrap(), before);
    fs::write(&program, "another").unwrap();
    assert_ne!(get(&registry).digest().unwrap(), before);
    let mount = Mount { host: copy.clone(), inside: "/opt/herma-engine/agent".into() };
    assert_eq!(get(&registry).mounts(&copy), [mount]);
}

#[test]
fn an_agent_whose_package_is_named_is_installed_from_there() {
    let named = |package: &str| AcpAgent { package: serde_json::from_str(package).unwrap(), ..agent() };
    let unnamed = registry(Some(agent()), None);
    assert!(get(&unnamed).source().is_none() && get(&unnamed).version() == "configured");
    assert!(get(&unnamed).without_source().unwrap().contains("`package: { npm: NAME, version: 1.2.3 }`"));

    let npm = named(r#"{ "npm": "@some/agent", "version": "1.2.3", "beside": { "node": "24.11.0" } }"#);
    let missing = registry(Some(npm.clone()), None);
    insta::assert_debug_snapshot!("acp-source", get(&missing).source().unwrap());
    assert_eq!(get(&missing).version(), "not installed");
    assert_eq!(
        get(&missing).digest().unwrap_err().to_string(),
        "the engine `acp-some` is not installed: `herma engines install acp-some` does it"
    );
    let tree = tempfile::tempdir().unwrap();
    let own = tree.path().join("node_modules/@some/agent");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("package.json"), r#"{ "version": "1.2.4" }"#).unwrap();
    let there = registry(Some(npm), Some(tree.path()));
    assert_eq!(get(&there).version(), "1.2.4");
    let digest = herma_engines::tree_digest(tree.path()).unwrap();
    assert_eq!(get(&there).digest_over(digest), get(&there).digest().unwrap());
    assert!(get(&there).identify(&view()).unwrap().env.is_empty());

    // A Python interpreter in a tree finds its library there, whatever the package's settings are.
    fs::create_dir_all(tree.path().join("python/lib")).unwrap();
    let pypi = registry(Some(agent()), Some(tree.path()));
    let library = ("LD_LIBRARY_PATH".to_owned(), "/opt/herma-engine/python/lib".to_owned());
    assert_eq!(get(&pypi).identify(&view()).unwrap().env, std::slice::from_ref(&library));
    let contract = contract("m");
    let assignment = Assignment { contract: &contract, script: None, resume: None, note: None };
    assert!(get(&pypi).launch(&assignment, &view()).unwrap().env.contains(&library));
}
