//! The engine `stub`: an external program with a small protocol. It stands for agents that herma did not write, and
//! goes through admission, digests and stages like them; its script decides how it behaves.

mod assignment;
mod identity;

use std::fs;
use std::path::{Path, PathBuf};

use herma_core::capability::{Capabilities, Support};
use herma_core::engine::EngineName;
use herma_core::{Digest, VERSION};
use herma_destination::{Mount, View};

pub use assignment::{AssignmentSchema, BadAssignment, MAX_BYTES, StubAssignment};
pub use identity::StubIdentity;

use crate::digest::ProgramDigest;
use crate::engine::{Assignment, Engine, EngineError, Launch, OutputReader};
use crate::fake::Script;
use crate::protocol::EnvelopeReader;

/// The engine's name.
pub const NAME: &str = "stub";

/// The argument that queries the program's identity.
pub const IDENTITY_FLAG: &str = "--identity";

/// The program's path inside the destination.
const INSIDE: &str = "/opt/herma-engine/herma-stub";

/// The assignment's name in the engine directory.
const ASSIGNMENT_FILE: &str = "assignment.json";

/// The engine `stub`. It runs the admitted program.
#[derive(Debug)]
pub struct Stub {
    name: EngineName,
    program: Option<ProgramDigest>,
}

impl Stub {
    /// The engine under its name; `program` is the admitted one, if any.
    #[must_use]
    pub fn new(name: EngineName, program: Option<PathBuf>) -> Self {
        Self { name, program: program.map(ProgramDigest::of) }
    }

    fn admitted(&self) -> Result<&ProgramDigest, EngineError> {
        self.program.as_ref().ok_or_else(|| EngineError::NoProgram { engine: self.name() })
    }
}

impl Engine for Stub {
    fn name(&self) -> EngineName {
        self.name.clone()
    }

    fn version(&self) -> &str {
        VERSION
    }

    fn digest(&self) -> Result<Digest, EngineError> {
        self.admitted()?.take().map_err(|source| EngineError::Digest { engine: self.name(), source })
    }

    fn program(&self) -> Option<&Path> {
        self.program.as_ref().map(ProgramDigest::path)
    }

    fn mounts(&self, program: &Path) -> Vec<Mount> {
        vec![Mount { host: program.to_owned(), inside: INSIDE.into() }]
    }

    fn identify(&self, _: &View) -> Option<Launch> {
        self.program()?;
        Some(Launch { argv: vec![INSIDE.into(), IDENTITY_FLAG.into()], ..Launch::default() })
    }

    fn identity(&self, output: &[u8]) -> Option<String> {
        StubIdentity::read(output).map(|identity| identity.to_string())
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
        let Some(script) = assignment.script_to_play() else { return Ok(()) };
        Script::parse(script.as_bytes())
            .map(drop)
            .map_err(|source| EngineError::Script { engine: self.name(), source })
    }

    fn prepare(&self, assignment: &Assignment<'_>, engine_dir: &Path, _: &View) -> Result<(), EngineError> {
        self.check(assignment)?;
        let write = || {
            let bytes = serde_json::to_vec_pretty(&StubAssignment::of(assignment)?)?;
            fs::write(engine_dir.join(ASSIGNMENT_FILE), bytes)
        };
        write().map_err(|source| EngineError::Write { file: ASSIGNMENT_FILE, source })
    }

    fn launch(&self, _: &Assignment<'_>, view: &View) -> Result<Launch, EngineError> {
        self.admitted()?;
        if view.engine_dir.is_none() {
            return Err(EngineError::NoEngineDirectory(self.name()));
        }
        Ok(Launch { argv: vec![INSIDE.into()], stdin: Some(ASSIGNMENT_FILE), ..Launch::default() })
    }

    fn reader(&self, contract: Digest) -> Box<dyn OutputReader> {
        Box::new(EnvelopeReader { contract })
    }
}
