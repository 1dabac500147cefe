//! The messages of the Agent Client Protocol that herma uses: JSON-RPC, one object per line.
//!
//! Unused fields are ignored, so that agents of other versions are understood as far as possible.

use serde::Deserialize;
use serde_json::{Value, json};

/// The protocol version.
pub(super) const VERSION: u64 = 1;

/// The JSON-RPC error code for an unsupported method.
const METHOD_NOT_FOUND: i64 = -32601;

/// Any message of the agent: a request has a method and an id, a notification a method, a response an id.
#[derive(Deserialize)]
pub(super) struct AcpMessage {
    pub(super) id: Option<Value>,
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Value,
    pub(super) result: Option<Value>,
    pub(super) error: Option<AcpError>,
}

#[derive(Deserialize)]
pub(super) struct AcpError {
    #[serde(default)]
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
    /// Some agents put the real cause here.
    #[serde(default)]
    pub(super) data: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialized {
    pub(super) protocol_version: u64,
    #[serde(default)]
    pub(super) agent_capabilities: AcpCapabilities,
}

/// The agent's capabilities.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AcpCapabilities {
    /// Resuming an earlier session.
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
    pub(super) usage: Option<AcpUsage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AcpUsage {
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
        content: AcpContent,
    },
    ToolCall(AcpToolCall),
    #[serde(rename = "tool_call_update")]
    ToolCallChanged(AcpToolCall),
    Plan {
        entries: Vec<AcpPlanEntry>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct AcpContent {
    /// Images and other content have none.
    #[serde(default)]
    pub(super) text: String,
}

#[derive(Deserialize)]
pub(super) struct AcpPlanEntry {
    pub(super) content: String,
}

/// A tool call, or an update of one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AcpToolCall {
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
    pub(super) tool_call: AcpToolCall,
    pub(super) options: Vec<AcpPermissionOption>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AcpPermissionOption {
    pub(super) option_id: String,
    #[serde(default)]
    pub(super) kind: String,
}

/// The first request. It offers neither files nor terminals: the agent has its own in the sandbox.
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

/// The response to a permission request: one of its options, or none.
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

impl AcpError {
    /// The error as a readable text.
    pub(super) fn in_words(&self) -> String {
        let detail = if self.data.is_null() { String::new() } else { format!(": {}", self.data) };
        format!("error {}: {}{detail}", self.code, self.message)
    }
}
