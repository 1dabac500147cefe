//! The dialogue with Claude Code: its prompt and when it is sent, its requests, and the replies.

use herma_core::engine::EngineResult;
use herma_engines::claude::ClaudeDialogue;
use herma_engines::{AgentEvent, Conversation as _, DialogueAction, PermissionRequest, PermissionSource};
use serde_json::{Value, json};

const TAKEN: &str = r#"{"type":"control_response","response":{"subtype":"success","request_id":"herma","response":{"commands":[],"hooks_applied":true,"hook_on_failure_supported":true}}}"#;

fn said(turn: &DialogueAction) -> Value {
    let DialogueAction::Say(line) = turn else { panic!("{turn:?}") };
    serde_json::from_str(line).unwrap()
}

/// A request of the agent, in the format of the real one.
fn question(callback: &str, input: &Value) -> String {
    let request = json!({
        "subtype": "hook_callback", "callback_id": callback, "input": input, "tool_use_id": "toolu_1",
    });
    json!({ "type": "control_request", "request_id": "q1", "request": request }).to_string()
}

fn before(tool: &str, arguments: &Value) -> Value {
    json!({
        "session_id": "s", "transcript_path": "/engine/t.jsonl", "cwd": "/workspace",
        "permission_mode": "bypassPermissions", "hook_event_name": "PreToolUse", "tool_name": tool,
        "tool_input": arguments, "tool_use_id": "toolu_1",
    })
}

/// herma's actions for this line.
fn heard(line: &str) -> Vec<DialogueAction> {
    ClaudeDialogue::new("Repair it.".to_owned()).hear(line.as_bytes()).1
}

/// herma's error reply, which denies.
fn refused(line: &str) -> String {
    let [turn] = &heard(line)[..] else { panic!("{line}") };
    let answer = said(turn);
    assert_eq!(answer["type"], "control_response");
    assert_eq!(
        (&answer["response"]["subtype"], &answer["response"]["request_id"]),
        (&json!("error"), &json!("q1"))
    );
    answer["response"]["error"].as_str().unwrap().to_owned()
}

#[test]
fn the_prompt_is_sent_only_after_the_hook_is_registered() {
    let mut dialogue = ClaudeDialogue::new("Repair \"it\".\n".to_owned());
    let opened = dialogue.open();
    assert_eq!(
        opened.iter().map(said).collect::<Vec<_>>(),
        [json!({
            "type": "control_request",
            "request_id": "herma",
            "request": {
                "subtype": "initialize",
                "hooks": { "PreToolUse": [{ "hookCallbackIds": ["herma"], "timeout": 30, "onFailure": "block" }] },
            },
        })]
    );
    let other = TAKEN.replace("herma", "other");
    assert_eq!(dialogue.hear(other.as_bytes()).1, []);
    let (heard, turns) = dialogue.hear(TAKEN.as_bytes());
    assert_eq!(heard, Some(AgentEvent::Hello));
    assert_eq!(
        turns.iter().map(said).collect::<Vec<_>>(),
        [json!({ "type": "user", "message": { "role": "user", "content": "Repair \"it\".\n" } })]
    );
    // Another client has registered hooks.
    let (heard, turns) = dialogue.hear(TAKEN.as_bytes());
    assert!(matches!(heard, Some(AgentEvent::Malformed(_))), "{heard:?}");
    assert_eq!(turns, [DialogueAction::End]);
}

#[test]
fn an_agent_whose_hook_fails_open_gets_no_prompt() {
    for lack in ["\"hooks_applied\":true", "\"hook_on_failure_supported\":true"] {
        for other in [lack.replace("true", "false"), "\"other\":1".to_owned()] {
            let line = TAKEN.replace(lack, &other);
            let (heard, turns) = ClaudeDialogue::new("Repair it.".to_owned()).hear(line.as_bytes());
            assert!(matches!(heard, Some(AgentEvent::Malformed(_))), "{line}");
            assert_eq!(turns, [DialogueAction::End], "{line}");
        }
    }
}

#[test]
fn an_agent_that_rejects_the_hook_gets_no_prompt() {
    let no = r#"{"type":"control_response","response":{"subtype":"error","request_id":"herma","error":"no hooks"}}"#;
    let (heard, turns) = ClaudeDialogue::new("Repair it.".to_owned()).hear(no.as_bytes());
    assert_eq!(heard, Some(AgentEvent::Malformed("it does not take herma's hook: no hooks".to_owned())));
    assert_eq!(turns, [DialogueAction::End]);
}

#[test]
fn a_question_is_about_the_call_and_both_answers_name_it() {
    let line = question("herma", &before("Bash", &json!({ "command": "git push", "description": "look" })));
    let [DialogueAction::Answer(PermissionRequest { tool, command, by, yes, no })] = &heard(&line)[..] else {
        panic!("{line}")
    };
    assert_eq!((tool.as_str(), command.as_str(), *by), ("Bash", "git push", PermissionSource::Hook));
    let answer = |decision: Value| {
        let response = json!({ "hookSpecificOutput": decision });
        json!({
            "type": "control_response",
            "response": { "subtype": "success", "request_id": "q1", "response": response },
        })
    };
    let read = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    assert_eq!(
        read(yes.as_ref().unwrap()),
        answer(json!({ "hookEventName": "PreToolUse", "permissionDecision": "allow" }))
    );
    assert_eq!(
        read(&no.clone().because("it is \"forbidden\"")),
        answer(json!({
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "it is \"forbidden\"",
        }))
    );
}

#[test]
fn an_unknown_request_is_denied() {
    let call = before("Bash", &json!({ "command": "ls" }));
    assert_eq!(refused(&question("other", &call)), "herma offers no such thing");
    let mut after = call.clone();
    after["hook_event_name"] = "PostToolUse".into();
    assert_eq!(refused(&question("herma", &after)), "herma offers no such thing");
    let other = r#"{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Bash"}}"#;
    assert_eq!(refused(other), "herma offers no such thing");

    let mut twice = question("herma", &call);
    twice.insert_str(twice.find("\"tool_name\"").unwrap(), r#""tool_name":"Read","#);
    let nested = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let deep = question("herma", &before("Bash", &json!("DEEP"))).replace("\"DEEP\"", &nested);
    let nameless = question("herma", &json!({ "hook_event_name": "PreToolUse", "tool_input": {} }));
    for line in [&twice, &deep, &nameless] {
        let [DialogueAction::Answer(PermissionRequest { yes: None, no, command, .. })] = &heard(line)[..]
        else {
            panic!("{line}")
        };
        let answer: Value = serde_json::from_str(&no.clone().because("")).unwrap();
        assert_eq!(
            (&answer["response"]["subtype"], &answer["response"]["request_id"]),
            (&json!("error"), &json!("q1"))
        );
        let why = answer["response"]["error"].as_str().unwrap();
        assert!(why.starts_with("herma does not understand the call: "), "{line}");
        assert!(command.contains("hook_callback"), "{command}");
    }
}

#[test]
fn an_overlong_line_ends_the_dialogue() {
    let content = "x".repeat(herma_engines::MAX_SAID);
    let whole = question("herma", &before("Write", &json!({ "file_path": "a", "content": content })));
    let (heard, turns) =
        ClaudeDialogue::new("Repair it.".to_owned()).hear(&whole.as_bytes()[..herma_engines::MAX_SAID]);
    assert!(matches!(heard, Some(AgentEvent::Malformed(_))), "{heard:?}");
    assert_eq!(turns, [DialogueAction::End]);
}

#[test]
fn the_last_event_flushes_everything() {
    let last = r#"{"type":"result","subtype":"success","is_error":false}"#;
    let (heard, turns) = ClaudeDialogue::new("Repair it.".to_owned()).hear(last.as_bytes());
    assert_eq!(heard, Some(AgentEvent::All(vec![AgentEvent::Result(EngineResult::Completed)])));
    assert_eq!(turns, [DialogueAction::End]);
}
