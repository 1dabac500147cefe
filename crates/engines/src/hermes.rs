//! The engine `hermes`: Hermes Agent, driven by its Python interface with a directory of its own.

use std::ffi::OsString;
use std::path::Path;

use herma_core::capability::{Capabilities, Support};
use herma_core::engine::EngineResult;
use herma_core::model_call::Endpoint;
use herma_destination::View;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent_event::AgentEvent;
use crate::engine::{Assignment, EngineError, Launch, OutputReader};
use crate::installed::{Agent, Installed, inside, write};
use crate::json_lines::{malformed, tool, typed};
use crate::origin::{Origin, PYTHON_LIBRARY, PYTHON_PACKAGES, PYTHONS};
use crate::package::{Build, Package};
use crate::prompt::told;
use crate::transcript::{HermesTranscript, TranscriptReader};

/// The engine's name.
pub const NAME: &str = "hermes";

/// Its package. It is a Python package, so an interpreter is copied beside it.
pub const PACKAGE: Package = Package {
    origin: Origin::PyPi { pythons: PYTHONS },
    name: "hermes-agent",
    version: "0.19.0",
    license: "MIT",
    identity: "{}",
    on_x86_64: Build::native("python/bin/python3"),
    on_aarch64: Build::native("python/bin/python3"),
};

/// The script that starts it and reports its events.
const STARTS: &str = include_str!("hermes.py");

/// Its own directory, its configuration, what starts it and its prompt, in the engine directory.
const HOME: &str = "hermes";
const CONFIG: &str = "hermes/config.yaml";
const SCRIPT: &str = "hermes/start.py";
const PROMPT: &str = "prompt.md";

/// The context window that it assumes. Set, because it otherwise queries other hosts for it.
const CONTEXT: u32 = 200_000;

/// Its tool for commands.
const SHELL: &str = "terminal";

/// The engine `hermes`.
pub(crate) enum Hermes {}

impl Agent for Hermes {
    const PACKAGE: Package = PACKAGE;
    const ENDPOINT: Endpoint = Endpoint::Chat;
    const SESSIONS: &'static [&'static str] = &["hermes/conversations"];
    const CAPABILITIES: Capabilities = Capabilities {
        // The start script keeps the conversation, gets its events by callbacks, and asks for permission.
        resume: Support::Translated,
        structured_events: Support::Translated,
        // It has ACP too, in another command than the one that herma runs.
        acp: Support::Unsupported,
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
        // JSON is valid YAML.
        let config = json!({
            "model": {
                "default": model,
                "provider": "custom",
                "base_url": format!("http://127.0.0.1:{port}/v1"),
                "context_length": CONTEXT,
            },
            "fallback_providers": [],
            // After its last message it would let its model check its files again. herma checks them itself.
            "agent": { "api_max_retries": 1, "verify_on_stop": false },
            "approvals": { "mode": "off" },
            "checkpoints": { "enabled": false },
            "hooks": {},
            "mcp_servers": {},
            "plugins": { "enabled": [] },
            "security": { "allow_lazy_installs": false, "tirith_enabled": false },
        });
        write(engine_dir, HOME, CONFIG, &config.to_string())?;
        write(engine_dir, HOME, SCRIPT, STARTS)?;
        write(engine_dir, HOME, PROMPT, &told(assignment))
    }

    fn identify(installed: &Installed) -> Result<Launch, EngineError> {
        // Its `--version` prints several lines and looks for updates.
        let ask =
            "import sys; sys.path.insert(0, sys.argv[1]); import hermes_cli; print(hermes_cli.__version__)";
        python(installed, ["-c".into(), ask.into()])
    }

    fn launch(
        installed: &Installed,
        assignment: &Assignment<'_>,
        view: &View,
    ) -> Result<Launch, EngineError> {
        let Some(engine_dir) = &view.engine_dir else {
            return Err(EngineError::NoEngineDirectory(installed.name.clone()));
        };
        let Some(socket) = &view.governance else {
            return Err(EngineError::NoHook(installed.name.clone()));
        };
        let words = [engine_dir.join(SCRIPT), view.herma.clone(), socket.clone()];
        let mut launch = python(installed, words.map(Into::into))?;
        launch.argv.extend(assignment.resume.map(|resume| resume.session.to_string().into()));
        let home = engine_dir.join(HOME).display().to_string();
        let own = [
            ("HERMES_HOME", home.as_str()),
            ("HERMES_DISABLE_LAZY_INSTALLS", "1"),
            ("HERMES_YOLO_MODE", "1"),
        ];
        launch.env.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Ok(Launch { stdin: Some(PROMPT), ..launch })
    }

    fn reader() -> Box<dyn OutputReader> {
        Box::new(HermesReader)
    }

    fn transcript() -> Box<dyn TranscriptReader> {
        Box::new(HermesTranscript)
    }
}

/// Its own interpreter with these arguments and its package path, isolated so that no variable and no file of the
/// project changes the imports.
fn python<const N: usize>(installed: &Installed, words: [OsString; N]) -> Result<Launch, EngineError> {
    let mut argv = installed.command()?;
    argv.extend(["-I", "-B"].map(Into::into));
    argv.extend(words);
    argv.push(inside(PYTHON_PACKAGES).into_os_string());
    // The library directory of an interpreter that has one.
    let library = inside(PYTHON_LIBRARY).display().to_string();
    Ok(Launch { argv, env: vec![("LD_LIBRARY_PATH".to_owned(), library)], ..Launch::default() })
}

/// Parses the output of `hermes.py`: one JSON object per line.
#[derive(Debug)]
pub struct HermesReader;

#[derive(Deserialize)]
struct HermesSession {
    id: String,
}

#[derive(Deserialize)]
struct HermesMessage {
    text: String,
}

#[derive(Deserialize)]
struct HermesToolCall {
    name: String,
    #[serde(default)]
    arguments: Value,
}

#[derive(Deserialize)]
struct HermesEnd {
    completed: bool,
    error: Option<String>,
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

impl OutputReader for HermesReader {
    fn line(&mut self, line: &[u8]) -> Option<AgentEvent> {
        let (kind, text) = typed(line)?;
        let read = match kind.as_str() {
            "session" => serde_json::from_str(&text).map(|HermesSession { id }| AgentEvent::Session(id)),
            "message" => serde_json::from_str(&text).map(|HermesMessage { text }| AgentEvent::Message(text)),
            "tool" => serde_json::from_str(&text).map(call),
            // Only the transcript shows it.
            "tool_result" => Ok(AgentEvent::NOTHING),
            "result" => serde_json::from_str(&text).map(ended),
            _ => return None,
        };
        Some(read.unwrap_or_else(|error| malformed(&error)))
    }
}

fn call(HermesToolCall { name, arguments }: HermesToolCall) -> AgentEvent {
    tool(if name == SHELL { "bash" } else { &name }, &arguments)
}

fn ended(ended: HermesEnd) -> AgentEvent {
    // A reported error outweighs a reported completion.
    let well = ended.completed && ended.error.is_none();
    let error = ended.error.map(|error| AgentEvent::Message(format!("error: {error}")));
    let used = AgentEvent::Used { input: ended.input_tokens, output: ended.output_tokens };
    let result = AgentEvent::Result(if well { EngineResult::Completed } else { EngineResult::Failed });
    AgentEvent::All(error.into_iter().chain([used, result]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::TOKEN_VARIABLE;

    #[test]
    fn the_start_script_reads_the_token_variable() {
        assert!(STARTS.contains(&format!("os.environ[\"{TOKEN_VARIABLE}\"]")));
    }
}
