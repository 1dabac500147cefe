//! The declared capabilities of each engine match its adapter.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::view::view;

use herma_core::capability::{Capabilities, Capability, Support};
use herma_core::engine::{EngineName, EngineResult};
use herma_core::{Contract, Digest};
use herma_destination::View;
use herma_engines::acp::AcpAgent;
use herma_engines::{AgentEvent, Assignment, DialogueAction, Engine, EngineError, Registry};
use serde_json::Value;

/// Every engine with its output: recorded from a real agent, or in the protocol.
const SAYS: [(&str, &str); 9] = [
    ("fake", PROTOCOL),
    ("stub", PROTOCOL),
    ("codex", include_str!("streams/codex.jsonl")),
    ("claude", include_str!("streams/claude.jsonl")),
    ("opencode", include_str!("streams/opencode.jsonl")),
    ("pi", include_str!("streams/pi.jsonl")),
    ("hermes", include_str!("streams/hermes.jsonl")),
    ("case", "[implementer] Bash: make check\n<<<AGENT_RESULT {\"status\":\"completed\"} AGENT_RESULT>>>\n"),
    ("acp-some", include_str!("streams/acp-opencode.jsonl")),
];

const PROTOCOL: &str = "{\"type\":\"tool\",\"name\":\"shell\",\"command\":\"make check\"}\n";

/// All engines, with an agent over ACP that keeps its sessions in these directories.
fn registry(sessions: &[&str]) -> Registry {
    let agent = AcpAgent {
        package: None,
        program: None,
        args: Vec::new(),
        identity: Vec::new(),
        asks: None,
        token: None,
        env: BTreeMap::new(),
        files: BTreeMap::new(),
        sessions: sessions.iter().map(|&place| place.to_owned()).collect(),
        hides: Vec::new(),
    };
    let program = |(name, _): (&str, &str)| (name.parse::<EngineName>().unwrap(), "/nowhere".into());
    Registry::new("/herma".into(), None, SAYS.map(program).into(), &[("some".parse().unwrap(), agent)].into())
}

/// Looks at every engine there is.
fn each(look: impl Fn(&str, &dyn Engine, Capabilities)) {
    let registry = registry(&[]);
    let names: Vec<String> = registry.names().iter().map(ToString::to_string).collect();
    assert_eq!(names, SAYS.map(|(name, _)| name), "an engine is not looked at");
    for name in &names {
        let engine = registry.get(&name.parse().unwrap()).unwrap();
        look(name, engine, engine.capabilities());
    }
}

fn contract() -> Contract {
    let text = "---\nid: t\ntitle: t\ntarget: { fixture: string-slugify }\nstage: 2\nallowed_paths: [a]\n\
                model: { provider: p, model: m }\n---\nDo it.\n";
    Contract::parse(text.as_bytes()).unwrap()
}

/// The files that an engine writes for its agent, by name, and the agent's command.
fn prepared(engine: &dyn Engine, view: &View) -> Result<BTreeMap<String, String>, EngineError> {
    let (dir, contract) = (tempfile::tempdir().unwrap(), contract());
    let assignment = Assignment { contract: &contract, script: None, resume: None, note: None };
    engine.prepare(&assignment, dir.path(), view)?;
    let mut all = BTreeMap::new();
    read(dir.path(), &mut all);
    let launch = engine.launch(&assignment, view)?;
    all.insert("launch".to_owned(), format!("{:?} {:?}", launch.argv, launch.env));
    Ok(all)
}

fn read(dir: &Path, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            read(&entry.path(), all);
        } else {
            let name = entry.file_name().into_string().unwrap();
            all.insert(name, fs::read_to_string(entry.path()).unwrap());
        }
    }
}

#[test]
fn resumable_engines_name_their_session_paths() {
    each(|name, engine, can| assert_eq!(can.resume.is_there(), !engine.sessions().is_empty(), "{name}"));
    let registry = registry(&["data"]);
    let some = registry.get(&"acp-some".parse().unwrap()).unwrap();
    assert_eq!((some.capabilities().resume, some.sessions()), (Support::Native, vec!["agent/data"]));
}

#[test]
fn engines_with_hooks_are_not_started_without_them() {
    each(|name, engine, can| {
        let hookless = prepared(engine, &View { governance: None, ..view() });
        // An agent with a dialogue may get its hooks there, before the prompt.
        let has_hooks = match opening(engine).first() {
            None => matches!(hookless, Err(EngineError::NoHook(_))),
            Some(first) => first.contains("\"PreToolUse\""),
        };
        assert_eq!(can.tool_hooks.is_there(), has_hooks, "{name}");
        let asks = |file: &str, text: &str| {
            Path::new(file).extension().is_some_and(|end| end == "js" || end == "py")
                && text.contains("\"hook\"")
        };
        let written = prepared(engine, &view()).unwrap();
        let between = written.iter().any(|(file, text)| asks(file, text));
        assert_eq!(can.tool_hooks == Support::Translated, between, "{name}");
    });
}

#[test]
fn acp_agents_are_asked_for_a_session() {
    each(|name, engine, can| {
        let asked = opening(engine).iter().any(|line| line.contains("session/new"));
        assert_eq!(can.acp.is_there(), asked, "{name}");
    });
}

#[test]
fn whose_events_are_structured_is_heard_calling_a_tool() {
    each(|name, engine, can| {
        let (_, stream) = SAYS.into_iter().find(|(engine, _)| *engine == name).unwrap();
        assert_eq!(can.structured_events.is_there(), heard(engine, stream).iter().any(is_tool), "{name}");
    });
}

fn is_tool(said: &AgentEvent) -> bool {
    match said {
        AgentEvent::Tool { .. } => true,
        AgentEvent::All(several) => several.iter().any(is_tool),
        _ => false,
    }
}

fn heard(engine: &dyn Engine, stream: &str) -> Vec<AgentEvent> {
    let contract = contract();
    let assignment = Assignment { contract: &contract, script: None, resume: None, note: None };
    let Some(mut dialogue) = engine.conversation(&assignment, &view()) else {
        let mut reader = engine.reader(Digest::of(b"contract"));
        return stream.lines().filter_map(|line| reader.line(line.as_bytes())).collect();
    };
    dialogue.open();
    let lines = stream.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    // Some recordings have the whole dialogue, others only the agent's output.
    let agents = lines.filter_map(|line| match line["dir"].as_str() {
        None => Some(line.to_string()),
        Some("<-") => Some(line["msg"].to_string()),
        Some(_) => None,
    });
    agents.filter_map(|line| dialogue.hear(line.as_bytes()).0).collect()
}

/// The rejection message of each engine with a reviewer.
const REJECTIONS: &str = "{\"type\":\"result\",\"status\":\"rejected\",\"contract_digest\":\"DIGEST\"}\n\
                          Pipeline failed at reviewer phase.\n";

#[test]
fn an_engine_that_declares_a_reviewer_can_report_a_rejection_and_no_other_can() {
    each(|name, engine, can| {
        let contract = Digest::of(b"contract");
        let rejections = REJECTIONS.replace("DIGEST", &contract.to_string());
        let reported = heard(engine, &rejections).iter().any(is_rejection);
        assert_eq!(can.reviewer.is_there(), reported, "{name}");
    });
}

fn is_rejection(said: &AgentEvent) -> bool {
    match said {
        AgentEvent::Result(result) => *result == EngineResult::Rejected,
        AgentEvent::All(several) => several.iter().any(is_rejection),
        _ => false,
    }
}

/// Settings without servers: disabled options and empty lists.
const NO_SERVER: [&str; 4] = [
    "skill_mcp_dependency_install = false",
    "--strict-mcp-config",
    "\"mcp_servers\":{}",
    "\"mcpServers\":[]",
];

#[test]
fn engines_without_servers_do_not_declare_mcp() {
    each(|name, engine, can| {
        let mut all: Vec<String> = prepared(engine, &view()).unwrap().into_values().collect();
        all.extend(opening(engine));
        let all = NO_SERVER.iter().fold(all.concat(), |all, none| all.replace(none, ""));
        assert_eq!(can.mcp.is_there(), all.to_lowercase().contains("mcp"), "{name}: {all}");
    });
}

/// herma's messages to an agent until it has a session.
fn opening(engine: &dyn Engine) -> Vec<String> {
    let contract = contract();
    let assignment = Assignment { contract: &contract, script: None, resume: None, note: None };
    let Some(mut dialogue) = engine.conversation(&assignment, &view()) else { return Vec::new() };
    let mut turns = dialogue.open();
    turns.extend(dialogue.hear(br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#).1);
    turns
        .into_iter()
        .filter_map(|turn| if let DialogueAction::Say(line) = turn { Some(line) } else { None })
        .collect()
}

#[test]
fn every_capability_but_mcp_is_declared_by_an_engine() {
    for capability in Capability::ALL {
        let registry = registry(&[]);
        let names = registry.names();
        let can = |name| registry.get(name).unwrap().capabilities().of(capability).is_there();
        assert_eq!(names.iter().any(can), capability != Capability::Mcp, "{capability}");
    }
}
