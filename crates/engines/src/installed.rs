//! The engine of an agent that is installed as a tree: the parts that differ between agents, and the shared rest.

use std::ffi::OsString;
use std::fs;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use herma_core::Digest;
use herma_core::capability::Capabilities;
use herma_core::engine::EngineName;
use herma_core::model_call::Endpoint;
use herma_destination::{Mount, View};
use serde_json::Value;

use crate::conversation::Conversation;
use crate::engine::{Assignment, Engine, EngineError, Launch, OutputReader};
use crate::hook;
use crate::package::{Build, Package};
use crate::source::Source;
use crate::transcript::TranscriptReader;
use crate::tree::TreeDigest;

/// The path of the tree inside the destination.
pub(crate) const INSIDE: &str = "/opt/herma-engine";

/// The longest identity line of a program.
const MAX_IDENTITY: usize = 128;

/// The parts that differ between installed agents.
pub(crate) trait Agent: 'static {
    /// Its package.
    const PACKAGE: Package;
    /// The API through which it calls its model.
    const ENDPOINT: Endpoint;
    /// The paths of its session; empty if it cannot resume.
    const SESSIONS: &'static [&'static str] = &[];

    /// The directories from which it would run code of the project, whatever its options are.
    const HIDDEN: &'static [&'static str] = &[];

    /// Its capabilities beyond working on a contract.
    const CAPABILITIES: Capabilities;

    /// Writes its configuration and its prompt.
    fn prepare(
        installed: &Installed,
        assignment: &Assignment<'_>,
        engine_dir: &Path,
        view: &View,
    ) -> Result<(), EngineError>;

    /// The command that queries its identity, which is one line.
    fn identify(installed: &Installed) -> Result<Launch, EngineError> {
        let mut argv = installed.command()?;
        argv.push("--version".into());
        Ok(Launch { argv, ..Launch::default() })
    }

    /// The command that starts it.
    fn launch(installed: &Installed, assignment: &Assignment<'_>, view: &View)
    -> Result<Launch, EngineError>;

    /// The dialogue with it, if it expects replies.
    fn conversation(assignment: &Assignment<'_>) -> Option<Box<dyn Conversation>> {
        let _ = assignment;
        None
    }

    /// Its output parser.
    fn reader() -> Box<dyn OutputReader>;

    /// Its transcript reader.
    fn transcript() -> Box<dyn TranscriptReader>;
}

/// The engine of an installed agent.
pub(crate) struct AgentEngine<A> {
    installed: Installed,
    agent: PhantomData<fn() -> A>,
}

impl<A: Agent> AgentEngine<A> {
    /// The engine under its name; `tree` is the admitted one, if any.
    pub(crate) fn new(name: EngineName, tree: Option<PathBuf>) -> Self {
        Self { installed: Installed::new(name, A::PACKAGE, tree), agent: PhantomData }
    }
}

impl<A: Agent> Engine for AgentEngine<A> {
    fn name(&self) -> EngineName {
        self.installed.name.clone()
    }

    fn version(&self) -> &str {
        &self.installed.version
    }

    fn digest(&self) -> Result<Digest, EngineError> {
        self.installed.digest()
    }

    fn program(&self) -> Option<&Path> {
        self.installed.tree.as_ref().map(TreeDigest::root)
    }

    fn source(&self) -> Option<Source<'_>> {
        Some(A::PACKAGE.source())
    }

    fn capabilities(&self) -> Capabilities {
        A::CAPABILITIES
    }

    fn sessions(&self) -> Vec<&str> {
        A::SESSIONS.to_vec()
    }

    fn hidden_paths(&self) -> Vec<&str> {
        A::HIDDEN.to_vec()
    }

    fn asks(&self) -> Option<Endpoint> {
        Some(A::ENDPOINT)
    }

    fn mounts(&self, program: &Path) -> Vec<Mount> {
        vec![Mount { host: program.to_owned(), inside: INSIDE.into() }]
    }

    fn identify(&self, _: &View) -> Option<Launch> {
        // None without an installed tree.
        A::identify(&self.installed).ok()
    }

    fn identity(&self, output: &[u8]) -> Option<String> {
        one_line(output)
    }

    fn prepare(
        &self,
        assignment: &Assignment<'_>,
        engine_dir: &Path,
        view: &View,
    ) -> Result<(), EngineError> {
        A::prepare(&self.installed, assignment, engine_dir, view)
    }

    fn launch(&self, assignment: &Assignment<'_>, view: &View) -> Result<Launch, EngineError> {
        A::launch(&self.installed, assignment, view)
    }

    fn conversation(&self, assignment: &Assignment<'_>, _: &View) -> Option<Box<dyn Conversation>> {
        A::conversation(assignment)
    }

    fn reader(&self, _: Digest) -> Box<dyn OutputReader> {
        A::reader()
    }

    fn transcript(&self, _: &Assignment<'_>) -> Box<dyn TranscriptReader> {
        A::transcript()
    }
}

/// The admitted tree of an agent, if any.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) name: EngineName,
    package: Package,
    tree: Option<TreeDigest>,
    version: String,
}

impl Installed {
    fn new(name: EngineName, package: Package, tree: Option<PathBuf>) -> Self {
        let version = tree.as_deref().and_then(|tree| package.source().installed(tree));
        let version = version.unwrap_or_else(|| "not installed".to_owned());
        Self { name, package, tree: tree.map(TreeDigest::of_agent), version }
    }

    fn digest(&self) -> Result<Digest, EngineError> {
        let tree = self.tree.as_ref().ok_or_else(|| self.nothing())?;
        tree.take().map_err(|source| EngineError::Digest { engine: self.name.clone(), source })
    }

    /// The start of its command as seen inside: its program, and the script that it interprets.
    pub(crate) fn command(&self) -> Result<Vec<OsString>, EngineError> {
        if self.tree.is_none() {
            return Err(self.nothing());
        }
        let Build { program, script, .. } = self.package.build();
        Ok(std::iter::once(program).chain(script).map(|path| inside(path).into_os_string()).collect())
    }

    /// The contract's model, and the port that leads to the router.
    pub(crate) fn way<'a>(
        &self,
        assignment: &Assignment<'a>,
        view: &View,
    ) -> Result<(&'a str, u16), EngineError> {
        let model = assignment.contract.terms.model.as_ref().map(|choice| choice.model.as_str());
        model.zip(view.router_port).ok_or_else(|| EngineError::NoModel(self.name.clone()))
    }

    /// The hook command that it runs before each tool call.
    pub(crate) fn hook(&self, view: &View) -> Result<String, EngineError> {
        let socket = view.governance.as_ref().ok_or_else(|| EngineError::NoHook(self.name.clone()))?;
        Ok(hook::command(&view.herma, socket))
    }

    /// A script of herma's that asks before each tool call, with the path of the socket filled in.
    pub(crate) fn hook_script(&self, script: &str, view: &View) -> Result<String, EngineError> {
        let socket = view.governance.as_ref().ok_or_else(|| EngineError::NoHook(self.name.clone()))?;
        let quoted = |path: &Path| Value::from(path.display().to_string()).to_string();
        Ok(script.replace("HERMA", &quoted(&view.herma)).replace("SOCKET", &quoted(socket)))
    }

    fn nothing(&self) -> EngineError {
        EngineError::NotInstalled { engine: self.name.clone() }
    }
}

/// The path inside of an entry of the tree.
pub(crate) fn inside(path: &str) -> PathBuf {
    Path::new(INSIDE).join(path)
}

/// Writes a file below the engine directory.
pub(crate) fn write(
    engine_dir: &Path,
    home: &'static str,
    file: &'static str,
    text: &str,
) -> Result<(), EngineError> {
    let place = engine_dir.join(home);
    // Only this level: a missing engine directory is an error.
    if !place.is_dir() {
        fs::create_dir(&place).map_err(|source| EngineError::Write { file: home, source })?;
    }
    fs::write(engine_dir.join(file), text).map_err(|source| EngineError::Write { file, source })
}

/// The single printable line of an output, if it is one.
pub(crate) fn one_line(output: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(output).ok()?.trim_end_matches('\n');
    let sound =
        (1..=MAX_IDENTITY).contains(&text.len()) && text.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
    sound.then(|| text.to_owned())
}
