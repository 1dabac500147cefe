//! The messages of the Agent Client Protocol, as far as herma reads and writes them: JSON-RPC, one object a line.
//!
//! Fields that are not needed are not read, so that an agent of another version is understood as far as it can be.

use serde::Deserialize;
use serde_json::{Value, json};

/// The version of the protocol that herma speaks.
pub(super) const VERSION: u64 = 1;

/// JSON-RPC's word for a method that is not offered.
const METHOD_NOT_FOUND: i64 = -32601;

/// Any message of the agent: a request has a method and an id, a notification a method, an answer an id.
#[derive(Deserialize)]
pub(super) struct Incoming {
    pub(super) id: Option<Value>,
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Value,
    pub(super) result: Option<Value>,
    pub(super) error: Option<Problem>,
}

#[derive(Deserialize)]
pub(super) struct Problem {
    #[serde(default)]
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
    /// Where some agents say what is really wrong.
    #[serde(default)]
    pub(super) data: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialized {
    pub(super) protocol_version: u64,
    #[serde(default)]
    pub(super) agent_capabilities: Capabilities,
}

/// What it offers.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Capabilities {
    /// To go on with an earlier session.
    #[serde(default)]
    pub(super) load_session: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSession {
    pub(super) session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Prompted {
    pub(super) stop_reason: String,
    pub(super) usage: Option<Usage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    #[serde(default)]
    pub(super) input_tokens: u64,
    #[serde(default)]
    pub(super) output_tokens: u64,
}

#[derive(Deserialize)]
pub(super) struct Notified {
    pub(super) update: Update,
}

#[derive(Deserialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
pub(super) enum Update {
    AgentMessageChunk {
        content: Content,
    },
    ToolCall(Call),
    #[serde(rename = "tool_call_update")]
    ToolCallChanged(Call),
    Plan {
        entries: Vec<Entry>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct Content {
    /// Pictures and the like have none.
    #[serde(default)]
    pub(super) text: String,
}

#[derive(Deserialize)]
pub(super) struct Entry {
    pub(super) content: String,
}

/// A tool call, or what has changed of one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Call {
    pub(super) tool_call_id: String,
    pub(super) name: Option<String>,
    pub(super) title: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) raw_input: Value,
    #[serde(default)]
    pub(super) content: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Permission {
    pub(super) tool_call: Call,
    pub(super) options: Vec<Choice>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Choice {
    pub(super) option_id: String,
    #[serde(default)]
    pub(super) kind: String,
}

/// The first word. Of files and terminals nothing is offered: the agent has its own behind the walls.
pub(super) fn initialize(id: u64) -> String {
    let capabilities = json!({ "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false });
    request(
        id,
        "initialize",
        &json!({
            "protocolVersion": VERSION,
            "clientCapabilities": capabilities,
            "clientInfo": { "name": "herma", "version": herma_core::VERSION },
        }),
    )
}

pub(super) fn new_session(id: u64, workspace: &str) -> String {
    request(id, "session/new", &json!({ "cwd": workspace, "mcpServers": [] }))
}

pub(super) fn load_session(id: u64, session: &str, workspace: &str) -> String {
    let params = json!({ "sessionId": session, "cwd": workspace, "mcpServers": [] });
    request(id, "session/load", &params)
}

pub(super) fn prompt(id: u64, session: &str, text: &str) -> String {
    let blocks = json!([{ "type": "text", "text": text }]);
    request(id, "session/prompt", &json!({ "sessionId": session, "prompt": blocks }))
}

pub(super) fn cancel(session: &str) -> String {
    json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } }).to_string()
}

/// The answer to a question: one of its choices, or none of them.
pub(super) fn chosen(id: &Value, choice: Option<&str>) -> String {
    let outcome = match choice {
        Some(choice) => json!({ "outcome": "selected", "optionId": choice }),
        None => json!({ "outcome": "cancelled" }),
    };
    json!({ "jsonrpc": "2.0", "id": id, "result": { "outcome": outcome } }).to_string()
}

pub(super) fn not_offered(id: &Value) -> String {
    let error = json!({ "code": METHOD_NOT_FOUND, "message": "herma does not offer this" });
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

impl Problem {
    /// What a person reads of it.
    pub(super) fn in_words(&self) -> String {
        let detail = if self.data.is_null() { String::new() } else { format!(": {}", self.data) };
        format!("error {}: {}{detail}", self.code, self.message)
    }
}
