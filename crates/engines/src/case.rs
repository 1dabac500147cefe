//! The engine `case`: `WorkOS` Case, driven by `ca run --task FILE --mode unattended` with a data directory of its
//! own. It is in no registry: the operator provides the program.

use std::fs;
use std::path::{Path, PathBuf};

use herma_core::Digest;
use herma_core::capability::{Capabilities, Support};
use herma_core::engine::{EngineName, EngineResult};
use herma_core::model_call::Endpoint;
use herma_destination::{Mount, View};
use serde::Deserialize;
use serde_json::json;

use crate::agent_event::AgentEvent;
use crate::digest::ProgramDigest;
use crate::engine::{Assignment, Engine, EngineError, Launch, OutputReader};
use crate::prompt::prompt;
use crate::transcript::{CaseTranscript, TranscriptReader};

/// The engine's name.
pub const NAME: &str = "case";

/// The path of the program inside the destination, and its directory: its prompts tell its agents to call it by
/// name.
const INSIDE: &str = "/opt/herma-engine/ca";
const BIN: &str = "/opt/herma-engine";

/// Its identity. The version is not queried: some builds take the option for a task.
const IDENTITY: &str = "WorkOS Case";

/// The start of its help text, and words of it that no other program called `ca` has.
const USAGE: &str = "Usage: ca <command> [options]";
const COMMANDS: [&str; 2] = ["mark-manual-tested", "analyze-failure"];

/// Its paths in the engine directory: its data, its models, and its task, which is copied to the workspace.
const DATA: &str = "case/data";
const MODELS: &str = "case/models";
const TASK: &str = "case/task";

/// The id of the task, and of its project.
const ID: &str = "contract";
const PROJECT: &str = "workspace";

/// The variable in which it expects the provider's key, which is the run's token.
const TOKEN: &str = "OPENAI_API_KEY";

/// The prefix of its pipeline's lines in unattended mode.
const UNATTENDED: &str = "[unattended] ";

/// The only provider whose address it reads from its configuration.
const PROVIDER: &str = "openai";

/// Copies the task to the path where it is looked up, runs it, and prints how the pipeline ended: the exit code is
/// 0 also after a failure. This runs inside the sandbox, because `.case` in the workspace is untrusted: the result
/// of an earlier run of this task would be taken for that of this one.
const SCRIPT: &str = r#"
set -e
rm -rf .case/contract
mkdir -p .case/tasks/active
cp "$2"/* .case/tasks/active/
set +e
"$1" run --task "$PWD/.case/tasks/active/contract.task.json" --mode unattended
code=$?
cat .case/contract/events/run-*.jsonl 2>/dev/null | grep -F pipeline_end | tail -n 1
exit $code
"#;

/// The engine `case`. It runs the admitted program.
#[derive(Debug)]
pub struct Case {
    name: EngineName,
    program: Option<ProgramDigest>,
}

impl Case {
    /// The engine under its name; `program` is the admitted one, if any.
    #[must_use]
    pub fn new(name: EngineName, program: Option<PathBuf>) -> Self {
        Self { name, program: program.map(ProgramDigest::of) }
    }

    fn admitted(&self) -> Result<&ProgramDigest, EngineError> {
        self.program.as_ref().ok_or_else(|| EngineError::NoProgram { engine: self.name() })
    }
}

impl Engine for Case {
    fn name(&self) -> EngineName {
        self.name.clone()
    }

    fn version(&self) -> &'static str {
        if self.program.is_some() { "not asked" } else { "not installed" }
    }

    fn digest(&self) -> Result<Digest, EngineError> {
        self.admitted()?.take().map_err(|source| EngineError::Digest { engine: self.name(), source })
    }

    fn program(&self) -> Option<&Path> {
        self.program.as_ref().map(ProgramDigest::path)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: Support::Unsupported,
            // Only results and the end are parsed from its output: nothing tells of its tool calls.
            structured_events: Support::Unsupported,
            acp: Support::Unsupported,
            tool_hooks: Support::Unsupported,
            mcp: Support::Unsupported,
            reviewer: Support::Native,
        }
    }

    fn asks(&self) -> Option<Endpoint> {
        Some(Endpoint::Responses)
    }

    fn mounts(&self, program: &Path) -> Vec<Mount> {
        vec![Mount { host: program.to_owned(), inside: INSIDE.into() }]
    }

    fn identify(&self, view: &View) -> Option<Launch> {
        self.program()?;
        let data = view.engine_dir.as_ref()?.display().to_string();
        let env = vec![("CASE_DATA_DIR".to_owned(), data.clone()), ("HOME".to_owned(), data)];
        Some(Launch { argv: vec![INSIDE.into(), "--help".into()], env, ..Launch::default() })
    }

    fn identity(&self, output: &[u8]) -> Option<String> {
        let help = std::str::from_utf8(output).ok()?;
        let is_case = help.starts_with(USAGE) && COMMANDS.iter().all(|command| help.contains(command));
        is_case.then(|| IDENTITY.to_owned())
    }

    fn scratch_paths(&self) -> &[&str] {
        &[".case"]
    }

    fn prepare(
        &self,
        assignment: &Assignment<'_>,
        engine_dir: &Path,
        view: &View,
    ) -> Result<(), EngineError> {
        let terms = &assignment.contract.terms;
        let model = terms.model.as_ref().map(|choice| choice.model.as_str());
        let way = model.zip(view.router_port);
        let (model, port) = way.ok_or_else(|| EngineError::NoModel(self.name()))?;
        let config = json!({
            "version": 1,
            "projects": "./projects.json",
            "models": { "default": { "provider": PROVIDER, "model": model } },
        });
        let projects = json!({ "repos": [{
            "name": PROJECT,
            "path": view.workspace,
            "remote": "",
            "language": "unknown",
            "packageManager": "none",
            "type": "library",
            "commands": { "test": terms.verify.join(" && ") },
        }] });
        let base = format!("http://127.0.0.1:{port}/v1");
        // A model that is not in its catalogue needs an entry of its own. The key is the name of the variable.
        let models = json!({ "providers": { PROVIDER: {
            "baseUrl": base, "apiKey": TOKEN, "api": "openai-responses", "models": [{ "id": model }],
        } } });
        let task = json!({
            "id": ID, "status": "active", "created": "1970-01-01T00:00:00.000Z", "repo": PROJECT,
            "mode": "unattended", "profile": "standard", "agents": {}, "tested": false, "manualTested": false,
            "prUrl": null, "prNumber": null,
        });
        let files = [
            (DATA, "case/data/config.json", config.to_string()),
            (DATA, "case/data/projects.json", projects.to_string()),
            (MODELS, "case/models/models.json", models.to_string()),
            (TASK, "case/task/contract.task.json", task.to_string()),
            // Only its path is in the prompt: its agents read the file.
            (TASK, "case/task/contract.md", prompt(assignment.contract)),
        ];
        for (dir, file, text) in files {
            let write = || {
                fs::create_dir_all(engine_dir.join(dir))?;
                fs::write(engine_dir.join(file), text)
            };
            write().map_err(|source| EngineError::Write { file, source })?;
        }
        Ok(())
    }

    fn launch(&self, _: &Assignment<'_>, view: &View) -> Result<Launch, EngineError> {
        self.admitted()?;
        let Some(engine_dir) = &view.engine_dir else {
            return Err(EngineError::NoEngineDirectory(self.name()));
        };
        let at = |path: &str| engine_dir.join(path).display().to_string();
        let argv = ["/bin/sh", "-c", SCRIPT, "sh", INSIDE, &at(TASK)].map(Into::into).to_vec();
        let env = [
            ("CASE_DATA_DIR", at(DATA)),
            ("PI_CODING_AGENT_DIR", at(MODELS)),
            ("PI_OFFLINE", "1".to_owned()),
            // Python's cache files would be committed with the work.
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let token = Some(TOKEN.into());
        Ok(Launch { argv, env, token, path: vec![BIN.into()], ..Launch::default() })
    }

    fn reader(&self, _: Digest) -> Box<dyn OutputReader> {
        Box::new(CaseReader::default())
    }

    fn transcript(&self, _: &Assignment<'_>) -> Box<dyn TranscriptReader> {
        Box::new(CaseTranscript::default())
    }
}

/// The delimiters of an agent's result in its text.
const START: &str = "<<<AGENT_RESULT";
const END: &str = "AGENT_RESULT>>>";

/// The largest result that is kept.
const MAX_RESULT_BYTES: usize = 256 << 10;

/// Parses the output of `ca run`: messages, results of its agents between delimiters, and the end of the pipeline.
#[derive(Debug, Default)]
pub struct CaseReader {
    /// The result that has started and not ended.
    begun: Option<String>,
    /// Whether the last result reported success; `None` before the first.
    completed: Option<bool>,
}

#[derive(Deserialize)]
struct CaseAgentResult {
    status: String,
    #[serde(default)]
    summary: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PipelineEnd {
    outcome: String,
    failed_agent: Option<String>,
}

impl OutputReader for CaseReader {
    fn line(&mut self, line: &[u8]) -> Option<AgentEvent> {
        let text = String::from_utf8_lossy(line);
        if let Some(said) = self.envelope(&text) {
            return Some(said);
        }
        let text = text.trim();
        let text = text.strip_prefix(UNATTENDED).unwrap_or(text);
        if text == "Pipeline completed successfully." {
            return Some(AgentEvent::Result(self.result()));
        }
        if let Some(rest) = text.strip_prefix("Pipeline failed at ") {
            let agent = rest.split(' ').next().unwrap_or_default();
            return Some(ended(text, Some(agent)));
        }
        if text.starts_with("Fatal:") || text.starts_with("Error:") {
            return Some(ended(text, None));
        }
        if text.starts_with('{') && text.contains("pipeline_end") {
            let end: PipelineEnd = serde_json::from_str(text).ok()?;
            return Some(match end.outcome.as_str() {
                "completed" | "success" => AgentEvent::Result(self.result()),
                outcome => ended(&format!("the pipeline ended: {outcome}"), end.failed_agent.as_deref()),
            });
        }
        None
    }
}

impl CaseReader {
    /// The result of a pipeline that reports success: it trusts its agents, and is not trusted against them.
    fn result(&self) -> EngineResult {
        if self.completed == Some(false) { EngineResult::Failed } else { EngineResult::Completed }
    }

    /// Finds the delimiters: the last start counts, and the first end after it.
    fn envelope(&mut self, text: &str) -> Option<AgentEvent> {
        let mut rest = text;
        if let Some(at) = text.rfind(START) {
            rest = text.get(at + START.len()..).unwrap_or_default();
            self.begun = Some(String::new());
        }
        let begun = self.begun.as_mut()?;
        let (inside, ends) = rest.split_once(END).map_or((rest, false), |(inside, _)| (inside, true));
        begun.push_str(inside);
        begun.push('\n');
        if begun.len() > MAX_RESULT_BYTES {
            self.begun = None;
            return Some(AgentEvent::Malformed(format!("a result has more than {MAX_RESULT_BYTES} bytes")));
        }
        if !ends {
            // The text in between may also be the end of the pipeline, if the agent was cut off.
            return None;
        }
        let envelope = self.begun.take().unwrap_or_default();
        let Ok(CaseAgentResult { status, summary }) = serde_json::from_str(&envelope) else {
            self.completed = Some(false);
            return Some(AgentEvent::Message("a result of one of its agents cannot be read".to_owned()));
        };
        self.completed = Some(status == "completed");
        Some(AgentEvent::Message(format!("{status}: {summary}")))
    }
}

/// The end of a failed pipeline; a negative review is a rejection.
fn ended(text: &str, agent: Option<&str>) -> AgentEvent {
    let result = if agent == Some("reviewer") { EngineResult::Rejected } else { EngineResult::Failed };
    AgentEvent::All(vec![AgentEvent::Message(text.to_owned()), AgentEvent::Result(result)])
}
