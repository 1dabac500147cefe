//! What every engine has to say and do, and what it is given.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use herma_core::capability::Capabilities;
use herma_core::contract::Target;
use herma_core::engine::{EngineName, EngineResult};
use herma_core::model_call::Door;
use herma_core::{Contract, Digest};
use herma_destination::{Mount, View};

use crate::conversation::Conversation;
use crate::digest::program_digest;
use crate::fake::BadScript;
use crate::session::Resume;
use crate::source::Source;

/// An adapter for one agent.
pub trait Engine: Send + Sync {
    /// The name that people choose it by.
    fn name(&self) -> EngineName;

    /// The agent's own version.
    fn version(&self) -> &str;

    /// The digest of everything that runs.
    fn digest(&self) -> Result<Digest, EngineError>;

    /// The digest that it has where its program, or its tree, has this one.
    fn digest_over(&self, program: Digest) -> Digest {
        program
    }

    /// The digest that it has with its program at another place: that of a run's own copy, which is a file.
    fn digest_with(&self, program: &Path) -> io::Result<Digest> {
        Ok(self.digest_over(program_digest(program)?))
    }

    /// What a person has to do before there is anything that could be admitted; nothing for most.
    fn unconfigured(&self) -> Option<&'static str> {
        None
    }

    /// The program that runs, where it is one of its own: the one that was admitted. A directory is a whole tree that
    /// `herma engines install` made.
    fn program(&self) -> Option<&Path> {
        None
    }

    /// What it is installed from, where a registry has it.
    fn source(&self) -> Option<Source<'_>> {
        None
    }

    /// What a person can write so that there is something to install it from; nothing for most.
    fn without_source(&self) -> Option<&'static str> {
        None
    }

    /// The API by which it asks its model. One that does not ask needs no model.
    fn asks(&self) -> Option<Door> {
        None
    }

    /// What must be visible inside the destination, read-only; `program` is where the run keeps its copy of the program.
    fn mounts(&self, program: &Path) -> Vec<Mount> {
        let _ = program;
        Vec::new()
    }

    /// How its program is asked who it is. One that is part of herma is not asked.
    fn identify(&self, view: &View) -> Option<Launch> {
        let _ = view;
        None
    }

    /// Who the program says that it is, like `stub 0.1.0`; `None` if it did not answer as it should.
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

    /// Directories at the top of the workspace that an agent would run code from by itself. Where the project has one, the
    /// agent sees it as empty, and cannot write there.
    fn hidden_paths(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Where in the engine directory the agent keeps its session: what a later run needs to go on with it. One that
    /// names nothing cannot.
    fn sessions(&self) -> Vec<&str> {
        Vec::new()
    }

    /// What it can do beyond working on a contract; a contract's `needs` is checked against it.
    fn capabilities(&self) -> Capabilities;

    /// Refuses an assignment that it could not begin, before there is a run.
    fn check(&self, assignment: &Assignment<'_>) -> Result<(), EngineError> {
        let _ = assignment;
        Ok(())
    }

    /// Writes what the agent needs into the run's engine directory, which it will see as `view` says. The brief goes
    /// there too, never into argv.
    fn prepare(&self, assignment: &Assignment<'_>, engine_dir: &Path, view: &View)
    -> Result<(), EngineError>;

    /// How the agent is started. All paths are those that are seen from inside the destination.
    fn launch(&self, assignment: &Assignment<'_>, view: &View) -> Result<Launch, EngineError>;

    /// The dialogue of one run, for an agent that has to be answered while it works. Then herma writes its standard input,
    /// and the dialogue and not the reader hears what it says.
    fn conversation(&self, assignment: &Assignment<'_>, view: &View) -> Option<Box<dyn Conversation>> {
        let _ = (assignment, view);
        None
    }

    /// A fresh reader for the output of one run, whose contract has this digest.
    fn reader(&self, contract: Digest) -> Box<dyn OutputReader>;
}

/// What an engine is asked to do.
#[derive(Clone, Copy, Debug)]
pub struct Assignment<'a> {
    /// The contract, which every engine works on.
    pub contract: &'a Contract,
    /// The YAML of a script, where one was given: only `fake` and `stub` take one.
    pub script: Option<&'a str>,
    /// What it goes on with, where it does not begin anew.
    pub resume: Option<&'a Resume>,
}

impl<'a> Assignment<'a> {
    /// The script to play: the one that was given, else the one by which the contract's fixture is fixed.
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

/// How an agent is started, seen from inside the destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The program by its full path, and its arguments.
    pub argv: Vec<OsString>,
    /// What it needs in its environment beyond what the destination gives everyone.
    pub env: Vec<(String, String)>,
    /// The file in the engine directory that is its standard input, by its name there; none means an empty input.
    ///
    /// A name and not a path, because the destination opens it from outside, where the directory lies elsewhere.
    pub stdin: Option<&'static str>,
    /// The variable in which it expects the key of its model's provider: there it finds the run's token.
    pub token: Option<Cow<'static, str>>,
    /// Directories inside that come first in its `PATH`, after those of herma's witnesses.
    pub path: Vec<PathBuf>,
}

/// Understands the output of one agent, line by line.
pub trait OutputReader: Send {
    /// What the agent said with this line, or `None` if it said nothing that this reader knows.
    ///
    /// It takes anything: binary, invalid UTF-8, terminal colours, banners. The caller counts what was not understood
    /// and keeps every line.
    fn line(&mut self, line: &[u8]) -> Option<Said>;
}

/// Something that an agent said. It is a log line: it can make a verdict worse, never better.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It has started.
    Hello,
    /// It has started, and calls its session by this name.
    Session(String),
    /// A text for people.
    Message(String),
    /// What it wants to do, in order.
    Plan(Vec<String>),
    /// It says that it calls a tool.
    Tool {
        /// Which one.
        name: String,
        /// With what, as one would type it.
        command: String,
    },
    /// It offers no way to go on with its session later.
    NoWayBack,
    /// How many tokens it says that it used; what it really used is in the router's record.
    Used {
        /// What went in.
        input: u64,
        /// What came out.
        output: u64,
    },
    /// How it says its work went.
    Result(EngineResult),
    /// Several of these at once, in order.
    All(Vec<Self>),
    /// It looked like the agent's protocol and was not; the text says what is wrong with it.
    Malformed(String),
}

impl Said {
    /// What a line says that is understood and has nothing in it for the record.
    pub const NOTHING: Self = Self::All(Vec::new());
}

/// Why an engine cannot be used for a run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// `fake` has nothing to play.
    #[error("there is no script for `fake`, which only plays scripts: {target} has none of its own")]
    NoScript {
        /// What the contract is about.
        target: String,
    },
    /// The script says something that a script cannot say.
    #[error("the script for `{engine}` cannot be read: {source}")]
    Script {
        /// Who should play it.
        engine: EngineName,
        /// What is wrong with it, and where.
        source: BadScript,
    },
    /// A file for the agent could not be written.
    #[error("`{file}` could not be written to the run's engine directory: {source}")]
    Write {
        /// The file's name in that directory.
        file: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The destination shows the agent no engine directory.
    #[error("the destination shows no engine directory, and the engine `{0}` needs one")]
    NoEngineDirectory(EngineName),
    /// No program of this engine was admitted, so there is nothing to run.
    #[error(
        "the engine `{engine}` has no program: admit one with `herma admit engine {engine} --program PATH`"
    )]
    NoProgram {
        /// Which engine.
        engine: EngineName,
    },
    /// Its tree was not installed, so there is nothing to run.
    #[error("the engine `{engine}` is not installed: `herma engines install {engine}` does it")]
    NotInstalled {
        /// Which engine.
        engine: EngineName,
    },
    /// Nobody has said which agent it is.
    #[error("the engine `{engine}` is not configured: {what}")]
    NotConfigured {
        /// Which engine.
        engine: EngineName,
        /// What a person has to do.
        what: &'static str,
    },
    /// The name of the model would say something else in the agent's own configuration.
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
    /// It has no model to ask, or no way to it.
    #[error(
        "the engine `{0}` asks a model: name one in the contract, and run it where a port leads to the router"
    )]
    NoModel(EngineName),
    /// There is nobody whom it could ask about its tool calls.
    #[error("the engine `{0}` asks before each call of a tool, and its destination shows no socket for that")]
    NoHook(EngineName),
    /// The program that runs could not be read.
    #[error("the program of the engine `{engine}` could not be read to take its digest: {source}")]
    Digest {
        /// Whose program.
        engine: EngineName,
        /// What the system said.
        source: io::Error,
    },
}
