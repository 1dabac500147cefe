//! The engine `acp` in a session of an earlier run.

use herma_core::engine::EngineResult;
use herma_engines::acp::AcpConversation;
use herma_engines::{AgentEvent, Conversation as _, DialogueAction};
use serde_json::{Value, json};

fn hello(loads: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": 1, "agentCapabilities": loads } })
}

fn chunk(text: &str) -> Value {
    let update =
        json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s-1", "update": update } })
}

fn push() -> Value {
    let update = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "kind": "execute",
        "rawInput": { "command": "git push" } });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s-1", "update": update } })
}

fn answers(id: u64, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The events and herma's requests for these messages.
fn told(session: Option<&str>, messages: &[Value]) -> (Vec<AgentEvent>, Vec<(String, Value)>) {
    let mut dialogue = AcpConversation::new("Go on.".to_owned(), "/workspace".to_owned());
    if let Some(session) = session {
        dialogue = dialogue.going_on(session.to_owned());
    }
    let (mut said, mut turns) = (Vec::new(), dialogue.open());
    for message in messages {
        let (heard, more) = dialogue.hear(message.to_string().as_bytes());
        turns.extend(more);
        match heard {
            Some(AgentEvent::All(all)) => said.extend(all),
            other => panic!("{other:?}"),
        }
    }
    let calls = turns.iter().filter_map(|turn| match turn {
        DialogueAction::Say(line) => {
            let message: Value = serde_json::from_str(line).unwrap();
            Some((message["method"].as_str()?.to_owned(), message["params"].clone()))
        }
        _ => None,
    });
    (said, calls.collect())
}

#[test]
fn a_resumed_agent_replays_history_that_is_not_reported_twice() {
    let offers = json!({ "loadSession": true });
    // Some answer with nothing, some with an object.
    for loaded in [Value::Null, json!({}), json!({ "modes": null })] {
        let messages = [
            hello(&offers),
            chunk("of before"),
            push(),
            answers(2, &loaded),
            chunk("of now"),
            answers(3, &json!({ "stopReason": "end_turn" })),
        ];
        let (said, calls) = told(Some("s-1"), &messages);
        let expected = [
            AgentEvent::Hello,
            AgentEvent::Session("s-1".to_owned()),
            AgentEvent::Message("of now".to_owned()),
            AgentEvent::Result(EngineResult::Completed),
        ];
        assert_eq!(said, expected);
        let methods: Vec<&str> = calls.iter().map(|(method, _)| method.as_str()).collect();
        assert_eq!(methods, ["initialize", "session/load", "session/prompt"]);
        assert_eq!(calls[1].1, json!({ "sessionId": "s-1", "cwd": "/workspace", "mcpServers": [] }));
        assert_eq!(calls[2].1["sessionId"], "s-1");
    }
}

#[test]
fn an_agent_that_cannot_go_on_is_not_asked_to_and_begins_nothing_else() {
    for offers in [json!({}), json!({ "loadSession": false })] {
        let (said, calls) = told(Some("s-1"), &[hello(&offers)]);
        assert!(
            matches!(&said[..], [AgentEvent::Message(why), AgentEvent::Result(EngineResult::Failed)] if why.contains("loadSession")),
            "{said:?}"
        );
        assert_eq!(calls.len(), 1, "{calls:?}");
        // That an agent cannot resume is known before a resume is requested.
        let (said, _) = told(None, &[hello(&offers), answers(2, &json!({ "sessionId": "s-1" }))]);
        assert_eq!(said, [AgentEvent::Hello, AgentEvent::Session("s-1".to_owned()), AgentEvent::NoWayBack]);
    }
    // One that refuses its session has failed.
    let refused =
        json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32602, "message": "no such session" } });
    let (said, calls) = told(Some("s-1"), &[hello(&json!({ "loadSession": true })), refused]);
    assert!(
        said.contains(&AgentEvent::Result(EngineResult::Failed)) && calls.len() == 2,
        "{said:?} {calls:?}"
    );
}
