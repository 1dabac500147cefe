//! The engine `fake`: no agent at all. It plays a script, inside the destination like any other engine, and is
//! deterministic; it is the default, and it is how every misbehaviour of an agent is tested.

mod ask;
mod call_error;
mod connect;
mod effects;
mod parse;
mod perform;
mod script;
mod shell;
mod values;

use std::fs;
use std::path::{Path, PathBuf};

use herma_core::capability::{Capabilities, Support};
use herma_core::contract::Target;
use herma_core::engine::EngineName;
use herma_core::{Digest, VERSION};
use herma_destination::View;

pub use ask::{Ask, Dialect, Router};
pub use connect::{Connect, PROXY_VARIABLE};
pub use parse::{BadScript, MAX_BYTES};
pub use perform::{Speaker, perform, play_file, run};
pub use script::{
    Append, Chmod, Flood, Rename, Repeat, ResultWord, Script, Shell, Step, Symlink, Tool, Write,
};
pub use values::{Permissions, ScriptPath};

use crate::digest::ProgramDigest;
use crate::engine::{Assignment, Engine, EngineError, Launch, OutputReader};
use crate::protocol::ProtocolReader;

/// The hidden subcommand of herma that plays a script: `herma __fake SCRIPT`, in the workspace.
pub const SUBCOMMAND: &str = "__fake";

/// The script's name in the engine directory.
const SCRIPT_FILE: &str = "script.yaml";

/// The engine `fake`. It runs herma itself.
#[derive(Debug)]
pub struct Fake {
    herma: ProgramDigest,
}

impl Fake {
    /// The engine; `herma` is the path of the running program, whose digest is cached in `memory`, if given.
    #[must_use]
    pub fn new(herma: PathBuf, memory: Option<PathBuf>) -> Self {
        Self { herma: ProgramDigest::of_herma(herma, memory) }
    }
}

impl Engine for Fake {
    fn name(&self) -> EngineName {
        EngineName::fake()
    }

    fn version(&self) -> &str {
        VERSION
    }

    fn digest(&self) -> Result<Digest, EngineError> {
        self.herma.take().map_err(|source| EngineError::Digest { engine: self.name(), source })
    }

    fn built_in(&self) -> bool {
        true
    }

    fn may_run_unconfined(&self) -> bool {
        true
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: Support::Unsupported,
            structured_events: Support::Native,
            acp: Support::Unsupported,
            tool_hooks: Support::Unsupported,
            mcp: Support::Unsupported,
            reviewer: Support::Native,
        }
    }

    fn check(&self, assignment: &Assignment<'_>) -> Result<(), EngineError> {
        Script::parse(script_for(assignment)?.as_bytes())
            .map(drop)
            .map_err(|source| EngineError::Script { engine: self.name(), source })
    }

    fn prepare(&self, assignment: &Assignment<'_>, engine_dir: &Path, _: &View) -> Result<(), EngineError> {
        self.check(assignment)?;
        let script = script_for(assignment)?;
        fs::write(engine_dir.join(SCRIPT_FILE), script)
            .map_err(|source| EngineError::Write { file: SCRIPT_FILE, source })
    }

    fn launch(&self, _: &Assignment<'_>, view: &View) -> Result<Launch, EngineError> {
        let Some(engine_dir) = &view.engine_dir else {
            return Err(EngineError::NoEngineDirectory(self.name()));
        };
        let script = engine_dir.join(SCRIPT_FILE);
        let argv = vec![view.herma.clone().into_os_string(), SUBCOMMAND.into(), script.into_os_string()];
        Ok(Launch { argv, ..Launch::default() })
    }

    fn reader(&self, _: Digest) -> Box<dyn OutputReader> {
        Box::new(ProtocolReader)
    }
}

/// The script to play, which `fake` requires.
fn script_for<'a>(assignment: &Assignment<'a>) -> Result<&'a str, EngineError> {
    assignment.script_to_play().ok_or_else(|| EngineError::NoScript {
        target: match &assignment.contract.terms.target {
            Target::Fixture(name) => format!("the fixture `{name}`"),
            Target::Repo { repo, .. } => format!("the repository `{repo}`"),
        },
    })
}
