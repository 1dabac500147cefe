//! The engine `claude`: Anthropic's Claude Code, driven by `claude -p --output-format stream-json` with a
//! configuration directory of its own. Its input has the same format.

mod dialogue;

use std::path::Path;

use herma_core::capability::{Capabilities, Support};
use herma_core::engine::EngineResult;
use herma_core::model_call::Endpoint;
use herma_destination::View;
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub use dialogue::ClaudeDialogue;

use crate::agent_event::AgentEvent;
use crate::conversation::Conversation;
use crate::engine::{Assignment, EngineError, Launch, OutputReader};
use crate::installed::{Agent, Installed, write};
use crate::json_lines::{malformed, tool, typed};
use crate::origin::Origin;
use crate::package::{Build, Package};
use crate::prompt::told;
use crate::transcript::{ClaudeTranscript, TranscriptReader};

/// The engine's name.
pub const NAME: &str = "claude";

/// Its package.
pub const PACKAGE: Package = Package {
    origin: Origin::Npm,
    name: "@anthropic-ai/claude-code",
    version: "2.1.325",
    license: "SEE LICENSE IN README.md",
    identity: "{} (Claude Code)",
    on_x86_64: Build::native("node_modules/@anthropic-ai/claude-code-linux-x64/claude"),
    on_aarch64: Build::native("node_modules/@anthropic-ai/claude-code-linux-arm64/claude"),
};

/// Its own directory and its settings, in the engine directory.
const HOME: &str = "claude";
const SETTINGS: &str = "claude/settings.json";

/// The tools for files and commands, without those that start other agents, wait for a time or use the network.
const TOOLS: &str = "Bash,Edit,NotebookEdit,Read,Write";

/// The variables for auxiliary models; all are set to the contract's model.
const MODELS: [&str; 6] = [
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
];

/// Disables reports, self-updates and long retries. In a sandbox it may run as root.
const SWITCHES: [(&str, &str); 7] = [
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("CLAUDE_CODE_MAX_RETRIES", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_BUG_COMMAND", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("IS_SANDBOX", "1"),
];

/// The engine `claude`.
pub(crate) enum Claude {}

impl Agent for Claude {
    const PACKAGE: Package = PACKAGE;
    const ENDPOINT: Endpoint = Endpoint::Messages;
    const SESSIONS: &'static [&'static str] = &["claude/projects"];
    const CAPABILITIES: Capabilities = Capabilities {
        resume: Support::Native,
        structured_events: Support::Native,
        acp: Support::Unsupported,
        tool_hooks: Support::Native,
        mcp: Support::Unsupported,
        reviewer: Support::Unsupported,
    };

    fn prepare(
        installed: &Installed,
        assignment: &Assignment<'_>,
        engine_dir: &Path,
        view: &View,
    ) -> Result<(), EngineError> {
        let (model, _) = installed.way(assignment, view)?;
        let env: Map<String, Value> = MODELS.iter().map(|name| ((*name).to_owned(), model.into())).collect();
        let settings = json!({ "model": model, "env": env, "includeCoAuthoredBy": false });
        write(engine_dir, HOME, SETTINGS, &settings.to_string())
    }

    fn launch(
        installed: &Installed,
        assignment: &Assignment<'_>,
        view: &View,
    ) -> Result<Launch, EngineError> {
        let (Some(engine_dir), Some(port)) = (&view.engine_dir, view.router_port) else {
            return Err(EngineError::NoEngineDirectory(installed.name.clone()));
        };
        let mut argv = installed.command()?;
        let words = [
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
            // It runs in herma's sandbox, and no person could answer a question.
            "--dangerously-skip-permissions",
            // Ignores the project's own settings, hooks and servers.
            "--setting-sources",
            "user",
            "--strict-mcp-config",
            "--no-chrome",
            "--tools",
            TOOLS,
        ];
        argv.extend(words.map(Into::into));
        if let Some(resume) = assignment.resume {
            argv.extend(["--resume".into(), resume.session.to_string().into()]);
        }
        let home = engine_dir.join(HOME).display().to_string();
        let mut env = vec![
            ("CLAUDE_CONFIG_DIR".to_owned(), home),
            ("ANTHROPIC_BASE_URL".to_owned(), format!("http://127.0.0.1:{port}")),
        ];
        env.extend(SWITCHES.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Ok(Launch { argv, env, token: Some("ANTHROPIC_API_KEY".into()), ..Launch::default() })
    }

    fn conversation(assignment: &Assignment<'_>) -> Option<Box<dyn Conversation>> {
        Some(Box::new(ClaudeDialogue::new(told(assignment))))
    }

    fn reader() -> Box<dyn OutputReader> {
        Box::new(ClaudeReader)
    }

    fn transcript() -> Box<dyn TranscriptReader> {
        Box::new(ClaudeTranscript)
    }
}

/// Parses `--output-format stream-json`: one JSON object per line.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClaudeReader;

#[derive(Deserialize)]
struct ClaudeInit {
    subtype: String,
    session_id: Option<String>,
    error_status: Option<u64>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Assistant {
    message: ClaudeTurn,
}

#[derive(Deserialize)]
struct ClaudeTurn {
    content: Vec<ClaudeBlock>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ClaudeBlock {
    Text {
        text: String,
    },
    ToolUse {
        name: String,
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct ClaudeResult {
    is_error: bool,
    #[serde(default)]
    subtype: String,
    usage: Option<ClaudeUsage>,
}

#[derive(Deserialize)]
struct ClaudeUsage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

impl OutputReader for ClaudeReader {
    fn line(&mut self, line: &[u8]) -> Option<AgentEvent> {
        let (kind, text) = typed(line)?;
        let read = match kind.as_str() {
            "system" => serde_json::from_str(&text).map(of_system),
            "assistant" => serde_json::from_str(&text).map(of_assistant),
            "user" => Ok(AgentEvent::NOTHING),
            "result" => serde_json::from_str(&text).map(of_result),
            _ => return None,
        };
        Some(read.unwrap_or_else(|error| malformed(&error)))
    }
}

fn of_system(line: ClaudeInit) -> AgentEvent {
    match (line.subtype.as_str(), line.session_id) {
        ("init", Some(session)) => AgentEvent::Session(session),
        ("api_retry", _) => {
            let status =
                line.error_status.map_or_else(|| "no status".to_owned(), |status| status.to_string());
            AgentEvent::Message(format!("error: {status}: {}", line.error.unwrap_or_default()))
        }
        _ => AgentEvent::NOTHING,
    }
}

fn of_assistant(line: Assistant) -> AgentEvent {
    let said = |block| match block {
        ClaudeBlock::Text { text } => Some(AgentEvent::Message(text)),
        ClaudeBlock::ToolUse { name, input } => Some(tool(&name, &input)),
        ClaudeBlock::Other => None,
    };
    AgentEvent::All(line.message.content.into_iter().filter_map(said).collect())
}

/// `subtype` is `success` on errors too; `is_error` decides.
fn of_result(line: ClaudeResult) -> AgentEvent {
    let failed = line.is_error || line.subtype.starts_with("error");
    let mut said = Vec::new();
    said.extend(
        line.usage.map(|usage| AgentEvent::Used { input: usage.input_tokens, output: usage.output_tokens }),
    );
    said.push(AgentEvent::Result(if failed { EngineResult::Failed } else { EngineResult::Completed }));
    AgentEvent::All(said)
}
