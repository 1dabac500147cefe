//! The dialogue with Claude Code: it is given its prompt, and asks herma before each call of a tool.
//!
//! It would run a program for each question as well. Here it asks where it speaks, and waits for the answer: no call pays for
//! two more programs. A request that herma cannot answer is denied.

use herma_core::tool::MAX_SUBJECT_BYTES;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ClaudeReader;
use crate::agent_event::AgentEvent;
use crate::conversation::{Conversation, DenialReply, DialogueAction, PermissionRequest, PermissionSource};
use crate::engine::OutputReader as _;
use crate::hook::{HOOK_SECONDS, HookInput};
use crate::json_lines::{malformed, typed};
use crate::lines::MAX_SAID;

/// The name of the event before a tool call.
const BEFORE_A_CALL: &str = "PreToolUse";
/// The id of herma's hook and of its own request.
const HOOK: &str = "herma";
/// The JSON pointer of the reason in a denial.
const REASON: &str = "/response/response/hookSpecificOutput/permissionDecisionReason";

/// The dialogue of one run.
#[derive(Debug)]
pub struct ClaudeDialogue {
    /// The prompt, until it is sent.
    prompt: Option<String>,
}

#[derive(Deserialize)]
struct ClaudeRequest<'a> {
    request_id: String,
    /// Parsed separately: the agent waits for a response, also to a request that herma cannot parse.
    #[serde(borrow)]
    request: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
enum ClaudeRequestKind {
    HookCallback {
        callback_id: String,
        input: Hooked,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Hooked {
    hook_event_name: String,
    #[serde(flatten)]
    told: HookInput,
}

#[derive(Deserialize)]
struct ClaudeResponse {
    response: ClaudeResponseKind,
}

#[derive(Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
enum ClaudeResponseKind {
    Success { request_id: String, response: Taken },
    Error { request_id: String, error: String },
}

/// The result of registering herma's hook.
#[derive(Deserialize)]
struct Taken {
    #[serde(default)]
    hooks_applied: bool,
    /// Whether a failing hook denies.
    #[serde(default)]
    hook_on_failure_supported: bool,
}

impl ClaudeDialogue {
    /// A dialogue with this prompt.
    #[must_use]
    pub fn new(prompt: String) -> Self {
        Self { prompt: Some(prompt) }
    }

    /// Handles the response to herma's own request. The prompt waits for it: no tool may run before the hook is
    /// registered.
    fn answered(&mut self, text: &str) -> (Option<AgentEvent>, Vec<DialogueAction>) {
        let answer = match serde_json::from_str(text) {
            Ok(ClaudeResponse { response }) => response,
            Err(error) => return (Some(malformed(&error)), Vec::new()),
        };
        match answer {
            ClaudeResponseKind::Success { request_id, response } if request_id == HOOK => {
                let Some(prompt) = self.prompt.take() else {
                    return broken_off("its hooks were set once more, and not by herma");
                };
                if !(response.hooks_applied && response.hook_on_failure_supported) {
                    return broken_off("it does not take herma's hook as it must");
                }
                let message = json!({ "role": "user", "content": prompt });
                let told = json!({ "type": "user", "message": message }).to_string();
                (Some(AgentEvent::Hello), vec![DialogueAction::Say(told)])
            }
            ClaudeResponseKind::Error { request_id, error } if request_id == HOOK => {
                broken_off(&format!("it does not take herma's hook: {error}"))
            }
            ClaudeResponseKind::Success { .. } | ClaudeResponseKind::Error { .. } => {
                (Some(AgentEvent::Malformed("it answers what it was not asked".to_owned())), Vec::new())
            }
        }
    }
}

/// Ends the dialogue; the run is no pass.
fn broken_off(why: &str) -> (Option<AgentEvent>, Vec<DialogueAction>) {
    (Some(AgentEvent::Malformed(why.chars().take(200).collect())), vec![DialogueAction::End])
}

/// Handles a request of the agent.
fn asked(text: &str) -> (Option<AgentEvent>, Vec<DialogueAction>) {
    let Ok(ClaudeRequest { request_id, request }) = serde_json::from_str(text) else {
        return (Some(AgentEvent::Malformed("it asks without a number".to_owned())), Vec::new());
    };
    let refused = |why: &str| vec![DialogueAction::Say(failed(&request_id, why))];
    match serde_json::from_str(request.get()) {
        Ok(ClaudeRequestKind::HookCallback { callback_id, input: Hooked { hook_event_name, told } })
            if callback_id == HOOK && hook_event_name == BEFORE_A_CALL =>
        {
            (Some(AgentEvent::NOTHING), vec![DialogueAction::Answer(question(&request_id, told))])
        }
        Ok(_) => (Some(AgentEvent::NOTHING), refused("herma offers no such thing")),
        // A request that cannot be parsed is denied like any other, so that it is recorded.
        Err(error) => {
            let why = format!("herma does not understand the call: {error}");
            let command = request.get().chars().take(MAX_SUBJECT_BYTES).collect();
            let no = DenialReply::Bare(failed(&request_id, &why));
            let question = PermissionRequest {
                tool: "unknown".to_owned(),
                command,
                by: PermissionSource::Hook,
                yes: None,
                no,
            };
            (Some(AgentEvent::NOTHING), vec![DialogueAction::Answer(question)])
        }
    }
}

fn question(request_id: &str, told: HookInput) -> PermissionRequest {
    let call = told.call();
    let yes = decided(request_id, &json!({ "hookEventName": BEFORE_A_CALL, "permissionDecision": "allow" }));
    let no = json!({
        "hookEventName": BEFORE_A_CALL,
        "permissionDecision": "deny",
        "permissionDecisionReason": "",
    });
    PermissionRequest {
        tool: call.tool,
        command: call.subject,
        by: PermissionSource::Hook,
        yes: Some(yes.to_string()),
        no: DenialReply::Reasoned { line: decided(request_id, &no), at: REASON },
    }
}

fn decided(request_id: &str, decision: &Value) -> Value {
    let response = json!({ "hookSpecificOutput": decision });
    json!({
        "type": "control_response",
        "response": { "subtype": "success", "request_id": request_id, "response": response },
    })
}

/// An error response, which a hook treats as a denial.
fn failed(request_id: &str, why: &str) -> String {
    json!({
        "type": "control_response",
        "response": { "subtype": "error", "request_id": request_id, "error": why },
    })
    .to_string()
}

impl Conversation for ClaudeDialogue {
    fn open(&mut self) -> Vec<DialogueAction> {
        // Every tool; and a failure denies.
        let hook = json!({ "hookCallbackIds": [HOOK], "timeout": HOOK_SECONDS, "onFailure": "block" });
        let request = json!({ "subtype": "initialize", "hooks": { BEFORE_A_CALL: [hook] } });
        let asked = json!({ "type": "control_request", "request_id": HOOK, "request": request });
        vec![DialogueAction::Say(asked.to_string())]
    }

    fn hear(&mut self, line: &[u8]) -> (Option<AgentEvent>, Vec<DialogueAction>) {
        if line.len() >= MAX_SAID {
            // The request, or the result, is unknown: an agent that waits for a response never gets one.
            return broken_off("a line is longer than herma reads");
        }
        let Some((kind, text)) = typed(line) else { return (None, Vec::new()) };
        match kind.as_str() {
            "control_request" => asked(&text),
            "control_response" => self.answered(&text),
            // It no longer waits for the response.
            "control_cancel_request" => (Some(AgentEvent::NOTHING), Vec::new()),
            // The last message: it exits when its stdin is closed.
            "result" => (ClaudeReader.line(line), vec![DialogueAction::End]),
            _ => (ClaudeReader.line(line), Vec::new()),
        }
    }
}
