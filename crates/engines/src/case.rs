//! The engine `case`: `WorkOS` Case, driven by `ca run --task FILE --mode unattended` with a data directory of its own. It is on
//! no registry: a person brings the program.

use std::fs;
use std::path::{Path, PathBuf};

use herma_core::Digest;
use herma_core::capability::{Capabilities, Support};
use herma_core::engine::{EngineName, EngineResult};
use herma_core::model_call::Door;
use herma_destination::{Mount, View};
use serde::Deserialize;
use serde_json::json;

use crate::digest::ProgramDigest;
use crate::engine::{Assignment, Engine, EngineError, Launch, OutputReader, Said};
use crate::prompt::prompt;

/// The engine's name.
pub const NAME: &str = "case";

/// Where the program appears inside the destination, and its directory: its prompts tell its agents to call it by name.
const INSIDE: &str = "/opt/herma-engine/ca";
const BIN: &str = "/opt/herma-engine";

/// What it says that it is. Its version is not asked for: some builds take the question for the order to work.
const IDENTITY: &str = "WorkOS Case";

/// How its help begins, and words of its help that no other program called `ca` has.
const USAGE: &str = "Usage: ca <command> [options]";
const COMMANDS: [&str; 2] = ["mark-manual-tested", "analyze-failure"];

/// What it finds in the engine directory: its data, its models, and its task, which is brought into the workspace.
const DATA: &str = "case/data";
const MODELS: &str = "case/models";
const TASK: &str = "case/task";

/// The task's name, and that of the project that it is about.
const ID: &str = "contract";
const PROJECT: &str = "workspace";

/// Where it looks for the provider's key, which is the run's token.
const TOKEN: &str = "OPENAI_API_KEY";

/// What it puts before the lines of its pipeline where nobody attends.
const UNATTENDED: &str = "[unattended] ";

/// The one provider whose address it takes from its configuration.
const PROVIDER: &str = "openai";

/// Brings the task to where it is looked for, runs it, and prints how the pipeline ended: the program's own exit code is 0
/// also where it failed. This is done inside the walls, because `.case` in the workspace may be anything: what the target
/// brought of another run of this task would be taken for the end of this one.
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

/// The engine `case`. What runs is the program that was admitted.
#[derive(Debug)]
pub struct Case {
    name: EngineName,
    program: Option<ProgramDigest>,
}

impl Case {
    /// The engine under its name; `program` is the one that was admitted, if one was.
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
            // Only results and the end are read of what it prints: nothing tells of its tool calls.
            structured_events: Support::Unsupported,
            acp: Support::Unsupported,
            tool_hooks: Support::Unsupported,
            mcp: Support::Unsupported,
            reviewer: Support::Native,
        }
    }

    fn asks(&self) -> Option<Door> {
        Some(Door::Responses)
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
        // A model that its catalogue does not know needs an entry of its own. The key is the name of the variable.
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
            // Only its path is in the prompt: its agents read it.
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
            // What the interpreter leaves behind would be committed with the work.
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let token = Some(TOKEN.into());
        Ok(Launch { argv, env, token, path: vec![BIN.into()], ..Launch::default() })
    }

    fn reader(&self, _: Digest) -> Box<dyn OutputReader> {
        Box::new(CaseReader::default())
    }
}

/// What stands before and after an agent's result in its text.
const START: &str = "<<<AGENT_RESULT";
const END: &str = "AGENT_RESULT>>>";

/// The most of a result that is held.
const MOST_ENVELOPE: usize = 256 << 10;

/// Reads what `ca run` prints: texts for people, results of its agents between two marks, and how the pipeline ended.
#[derive(Debug, Default)]
pub struct CaseReader {
    /// The result that has begun and not ended.
    begun: Option<String>,
    /// Whether the last result said that the work is done; nothing before the first.
    completed: Option<bool>,
}

#[derive(Deserialize)]
struct Envelope {
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
    fn line(&mut self, line: &[u8]) -> Option<Said> {
        let text = String::from_utf8_lossy(line);
        if let Some(said) = self.envelope(&text) {
            return Some(said);
        }
        let text = text.trim();
        let text = text.strip_prefix(UNATTENDED).unwrap_or(text);
        if text == "Pipeline completed successfully." {
            return Some(Said::Result(self.result()));
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
                "completed" | "success" => Said::Result(self.result()),
                outcome => ended(&format!("the pipeline ended: {outcome}"), end.failed_agent.as_deref()),
            });
        }
        None
    }
}

impl CaseReader {
    /// What a pipeline that says that it completed comes to: it believes its agents, and is not believed against them.
    fn result(&self) -> EngineResult {
        if self.completed == Some(false) { EngineResult::Failed } else { EngineResult::Completed }
    }

    /// Follows the marks: the last start counts, and the first end after it.
    fn envelope(&mut self, text: &str) -> Option<Said> {
        let mut rest = text;
        if let Some(at) = text.rfind(START) {
            rest = text.get(at + START.len()..).unwrap_or_default();
            self.begun = Some(String::new());
        }
        let begun = self.begun.as_mut()?;
        let (inside, ends) = rest.split_once(END).map_or((rest, false), |(inside, _)| (inside, true));
        begun.push_str(inside);
        begun.push('\n');
        if begun.len() > MOST_ENVELOPE {
            self.begun = None;
            return Some(Said::Malformed(format!("a result has more than {MOST_ENVELOPE} bytes")));
        }
        if !ends {
            // What is in between may also be the end of the pipeline, where the agent was cut off.
            return None;
        }
        let envelope = self.begun.take().unwrap_or_default();
        let Ok(Envelope { status, summary }) = serde_json::from_str(&envelope) else {
            self.completed = Some(false);
            return Some(Said::Message("a result of one of its agents cannot be read".to_owned()));
        };
        self.completed = Some(status == "completed");
        Some(Said::Message(format!("{status}: {summary}")))
    }
}

/// The end of a pipeline that failed; its reviewer's no is a rejection.
fn ended(text: &str, agent: Option<&str>) -> Said {
    let result = if agent == Some("reviewer") { EngineResult::Rejected } else { EngineResult::Failed };
    Said::All(vec![Said::Message(text.to_owned()), Said::Result(result)])
}
