//! The engine `opencode`: `OpenCode`, driven by `opencode run --format json` with directories of its own.

use std::fs;
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
use crate::transcript::{OpenCodeTranscript, TranscriptReader};

/// The engine's name.
pub const NAME: &str = "opencode";

/// Its package.
pub const PACKAGE: Package = Package {
    origin: Origin::Npm,
    name: "opencode-ai",
    version: "1.18.33",
    license: "MIT",
    identity: "{}",
    on_x86_64: Build::native("node_modules/opencode-linux-x64/bin/opencode"),
    on_aarch64: Build::native("node_modules/opencode-linux-arm64/bin/opencode"),
};

/// Its own directory, its configuration and its prompt, in the engine directory.
const HOME: &str = "opencode";
const CONFIG: &str = "opencode/opencode.json";
const PLUG_INS: &str = "opencode/config/opencode/plugins";
const PLUG_IN: &str = "opencode/config/opencode/plugins/herma.js";
const PROMPT: &str = "prompt.md";

/// The plug-in that asks before each tool call.
const ASKS: &str = include_str!("opencode.js");

/// Marks the dependencies of plug-ins as installed: otherwise it queries a registry at each start.
const MODULES: &str = "opencode/config/opencode/node_modules";
const LOCK: &str = "opencode/config/opencode/package-lock.json";

/// Its XDG directories, each below its home.
const PLACES: [(&str, &str); 4] = [
    ("XDG_CONFIG_HOME", "config"),
    ("XDG_DATA_HOME", "data"),
    ("XDG_CACHE_HOME", "cache"),
    ("XDG_STATE_HOME", "state"),
];

/// Disables downloads, sharing, and files of the project and of other agents.
const OFF: [&str; 8] = [
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_CLAUDE_CODE",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_EXTERNAL_SKILLS",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_MODELS_FETCH",
    "OPENCODE_DISABLE_PROJECT_CONFIG",
    "OPENCODE_DISABLE_SHARE",
];

/// The engine `opencode`.
pub(crate) enum OpenCode {}

impl Agent for OpenCode {
    const PACKAGE: Package = PACKAGE;
    const ENDPOINT: Endpoint = Endpoint::Chat;
    const SESSIONS: &'static [&'static str] = &["opencode/data"];
    // It runs the plug-ins there, and no option disables that.
    const HIDDEN: &'static [&'static str] = &[".opencode"];
    const CAPABILITIES: Capabilities = Capabilities {
        resume: Support::Native,
        structured_events: Support::Native,
        // It has ACP too, in another command than the one that herma runs.
        acp: Support::Unsupported,
        // A plug-in of herma's asks for it.
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
        let own = format!("{NAME_OF_PROVIDER}/{model}");
        let config = json!({
            "model": own,
            "small_model": own,
            "enabled_providers": [NAME_OF_PROVIDER],
            "share": "disabled",
            "autoupdate": false,
            "snapshot": false,
            "lsp": false,
            "formatter": false,
            "permission": {
                "*": "allow", "question": "deny", "skill": "deny", "task": "deny", "webfetch": "deny",
                "websearch": "deny",
            },
            "provider": { NAME_OF_PROVIDER: {
                "npm": "@ai-sdk/openai-compatible",
                "name": NAME_OF_PROVIDER,
                "options": {
                    "baseURL": format!("http://127.0.0.1:{port}/v1"),
                    "apiKey": format!("{{env:{TOKEN_VARIABLE}}}"),
                },
                "models": { model: { "name": model } },
            } },
        });
        write(engine_dir, HOME, CONFIG, &config.to_string())?;
        for dir in [MODULES, PLUG_INS] {
            fs::create_dir_all(engine_dir.join(dir))
                .map_err(|source| EngineError::Write { file: dir, source })?;
        }
        write(engine_dir, HOME, PLUG_IN, &installed.hook_script(ASKS, view)?)?;
        let lock =
            json!({ "packages": { "": { "dependencies": { "@opencode-ai/plugin": PACKAGE.version } } } });
        write(engine_dir, HOME, LOCK, &lock.to_string())?;
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
        argv.extend(["run", "--format", "json"].map(Into::into));
        match assignment.resume {
            Some(resume) => argv.extend(["--session".into(), resume.session.to_string().into()]),
            // With a title it does not ask its model for one.
            None => argv.extend(["--title", "contract"].map(Into::into)),
        }
        let at = |path: &str| engine_dir.join(HOME).join(path).display().to_string();
        let mut env = vec![("OPENCODE_CONFIG".to_owned(), engine_dir.join(CONFIG).display().to_string())];
        env.extend(PLACES.map(|(name, dir)| (name.to_owned(), at(dir))));
        env.extend(OFF.map(|name| (name.to_owned(), "1".to_owned())));
        Ok(Launch { argv, env, stdin: Some(PROMPT), ..Launch::default() })
    }

    fn reader() -> Box<dyn OutputReader> {
        Box::new(OpenCodeReader::default())
    }

    fn transcript() -> Box<dyn TranscriptReader> {
        Box::new(OpenCodeTranscript)
    }
}

/// The name of the router in its configuration.
const NAME_OF_PROVIDER: &str = "herma";

/// Parses `opencode run --format json`: one JSON object per line.
#[derive(Debug, Default)]
pub struct OpenCodeReader {
    /// Whether its session was reported.
    began: bool,
}

#[derive(Deserialize)]
struct OpenCodeEvent {
    #[serde(rename = "sessionID")]
    session: String,
    part: Option<OpenCodePart>,
    error: Option<OpenCodeError>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum OpenCodePart {
    Text {
        text: String,
    },
    Tool {
        tool: String,
        state: OpenCodeToolState,
    },
    StepFinish {
        reason: String,
        #[serde(default)]
        tokens: Tokens,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct OpenCodeToolState {
    #[serde(default)]
    input: Value,
}

#[derive(Default, Deserialize)]
struct Tokens {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
}

#[derive(Deserialize)]
struct OpenCodeError {
    name: String,
    data: Option<Detail>,
}

#[derive(Deserialize)]
struct Detail {
    message: Option<String>,
}

/// The known types, to tell a line of another version from a malformed line.
const TYPES: [&str; 6] = ["step_start", "step_finish", "text", "reasoning", "tool_use", "error"];

impl OutputReader for OpenCodeReader {
    fn line(&mut self, line: &[u8]) -> Option<AgentEvent> {
        let (kind, text) = typed(line)?;
        if !TYPES.contains(&kind.as_str()) {
            return None;
        }
        Some(match serde_json::from_str::<OpenCodeEvent>(&text) {
            Ok(line) => self.read(&kind, line),
            Err(error) => malformed(&error),
        })
    }
}

impl OpenCodeReader {
    fn read(&mut self, kind: &str, line: OpenCodeEvent) -> AgentEvent {
        let mut said = Vec::new();
        if !std::mem::replace(&mut self.began, true) {
            said.push(AgentEvent::Session(line.session));
        }
        match (kind, line.part, line.error) {
            ("error", _, Some(OpenCodeError { name, data })) => {
                let detail = data.and_then(|data| data.message).unwrap_or_default();
                said.push(AgentEvent::Message(format!("error: {name}: {detail}")));
                said.push(AgentEvent::Result(EngineResult::Failed));
            }
            ("text", Some(OpenCodePart::Text { text }), _) => said.push(AgentEvent::Message(text)),
            ("tool_use", Some(OpenCodePart::Tool { tool: name, state }), _) => {
                said.push(tool(&name, &state.input));
            }
            ("step_finish", Some(OpenCodePart::StepFinish { reason, tokens }), _) => {
                said.push(AgentEvent::Used { input: tokens.input, output: tokens.output });
                said.extend(result(&reason));
            }
            ("step_start" | "reasoning", ..) => {}
            // Its content does not match its type.
            _ => return AgentEvent::Malformed(format!("a line of the type `{kind}` holds something else")),
        }
        AgentEvent::All(said)
    }
}

/// A step that ends with tool calls is followed by another one.
fn result(reason: &str) -> Option<AgentEvent> {
    match reason {
        "tool-calls" => None,
        "stop" => Some(AgentEvent::Result(EngineResult::Completed)),
        _ => Some(AgentEvent::Result(EngineResult::Failed)),
    }
}
