//! The dialogue with Claude Code: it is given its prompt, and asks herma before each call of a tool.
//!
//! It would run a program for each question as well. Here it asks where it speaks, and waits for the answer: no call pays for
//! two more programs. What herma cannot answer, it takes for a no.

use herma_core::tool::LONGEST_SUBJECT;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ClaudeReader;
use crate::conversation::{Asking, Conversation, Question, Refusal, Turn};
use crate::engine::{OutputReader as _, Said};
use crate::hook::{HOOK_SECONDS, Told};
use crate::json_lines::{malformed, typed};
use crate::lines::MAX_SAID;

/// The event before a call, by its own name.
const BEFORE_A_CALL: &str = "PreToolUse";
/// What herma calls its hook, and its own request.
const HOOK: &str = "herma";
/// Where the reason stands in a refusal.
const REASON: &str = "/response/response/hookSpecificOutput/permissionDecisionReason";

/// The dialogue of one run.
#[derive(Debug)]
pub struct ClaudeDialogue {
    /// What it is told, until it has been.
    prompt: Option<String>,
}

#[derive(Deserialize)]
struct Asked<'a> {
    request_id: String,
    /// Read by itself: who asked waits for an answer, also to what herma cannot read.
    #[serde(borrow)]
    request: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
enum Request {
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
    told: Told,
}

#[derive(Deserialize)]
struct Answered {
    response: Answer,
}

#[derive(Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
enum Answer {
    Success { request_id: String, response: Taken },
    Error { request_id: String, error: String },
}

/// What it made of herma's hook.
#[derive(Deserialize)]
struct Taken {
    #[serde(default)]
    hooks_applied: bool,
    /// Whether what fails is a no.
    #[serde(default)]
    hook_on_failure_supported: bool,
}

impl ClaudeDialogue {
    /// A dialogue in which the agent is told this.
    #[must_use]
    pub fn new(prompt: String) -> Self {
        Self { prompt: Some(prompt) }
    }

    /// Hears the answer to herma's own request. The prompt waits for it: nothing may be done before the hook is there.
    fn answered(&mut self, text: &str) -> (Option<Said>, Vec<Turn>) {
        let answer = match serde_json::from_str(text) {
            Ok(Answered { response }) => response,
            Err(error) => return (Some(malformed(&error)), Vec::new()),
        };
        match answer {
            Answer::Success { request_id, response } if request_id == HOOK => {
                let Some(prompt) = self.prompt.take() else {
                    return broken_off("its hooks were set once more, and not by herma");
                };
                if !(response.hooks_applied && response.hook_on_failure_supported) {
                    return broken_off("it does not take herma's hook as it must");
                }
                let message = json!({ "role": "user", "content": prompt });
                let told = json!({ "type": "user", "message": message }).to_string();
                (Some(Said::Hello), vec![Turn::Say(told)])
            }
            Answer::Error { request_id, error } if request_id == HOOK => {
                broken_off(&format!("it does not take herma's hook: {error}"))
            }
            Answer::Success { .. } | Answer::Error { .. } => {
                (Some(Said::Malformed("it answers what it was not asked".to_owned())), Vec::new())
            }
        }
    }
}

/// Nothing more is said to it, and the run is no pass.
fn broken_off(why: &str) -> (Option<Said>, Vec<Turn>) {
    (Some(Said::Malformed(why.chars().take(200).collect())), vec![Turn::End])
}

/// What it asks, and how herma answers.
fn asked(text: &str) -> (Option<Said>, Vec<Turn>) {
    let Ok(Asked { request_id, request }) = serde_json::from_str(text) else {
        return (Some(Said::Malformed("it asks without a number".to_owned())), Vec::new());
    };
    let refused = |why: &str| vec![Turn::Say(failed(&request_id, why))];
    match serde_json::from_str(request.get()) {
        Ok(Request::HookCallback { callback_id, input: Hooked { hook_event_name, told } })
            if callback_id == HOOK && hook_event_name == BEFORE_A_CALL =>
        {
            (Some(Said::NOTHING), vec![Turn::Answer(question(&request_id, told))])
        }
        Ok(_) => (Some(Said::NOTHING), refused("herma offers no such thing")),
        // What cannot be read is asked about all the same, so that it is written down, and answered with no.
        Err(error) => {
            let why = format!("herma does not understand the call: {error}");
            let command = request.get().chars().take(LONGEST_SUBJECT).collect();
            let no = Refusal::Bare(failed(&request_id, &why));
            let question = Question { tool: "unknown".to_owned(), command, by: Asking::Hook, yes: None, no };
            (Some(Said::NOTHING), vec![Turn::Answer(question)])
        }
    }
}

fn question(request_id: &str, told: Told) -> Question {
    let call = told.call();
    let yes = decided(request_id, &json!({ "hookEventName": BEFORE_A_CALL, "permissionDecision": "allow" }));
    let no = json!({
        "hookEventName": BEFORE_A_CALL,
        "permissionDecision": "deny",
        "permissionDecisionReason": "",
    });
    Question {
        tool: call.tool,
        command: call.subject,
        by: Asking::Hook,
        yes: Some(yes.to_string()),
        no: Refusal::Reasoned { line: decided(request_id, &no), at: REASON },
    }
}

fn decided(request_id: &str, decision: &Value) -> Value {
    let response = json!({ "hookSpecificOutput": decision });
    json!({
        "type": "control_response",
        "response": { "subtype": "success", "request_id": request_id, "response": response },
    })
}

/// An answer that is none: of a hook that counts as a no.
fn failed(request_id: &str, why: &str) -> String {
    json!({
        "type": "control_response",
        "response": { "subtype": "error", "request_id": request_id, "error": why },
    })
    .to_string()
}

impl Conversation for ClaudeDialogue {
    fn open(&mut self) -> Vec<Turn> {
        // Every tool; and what fails is a no.
        let hook = json!({ "hookCallbackIds": [HOOK], "timeout": HOOK_SECONDS, "onFailure": "block" });
        let request = json!({ "subtype": "initialize", "hooks": { BEFORE_A_CALL: [hook] } });
        let asked = json!({ "type": "control_request", "request_id": HOOK, "request": request });
        vec![Turn::Say(asked.to_string())]
    }

    fn hear(&mut self, line: &[u8]) -> (Option<Said>, Vec<Turn>) {
        if line.len() >= MAX_SAID {
            // What it asked is not known, or that it has ended: who waits for an answer that does not come gets none.
            return broken_off("a line is longer than herma reads");
        }
        let Some((kind, text)) = typed(line) else { return (None, Vec::new()) };
        match kind.as_str() {
            "control_request" => asked(&text),
            "control_response" => self.answered(&text),
            // It waits no longer for what it asked.
            "control_cancel_request" => (Some(Said::NOTHING), Vec::new()),
            // Its last word: it ends when nothing more can be said to it.
            "result" => (ClaudeReader.line(line), vec![Turn::End]),
            _ => (ClaudeReader.line(line), Vec::new()),
        }
    }
}
