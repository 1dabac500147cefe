//! The trait of an engine, its input and its output.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use herma_core::capability::Capabilities;
use herma_core::contract::Target;
use herma_core::engine::EngineName;
use herma_core::model_call::Endpoint;
use herma_core::script::BadScript;
use herma_core::{Contract, Digest};
use herma_destination::{Mount, View};

use crate::agent_event::AgentEvent;
use crate::conversation::Conversation;
use crate::digest::program_digest;
use crate::session::Resume;
use crate::source::Source;
use crate::transcript::{ProtocolTranscript, TranscriptReader};

/// An adapter for one agent.
pub trait Engine: Send + Sync {
    /// The name by which people choose it.
    fn name(&self) -> EngineName;

    /// The agent's own version.
    fn version(&self) -> &str;

    /// The digest of everything that runs.
    fn digest(&self) -> Result<Digest, EngineError>;

    /// Its digest for a program, or tree, with this digest.
    fn digest_over(&self, program: Digest) -> Digest {
        program
    }

    /// Its digest with the program at another path: that of a run's own copy, which is a file.
    fn digest_with(&self, program: &Path) -> io::Result<Digest> {
        Ok(self.digest_over(program_digest(program)?))
    }

    /// The configuration step that is missing before it can be admitted; none for most.
    fn unconfigured(&self) -> Option<&'static str> {
        None
    }

    /// The admitted program, if it has one of its own. A directory is a whole tree that `herma engines install`
    /// created.
    fn program(&self) -> Option<&Path> {
        None
    }

    /// Its package, if a registry has it.
    fn source(&self) -> Option<Source<'_>> {
        None
    }

    /// The setting that would name a package; none for most.
    fn without_source(&self) -> Option<&'static str> {
        None
    }

    /// The API through which it calls its model; `None` for an engine without a model.
    fn asks(&self) -> Option<Endpoint> {
        None
    }

    /// The read-only mounts inside the destination; `program` is the run's copy of the program.
    fn mounts(&self, program: &Path) -> Vec<Mount> {
        let _ = program;
        Vec::new()
    }

    /// The command that queries the program's identity; none for a built-in engine.
    fn identify(&self, view: &View) -> Option<Launch> {
        let _ = view;
        None
    }

    /// The identity in that output, like `stub 0.1.0`; `None` if it is malformed.
    fn identity(&self, output: &[u8]) -> Option<String> {
        let _ = output;
        None
    }

    /// Whether it is part of herma itself: then it needs no admission, and no proof for stages 1 to 3.
    fn built_in(&self) -> bool {
        false
    }

    /// Whether it may run in a destination that does not confine it. An agent that herma did not write never may.
    fn may_run_unconfined(&self) -> bool {
        false
    }

    /// Paths in the workspace that it uses for itself: recorded, never part of the patch.
    fn scratch_paths(&self) -> &[&str] {
        &[]
    }

    /// Directories at the top of the workspace from which the agent would run code by itself. They appear empty and
    /// read-only inside.
    fn hidden_paths(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The paths in the engine directory that hold the agent's session, which a later run needs to resume it; none
    /// if it cannot resume.
    fn sessions(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Its capabilities beyond working on a contract; a contract's `needs` is checked against them.
    fn capabilities(&self) -> Capabilities;

    /// Rejects an assignment that it could not start, before there is a run.
    fn check(&self, assignment: &Assignment<'_>) -> Result<(), EngineError> {
        let _ = assignment;
        Ok(())
    }

    /// Writes the agent's files to the run's engine directory, which the agent sees as in `view`. The brief goes
    /// there too, never into argv.
    fn prepare(&self, assignment: &Assignment<'_>, engine_dir: &Path, view: &View)
    -> Result<(), EngineError>;

    /// The command that starts the agent. All paths are those inside the destination.
    fn launch(&self, assignment: &Assignment<'_>, view: &View) -> Result<Launch, EngineError>;

    /// The dialogue of one run, for an agent that expects replies. Then herma writes its stdin, and the dialogue
    /// instead of the reader parses its output.
    fn conversation(&self, assignment: &Assignment<'_>, view: &View) -> Option<Box<dyn Conversation>> {
        let _ = (assignment, view);
        None
    }

    /// A new parser for the output of one run, whose contract has this digest.
    fn reader(&self, contract: Digest) -> Box<dyn OutputReader>;

    /// A new reader of the transcript in the output of one run.
    fn transcript(&self, assignment: &Assignment<'_>) -> Box<dyn TranscriptReader> {
        let _ = assignment;
        Box::new(ProtocolTranscript)
    }
}

/// The task of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Assignment<'a> {
    /// The contract, which every engine works on.
    pub contract: &'a Contract,
    /// The YAML of a script, if given: only for `fake` and `stub`.
    pub script: Option<&'a str>,
    /// The session to resume, if any.
    pub resume: Option<&'a Resume>,
    /// A note to add to the contract's brief, where no session is resumed.
    pub note: Option<&'a str>,
}

impl<'a> Assignment<'a> {
    /// The script to play: the given one, else the one that fixes the contract's fixture.
    #[must_use]
    pub fn script_to_play(&self) -> Option<&'a str> {
        self.script.or_else(|| match &self.contract.terms.target {
            Target::Fixture(name) => {
                herma_fixtures::find(name.as_str())?.script(herma_fixtures::Fixture::FIX)
            }
            Target::Repo { .. } => None,
        })
    }
}

/// The command that starts an agent, as seen from inside the destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The program by its absolute path, and its arguments.
    pub argv: Vec<OsString>,
    /// Its variables besides those of the destination.
    pub env: Vec<(String, String)>,
    /// The name of its stdin file in the engine directory; none means empty stdin.
    ///
    /// A name, not a path, because the destination opens it from outside, where the directory has another path.
    pub stdin: Option<&'static str>,
    /// The variable in which it expects its provider's API key: it gets the run's token.
    pub token: Option<Cow<'static, str>>,
    /// Directories inside that come first in `PATH`, after herma's shims.
    pub path: Vec<PathBuf>,
}

/// Parses the output of one agent, line by line.
pub trait OutputReader: Send {
    /// The event in this line, or `None` if it is unknown.
    ///
    /// It accepts any bytes: binary, invalid UTF-8, terminal colours, banners. The caller counts unknown lines and
    /// keeps every line.
    fn line(&mut self, line: &[u8]) -> Option<AgentEvent>;
}

/// Why an engine cannot be used for a run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// `fake` has nothing to play.
    #[error("there is no script for `fake`, which only plays scripts: {target} has none of its own")]
    NoScript {
        /// The target of the contract.
        target: String,
    },
    /// The script is invalid.
    #[error("the script for `{engine}` cannot be read: {source}")]
    Script {
        /// The engine that should play it.
        engine: EngineName,
        /// The problem and its position.
        source: BadScript,
    },
    /// A file for the agent could not be written.
    #[error("`{file}` could not be written to the run's engine directory: {source}")]
    Write {
        /// The file's name in that directory.
        file: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The destination shows the agent no engine directory.
    #[error("the destination shows no engine directory, and the engine `{0}` needs one")]
    NoEngineDirectory(EngineName),
    /// No program of this engine was admitted.
    #[error(
        "the engine `{engine}` has no program: admit one with `herma admit engine {engine} --program PATH`"
    )]
    NoProgram {
        /// Which engine.
        engine: EngineName,
    },
    /// Its tree is not installed.
    #[error("the engine `{engine}` is not installed: `herma engines install {engine}` does it")]
    NotInstalled {
        /// Which engine.
        engine: EngineName,
    },
    /// No agent is configured for it.
    #[error("the engine `{engine}` is not configured: {what}")]
    NotConfigured {
        /// Which engine.
        engine: EngineName,
        /// The step to take.
        what: &'static str,
    },
    /// The model's name would be misread in the agent's own configuration.
    #[error(
        "the model `{model}` cannot be named in the configuration of the engine `{engine}`: it may hold letters, digits \
         and `.:/@+_-` only"
    )]
    ModelName {
        /// Which engine.
        engine: EngineName,
        /// Which model.
        model: String,
    },
    /// It has no model, or no route to it.
    #[error(
        "the engine `{0}` asks a model: name one in the contract, and run it where a port leads to the router"
    )]
    NoModel(EngineName),
    /// There is no policy service for its tool calls.
    #[error("the engine `{0}` asks before each call of a tool, and its destination shows no socket for that")]
    NoHook(EngineName),
    /// The program that runs could not be read.
    #[error("the program of the engine `{engine}` could not be read to take its digest: {source}")]
    Digest {
        /// The engine of the program.
        engine: EngineName,
        /// The error of the system.
        source: io::Error,
    },
}
