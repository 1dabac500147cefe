//! The engine `codex`: the Codex CLI of `OpenAI`, driven by `codex exec --json` with a configuration of its own.

use std::collections::VecDeque;
use std::path::Path;

use herma_core::capability::{Capabilities, Support};
use herma_core::engine::EngineResult;
use herma_core::model_call::Endpoint;
use herma_destination::View;
use serde::Deserialize;
use serde_json::json;

use crate::agent_event::AgentEvent;
use crate::engine::{Assignment, EngineError, Launch, OutputReader};
use crate::env::TOKEN_VARIABLE;
use crate::hook::HOOK_SECONDS;
use crate::installed::{Agent, Installed, write};
use crate::json_lines::{malformed, typed};
use crate::origin::Origin;
use crate::package::{Build, Package};
use crate::prompt::told;
use crate::transcript::{CodexTranscript, TranscriptReader};

/// The engine's name.
pub const NAME: &str = "codex";

/// Its package.
pub const PACKAGE: Package = Package {
    origin: Origin::Npm,
    name: "@openai/codex",
    version: "0.166.0",
    license: "Apache-2.0",
    identity: "codex-cli {}",
    on_x86_64: Build::native(
        "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
    ),
    on_aarch64: Build::native(
        "node_modules/@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex",
    ),
};

/// Its own directory and its prompt, in the engine directory.
const HOME: &str = "codex";
const CONFIG: &str = "codex/config.toml";
const HOOKS: &str = "codex/hooks.json";
const PROMPT: &str = "prompt.md";

/// The number of started calls that are remembered: enough for all concurrent ones.
const MAX_OPEN_CALLS: usize = 256;

/// Disables everything that uses the network, starts by itself, or asks a person.
const OFF: [&str; 15] = [
    "apps",
    "browser_use",
    "computer_use",
    "daemon_auto_start",
    "goals",
    "image_generation",
    "multi_agent",
    "plugin_discovery_prefetch",
    "plugins",
    "remote_plugin",
    "shell_snapshot",
    "skill_mcp_dependency_install",
    "skill_search",
    "tool_suggest",
    "unbounded_connection_retries",
];

/// The engine `codex`.
pub(crate) enum Codex {}

impl Agent for Codex {
    const PACKAGE: Package = PACKAGE;
    const ENDPOINT: Endpoint = Endpoint::Responses;
    const SESSIONS: &'static [&'static str] = &["codex/sessions"];
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
        let (model, port) = installed.way(assignment, view)?;
        let config = config(model, port, &view.workspace.display().to_string());
        write(engine_dir, HOME, CONFIG, &config)?;
        // Without a matcher it applies to every tool.
        let hook = json!({ "type": "command", "command": installed.hook(view)?, "timeout": HOOK_SECONDS });
        let hooks = json!({ "hooks": { "PreToolUse": [{ "hooks": [hook] }] } });
        write(engine_dir, HOME, HOOKS, &hooks.to_string())?;
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
        // Its own sandbox would need namespaces, which cannot be created inside: herma's sandbox surrounds it
        // already.
        let words = [
            "exec",
            "--json",
            "--strict-config",
            "--dangerously-bypass-approvals-and-sandbox",
            // It silently skips a hook that was not reviewed. Its only hook is herma's.
            "--dangerously-bypass-hook-trust",
            "--cd",
        ];
        argv.extend(words.map(Into::into));
        argv.push(view.workspace.clone().into_os_string());
        if let Some(resume) = assignment.resume {
            argv.extend(["resume".into(), resume.session.to_string().into()]);
        }
        argv.push("-".into());
        let home = engine_dir.join(HOME).display().to_string();
        Ok(Launch {
            argv,
            env: vec![("CODEX_HOME".to_owned(), home)],
            stdin: Some(PROMPT),
            ..Launch::default()
        })
    }

    fn reader() -> Box<dyn OutputReader> {
        Box::new(CodexReader::default())
    }

    fn transcript() -> Box<dyn TranscriptReader> {
        Box::new(CodexTranscript::default())
    }
}

/// Its configuration. An untrusted project cannot bring servers, hooks or settings of its own; set explicitly,
/// because it otherwise trusts its working directory and stores that.
fn config(model: &str, port: u16, workspace: &str) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let off = OFF.map(|feature| format!("{feature} = false")).join("\n");
    format!(
        r#"model = {model}
model_provider = "herma"
web_search = "disabled"
check_for_update_on_startup = false
cli_auth_credentials_store = "file"

[model_providers.herma]
name = "herma"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "{TOKEN_VARIABLE}"
request_max_retries = 1
stream_max_retries = 1

[analytics]
enabled = false

[feedback]
enabled = false

[history]
persistence = "none"

[otel]
exporter = "none"

[features]
{off}

[projects.{workspace}]
trust_level = "untrusted"
"#,
        model = quoted(model),
        workspace = quoted(workspace),
    )
}

/// Parses `codex exec --json`: one JSON object per line.
#[derive(Debug, Default)]
pub struct CodexReader {
    /// The ids of the calls that have started.
    begun: VecDeque<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum CodexEvent {
    #[serde(rename = "thread.started")]
    ThreadStarted { thread_id: String },
    #[serde(rename = "turn.started")]
    TurnStarted {},
    #[serde(rename = "item.started")]
    ItemStarted { item: CodexItem },
    #[serde(rename = "item.updated")]
    ItemUpdated { item: CodexItem },
    #[serde(rename = "item.completed")]
    ItemCompleted { item: CodexItem },
    #[serde(rename = "turn.completed")]
    TurnCompleted { usage: CodexUsage },
    #[serde(rename = "turn.failed")]
    TurnFailed { error: CodexError },
    #[serde(rename = "error")]
    Error { message: String },
}

/// The known types, to tell a line of another version from a malformed line.
const TYPES: [&str; 8] = [
    "thread.started",
    "turn.started",
    "item.started",
    "item.updated",
    "item.completed",
    "turn.completed",
    "turn.failed",
    "error",
];

#[derive(Deserialize)]
struct CodexUsage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

#[derive(Deserialize)]
struct CodexError {
    message: String,
}

#[derive(Deserialize)]
struct CodexItem {
    #[serde(default)]
    id: String,
    #[serde(flatten)]
    what: CodexItemKind,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CodexItemKind {
    AgentMessage {
        text: String,
    },
    Error {
        message: String,
    },
    CommandExecution {
        command: String,
    },
    FileChange {
        changes: Vec<CodexFileChange>,
    },
    McpToolCall {
        server: String,
        tool: String,
    },
    WebSearch {
        #[serde(default)]
        query: String,
    },
    TodoList {
        items: Vec<Todo>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct CodexFileChange {
    path: String,
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
struct Todo {
    text: String,
}

impl OutputReader for CodexReader {
    fn line(&mut self, line: &[u8]) -> Option<AgentEvent> {
        let (kind, text) = typed(line)?;
        if !TYPES.contains(&kind.as_str()) {
            return None;
        }
        Some(match serde_json::from_str::<CodexEvent>(&text) {
            Ok(line) => self.read(line),
            Err(error) => malformed(&error),
        })
    }
}

impl CodexReader {
    fn read(&mut self, line: CodexEvent) -> AgentEvent {
        match line {
            CodexEvent::ThreadStarted { thread_id } => AgentEvent::Session(thread_id),
            CodexEvent::TurnStarted {} => AgentEvent::NOTHING,
            CodexEvent::ItemStarted { item } => {
                if self.begun.len() == MAX_OPEN_CALLS {
                    self.begun.pop_front();
                }
                self.begun.push_back(item.id);
                of_item(item.what)
            }
            CodexEvent::ItemUpdated { item } => match item.what {
                CodexItemKind::TodoList { .. } => of_item(item.what),
                _ => AgentEvent::NOTHING,
            },
            // A call that was reported at its start is not reported again at its end.
            CodexEvent::ItemCompleted { item } => match self.begun.iter().position(|begun| *begun == item.id)
            {
                Some(at) if !item.id.is_empty() => {
                    self.begun.remove(at);
                    match item.what {
                        CodexItemKind::AgentMessage { .. } | CodexItemKind::Error { .. } => {
                            of_item(item.what)
                        }
                        _ => AgentEvent::NOTHING,
                    }
                }
                _ => of_item(item.what),
            },
            CodexEvent::TurnCompleted { usage } => AgentEvent::All(vec![
                AgentEvent::Used { input: usage.input_tokens, output: usage.output_tokens },
                AgentEvent::Result(EngineResult::Completed),
            ]),
            CodexEvent::TurnFailed { error } => AgentEvent::All(vec![
                AgentEvent::Message(format!("failed: {}", error.message)),
                AgentEvent::Result(EngineResult::Failed),
            ]),
            CodexEvent::Error { message } => AgentEvent::Message(format!("error: {message}")),
        }
    }
}

fn of_item(what: CodexItemKind) -> AgentEvent {
    match what {
        CodexItemKind::AgentMessage { text } => AgentEvent::Message(text),
        CodexItemKind::Error { message } => AgentEvent::Message(format!("error: {message}")),
        CodexItemKind::CommandExecution { command } => AgentEvent::Tool { name: "shell".to_owned(), command },
        CodexItemKind::FileChange { changes } => {
            let paths = changes.into_iter().map(|change| format!("{} {}", change.kind, change.path));
            AgentEvent::Tool { name: "edit".to_owned(), command: paths.collect::<Vec<_>>().join("\n") }
        }
        CodexItemKind::McpToolCall { server, tool } => {
            AgentEvent::Tool { name: "mcp".to_owned(), command: format!("{server}.{tool}") }
        }
        CodexItemKind::WebSearch { query } => {
            AgentEvent::Tool { name: "web_search".to_owned(), command: query }
        }
        CodexItemKind::TodoList { items } => {
            AgentEvent::Plan(items.into_iter().map(|todo| todo.text).collect())
        }
        CodexItemKind::Other => AgentEvent::NOTHING,
    }
}
