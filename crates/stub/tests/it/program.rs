//! Starts the program in a directory of its own and collects the results.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use herma_core::{Contract, Digest};
use herma_engines::protocol::EnvelopeReader;
use herma_engines::stub::StubAssignment;
use herma_engines::{AgentEvent, Assignment, LineSplitter, OutputReader as _};

/// The program under test.
pub(crate) const STUB: &str = env!("CARGO_BIN_EXE_herma-stub");

/// A workspace that is gone after the test.
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

/// The program's exit and output.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("workspace")).unwrap();
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("workspace").join(name)
    }

    /// Starts the program with this on its standard input, from a file as herma does.
    pub(crate) fn start(&self, args: &[&str], input: &[u8]) -> Ended {
        let file = self.dir.path().join("assignment.json");
        fs::write(&file, input).unwrap();
        let output = Command::new(STUB)
            .args(args)
            .current_dir(self.path(""))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::from(File::open(&file).unwrap()))
            .output()
            .unwrap();
        Ended {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Plays a script for the contract of `string-slugify`.
    pub(crate) fn play(&self, script: Option<&str>) -> Ended {
        self.start(&[], &assignment(script))
    }
}

impl Ended {
    /// The events that herma parses from it.
    pub(crate) fn said(&self) -> Vec<AgentEvent> {
        let mut reader = EnvelopeReader { contract: digest() };
        let (mut splitter, mut said) = (LineSplitter::new(), Vec::new());
        splitter.feed(&self.stdout, |line| said.extend(reader.line(line)));
        splitter.finish(|line| panic!("the output ends in the middle of a line: {line:?}"));
        said
    }

    /// The only line, a message.
    pub(crate) fn message(&self) -> String {
        match &self.said()[..] {
            [AgentEvent::Message(text)] => text.clone(),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn contract() -> Contract {
    Contract::parse(herma_fixtures::find("string-slugify").unwrap().contract.as_bytes()).unwrap()
}

pub(crate) fn digest() -> Digest {
    contract().digest().unwrap()
}

/// An assignment with this script, or with none at all.
pub(crate) fn assignment(script: Option<&str>) -> Vec<u8> {
    let contract = contract();
    let mut assignment =
        StubAssignment::of(&Assignment { contract: &contract, script, resume: None, note: None }).unwrap();
    assignment.script = script.map(str::to_owned);
    serde_json::to_vec(&assignment).unwrap()
}
