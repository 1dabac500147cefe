//! The engine `acp`: any agent that speaks the Agent Client Protocol. The operator configures the agent and its
//! needs; each configured agent is an engine of its own, with its own digest, admission and proofs.

mod calls;
mod config;
mod conversation;
mod package;
mod wire;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use herma_core::Digest;
use herma_core::capability::{Capabilities, Support};
use herma_core::engine::EngineName;
use herma_core::model_call::Endpoint;
use herma_destination::{Mount, View};
use sha2::{Digest as _, Sha256};

pub use config::AcpAgent;
pub use conversation::AcpConversation;
pub use package::AcpPackage;

use self::config::filled;
use crate::agent_event::AgentEvent;
use crate::conversation::Conversation;
use crate::digest::ProgramDigest;
use crate::engine::{Assignment, Engine, EngineError, Launch, OutputReader};
use crate::installed::{INSIDE, inside, one_line};
use crate::origin::PYTHON_LIBRARY;
use crate::prompt::told;
use crate::source::Source;
use crate::transcript::{AcpTranscript, TranscriptReader};
use crate::tree::TreeDigest;

/// The engine's name, and the prefix of the engines of configured agents.
pub const NAME: &str = "acp";

/// The step to take if no agent is configured.
const UNCONFIGURED: &str = "describe an agent under `acp` in settings.yaml in herma's home";

/// The step to take if no package is configured for an agent.
const NO_PACKAGE: &str = "name its package in settings.yaml in herma's home, below the agent's name under `acp`: \
                          `package: { npm: NAME, version: 1.2.3 }`, or `pypi` for one of Python's; or admit a program that \
                          you have with `herma admit engine NAME --program FILE`";

/// The path inside of a program that is a single file.
const FILE: &str = "/opt/herma-engine/agent";

/// The agent's own directory in the engine directory.
const HOME: &str = "agent";

/// The engine of one ACP agent; without an agent it is only an entry in the list.
pub struct Acp {
    name: EngineName,
    agent: Option<AcpAgent>,
    program: Option<Program>,
    version: String,
    /// The paths of its sessions in the engine directory.
    sessions: Vec<String>,
}

/// The admitted program.
enum Program {
    File(ProgramDigest),
    Tree(TreeDigest),
}

/// One engine per configured agent, or one placeholder.
pub(crate) fn engines(agents: &BTreeMap<EngineName, AcpAgent>) -> Vec<(EngineName, Option<AcpAgent>)> {
    let named = agents.iter().filter_map(|(name, agent)| Some((engine_name(name)?, Some(agent.clone()))));
    let mut engines: Vec<_> = named.collect();
    if engines.is_empty() {
        engines.extend(NAME.parse().ok().map(|name| (name, None)));
    }
    engines
}

/// The engine name of a configured agent; `None` if it is too long.
#[must_use]
pub fn engine_name(agent: &EngineName) -> Option<EngineName> {
    format!("{NAME}-{agent}").parse().ok()
}

impl Acp {
    pub(crate) fn new(name: EngineName, agent: Option<AcpAgent>, program: Option<PathBuf>) -> Self {
        let version = version(agent.as_ref(), program.as_deref());
        let program = program.map(|path| {
            if path.is_dir() {
                Program::Tree(TreeDigest::of_agent(path))
            } else {
                Program::File(ProgramDigest::of(path))
            }
        });
        let sessions = agent.iter().flat_map(|agent| &agent.sessions);
        let sessions = sessions.map(|place| format!("{HOME}/{place}")).collect();
        Self { name, agent, program, version, sessions }
    }

    fn agent(&self) -> Result<&AcpAgent, EngineError> {
        self.agent
            .as_ref()
            .ok_or_else(|| EngineError::NotConfigured { engine: self.name.clone(), what: UNCONFIGURED })
    }

    /// The program's path inside.
    fn inside(&self) -> Result<OsString, EngineError> {
        match (self.agent()?, &self.program) {
            (_, None) => Err(self.nothing()),
            (_, Some(Program::File(_))) => Ok(FILE.into()),
            (AcpAgent { program: Some(program), .. }, Some(Program::Tree(_))) => {
                Ok(Path::new(INSIDE).join(program).into_os_string())
            }
            (AcpAgent { program: None, .. }, Some(Program::Tree(_))) => Err(EngineError::NotConfigured {
                engine: self.name.clone(),
                what: "say in settings.yaml which program of its tree runs, with `program`",
            }),
        }
    }

    /// The values of the placeholders in braces.
    fn words(
        &self,
        assignment: &Assignment<'_>,
        view: &View,
    ) -> Result<Vec<(&'static str, String)>, EngineError> {
        let Some(engine_dir) = &view.engine_dir else {
            return Err(EngineError::NoEngineDirectory(self.name.clone()));
        };
        let mut words = vec![
            ("home", engine_dir.join(HOME).display().to_string()),
            ("workspace", view.workspace.display().to_string()),
            ("tree", INSIDE.to_owned()),
        ];
        if self.agent()?.asks.is_some() {
            let model = assignment.contract.terms.model.as_ref().map(|choice| choice.model.as_str());
            let way = model.zip(view.router_port);
            let (model, port) = way.ok_or_else(|| EngineError::NoModel(self.name.clone()))?;
            let plain = |b: u8| b.is_ascii_alphanumeric() || b".:/@+_-".contains(&b);
            if !model.bytes().all(plain) {
                let (engine, model) = (self.name.clone(), model.to_owned());
                return Err(EngineError::ModelName { engine, model });
            }
            words.push(("model", model.to_owned()));
            words.push(("router", format!("http://127.0.0.1:{port}")));
        }
        Ok(words)
    }

    /// The error for a missing program.
    fn nothing(&self) -> EngineError {
        let engine = self.name.clone();
        if self.source().is_some() {
            EngineError::NotInstalled { engine }
        } else {
            EngineError::NoProgram { engine }
        }
    }

    /// The library directory of an interpreter in the tree. Derived from the tree, whose digest was admitted, and
    /// not from the package's settings, which can change.
    fn library(&self) -> Option<(String, String)> {
        let Some(Program::Tree(tree)) = &self.program else { return None };
        let there = tree.root().join(PYTHON_LIBRARY).is_dir();
        there.then(|| ("LD_LIBRARY_PATH".to_owned(), inside(PYTHON_LIBRARY).display().to_string()))
    }

    /// The digest of what runs, and of how it is started: the same program with other arguments is another engine.
    ///
    /// Which package it was installed from is not in it. Every byte that came of the package is in the digest of the tree,
    /// and the admission that a person signed names package and version. With it, writing down where an admitted agent
    /// comes from, or the version that is to be installed next, would take away the admission and the proofs of what runs
    /// unchanged.
    fn with_configuration(&self, program: Digest) -> Digest {
        let mut hasher = Sha256::new();
        hasher.update(b"herma.acp/v1\0");
        hasher.update(program.to_string());
        hasher.update(b"\0");
        hasher.update(serde_json::to_vec(&self.agent).unwrap_or_default());
        Digest::from_bytes(hasher.finalize().into())
    }
}

impl Engine for Acp {
    fn name(&self) -> EngineName {
        self.name.clone()
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn digest(&self) -> Result<Digest, EngineError> {
        self.agent()?;
        let taken = match &self.program {
            None => return Err(self.nothing()),
            Some(Program::File(file)) => file.take(),
            Some(Program::Tree(tree)) => tree.take(),
        };
        let taken = taken.map_err(|source| EngineError::Digest { engine: self.name.clone(), source })?;
        Ok(self.with_configuration(taken))
    }

    fn digest_over(&self, program: Digest) -> Digest {
        self.with_configuration(program)
    }

    fn unconfigured(&self) -> Option<&'static str> {
        self.agent.is_none().then_some(UNCONFIGURED)
    }

    fn program(&self) -> Option<&Path> {
        match self.program.as_ref()? {
            Program::File(file) => Some(file.path()),
            Program::Tree(tree) => Some(tree.root()),
        }
    }

    fn source(&self) -> Option<Source<'_>> {
        let agent = self.agent.as_ref()?;
        Some(agent.package.as_ref()?.source(agent.program.as_deref()?))
    }

    fn without_source(&self) -> Option<&'static str> {
        Some(if self.agent.is_some() { NO_PACKAGE } else { UNCONFIGURED })
    }

    fn asks(&self) -> Option<Endpoint> {
        self.agent.as_ref()?.asks
    }

    fn mounts(&self, program: &Path) -> Vec<Mount> {
        let inside = if matches!(self.program, Some(Program::Tree(_))) { INSIDE } else { FILE };
        vec![Mount { host: program.to_owned(), inside: inside.into() }]
    }

    fn identify(&self, _: &View) -> Option<Launch> {
        let asked = self.agent.as_ref()?.identity.iter().map(|word| filled(word, &[("tree", INSIDE)]).into());
        let argv = std::iter::once(self.inside().ok()?).chain(asked).collect();
        Some(Launch { argv, env: self.library().into_iter().collect(), ..Launch::default() })
    }

    fn identity(&self, output: &[u8]) -> Option<String> {
        one_line(output)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: if self.sessions.is_empty() { Support::Unsupported } else { Support::Native },
            structured_events: Support::Native,
            acp: Support::Native,
            // It asks only when it chooses to. Nothing of herma's makes it ask.
            tool_hooks: Support::Unsupported,
            // herma opens its session without any.
            mcp: Support::Unsupported,
            reviewer: Support::Unsupported,
        }
    }

    fn sessions(&self) -> Vec<&str> {
        self.sessions.iter().map(String::as_str).collect()
    }

    fn hidden_paths(&self) -> Vec<&str> {
        self.agent.iter().flat_map(|agent| &agent.hides).map(String::as_str).collect()
    }

    fn prepare(
        &self,
        assignment: &Assignment<'_>,
        engine_dir: &Path,
        view: &View,
    ) -> Result<(), EngineError> {
        let words = self.words(assignment, view)?;
        let words: Vec<(&str, &str)> = words.iter().map(|(word, value)| (*word, value.as_str())).collect();
        let home = engine_dir.join(HOME);
        let write = || {
            fs::create_dir(&home)?;
            for (path, text) in &self.agent.as_ref().map(|agent| agent.files.clone()).unwrap_or_default() {
                let file = home.join(path);
                if let Some(dir) = file.parent() {
                    fs::create_dir_all(dir)?;
                }
                fs::write(file, filled(text, &words))?;
            }
            Ok(())
        };
        write().map_err(|source| EngineError::Write { file: HOME, source })
    }

    fn launch(&self, assignment: &Assignment<'_>, view: &View) -> Result<Launch, EngineError> {
        let (agent, words) = (self.agent()?, self.words(assignment, view)?);
        let words: Vec<(&str, &str)> = words.iter().map(|(word, value)| (*word, value.as_str())).collect();
        let argv = std::iter::once(self.inside()?);
        let argv = argv.chain(agent.args.iter().map(|word| filled(word, &words).into())).collect();
        // Its state stays in its own directory.
        let mut env = vec![("HOME".to_owned(), filled("{home}", &words))];
        env.extend(self.library());
        env.extend(agent.env.iter().map(|(name, value)| (name.clone(), filled(value, &words))));
        Ok(Launch { argv, env, token: agent.token.clone().map(Into::into), ..Launch::default() })
    }

    fn conversation(&self, assignment: &Assignment<'_>, view: &View) -> Option<Box<dyn Conversation>> {
        let workspace = view.workspace.display().to_string();
        let new = AcpConversation::new(told(assignment), workspace);
        Some(Box::new(match assignment.resume {
            Some(resume) => new.going_on(resume.session.to_string()),
            None => new,
        }))
    }

    fn reader(&self, _: Digest) -> Box<dyn OutputReader> {
        Box::new(Unread)
    }

    fn transcript(&self, assignment: &Assignment<'_>) -> Box<dyn TranscriptReader> {
        Box::new(match assignment.resume {
            Some(_) => AcpTranscript::of_resumed(),
            None => AcpTranscript::default(),
        })
    }
}

/// The agent's version, if its package tells.
fn version(agent: Option<&AcpAgent>, program: Option<&Path>) -> String {
    let Some(agent) = agent else { return "not configured".to_owned() };
    let source = agent.package.as_ref().zip(agent.program.as_deref());
    let source = source.map(|(package, program)| package.source(program));
    match (source, program) {
        (Some(_), None) => "not installed".to_owned(),
        (Some(source), Some(tree)) => source.installed(tree).unwrap_or_else(|| "configured".to_owned()),
        (None, _) => "configured".to_owned(),
    }
}

/// The dialogue parses its output instead.
struct Unread;

impl OutputReader for Unread {
    fn line(&mut self, _: &[u8]) -> Option<AgentEvent> {
        None
    }
}
