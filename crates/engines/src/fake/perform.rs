//! Plays a script: the body of `herma __fake SCRIPT` and of `herma-stub`, inside the destination.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;

use herma_core::engine::{EngineName, EngineResult};
use herma_core::{Digest, VERSION};

use super::ask::Router;
use super::call_error::CallError;
use super::script::{ResultWord, Script, Step};
use super::values::ScriptPath;
use super::{effects, shell};
use crate::protocol::ProtocolLine;

/// The exit code if a `shell` step with `must` failed, or the output is closed.
const FAILED: u8 = 1;

/// The exit code if there is no script to play.
const NO_SCRIPT: u8 = 2;

/// The player of a script: its identity in the protocol, and its access to router and proxy.
#[derive(Clone, Copy, Debug)]
pub struct Speaker<'a> {
    /// The engine's name.
    pub engine: &'a str,
    /// The program's version.
    pub version: &'a str,
    /// The contract that a result names; none for results without an envelope.
    pub contract: Option<Digest>,
    /// The router; none if the contract names no model.
    pub router: Option<&'a Router>,
    /// The address of the run's egress proxy, if any.
    pub proxy: Option<SocketAddr>,
}

impl Speaker<'static> {
    /// The engine `fake`.
    pub const FAKE: Self =
        Self { engine: EngineName::DEFAULT, version: VERSION, contract: None, router: None, proxy: None };
}

/// Plays the script in this file on stdout; returns the exit code.
#[must_use]
pub fn run(script: &Path, workspace: &Path, speaker: Speaker<'_>) -> u8 {
    let Ok(output) = io::stdout().as_fd().try_clone_to_owned() else {
        return FAILED;
    };
    play_file(script, workspace, speaker, File::from(output))
}

/// Plays the script in this file on `output`; returns the exit code.
#[must_use]
pub fn play_file(script: &Path, workspace: &Path, speaker: Speaker<'_>, mut output: File) -> u8 {
    let read = fs::read(script)
        .map_err(|e| e.to_string())
        .and_then(|bytes| Script::parse(&bytes).map_err(|e| e.to_string()));
    match read {
        Ok(script) => perform(&script, speaker, workspace, output),
        Err(why) => {
            // If this cannot be written either, the exit code tells.
            let text = format!("the script cannot be played: {why}");
            let _ = ProtocolLine::Message { text }.write_to(&mut output);
            NO_SCRIPT
        }
    }
}

/// Plays a script in `workspace` on `output`; returns the exit code.
#[must_use]
pub fn perform(script: &Script, speaker: Speaker<'_>, workspace: &Path, output: File) -> u8 {
    let mut performance = Performance { speaker, workspace, output, greeted: false, result_given: false };
    // Only writing the output can fail here, and then there is no reader left.
    performance.play(script).unwrap_or(FAILED)
}

struct Performance<'a> {
    speaker: Speaker<'a>,
    workspace: &'a Path,
    output: File,
    greeted: bool,
    result_given: bool,
}

/// Whether the script continues after a step.
enum AfterStep {
    Step,
    End(u8),
}

impl Performance<'_> {
    fn play(&mut self, script: &Script) -> io::Result<u8> {
        if let AfterStep::End(code) = self.steps(&script.steps)? {
            return Ok(code);
        }
        self.greet()?;
        if !self.result_given {
            self.result(EngineResult::Completed)?;
        }
        Ok(0)
    }

    fn steps(&mut self, steps: &[Step]) -> io::Result<AfterStep> {
        for step in steps {
            if let AfterStep::End(code) = self.step(step)? {
                return Ok(AfterStep::End(code));
            }
        }
        Ok(AfterStep::Step)
    }

    fn step(&mut self, step: &Step) -> io::Result<AfterStep> {
        if !matches!(step, Step::Sleep(_) | Step::Repeat(_)) {
            self.greet()?;
        }
        match step {
            Step::Write(s) => self.effect("write", &s.path, |at| effects::write(&at, &s.bytes))?,
            Step::Append(s) => self.effect("append to", &s.path, |at| effects::append(&at, &s.text))?,
            Step::Delete(path) => self.effect("delete", path, |at| effects::delete(&at))?,
            Step::Rename(s) => {
                let to = self.workspace.join(s.to.as_path());
                self.effect("rename", &s.from, |from| effects::rename(&from, &to))?;
            }
            Step::Chmod(s) => self.effect("chmod", &s.path, |at| effects::chmod(&at, s.mode))?,
            Step::Symlink(s) => {
                self.effect("link", &s.path, |at| effects::symlink(&at, s.target.as_path()))?;
            }
            Step::Mkdir(path) => self.effect("mkdir", path, |at| effects::mkdir(&at))?,
            Step::Fifo(path) => self.effect("make the fifo", path, |at| effects::fifo(&at))?,
            Step::Shell(s) => {
                let ended = shell::run(&s.command, self.workspace, &self.output);
                if !self.succeeded(&s.command, ended)? && s.must {
                    self.result(EngineResult::Failed)?;
                    return Ok(AfterStep::End(FAILED));
                }
            }
            Step::Ask(s) => return self.called("ask", s.put(self.speaker.router), s.must),
            Step::Connect(s) => return self.called("connect", s.put(self.speaker.proxy), s.must),
            Step::Daemon(command) => {
                let ended = shell::leave_behind(command, self.workspace, &self.output);
                self.succeeded(command, ended)?;
            }
            Step::Say(text) => self.message(text.clone())?,
            Step::Plan(items) => self.say(&ProtocolLine::Plan { items: items.clone() })?,
            Step::Tool(s) => {
                self.say(&ProtocolLine::Tool { name: s.name.clone(), command: s.command.clone() })?;
            }
            Step::Print(text) => self.output.write_all(format!("{text}\n").as_bytes())?,
            Step::Flood(s) => {
                io::copy(&mut io::repeat(b'~').take(s.bytes.0), &mut self.output)?;
                self.output.write_all(b"\n")?;
            }
            Step::Sleep(span) => thread::sleep(span.duration()),
            Step::Repeat(s) => {
                for _ in 0..s.times {
                    if let AfterStep::End(code) = self.steps(&s.steps)? {
                        return Ok(AfterStep::End(code));
                    }
                }
            }
            Step::Exit(code) => return Ok(AfterStep::End(*code)),
            Step::Result(word) => self.give_result(*word)?,
        }
        Ok(AfterStep::Step)
    }

    /// Reports the result of a call. If it must succeed and did not, the script ends.
    fn called(
        &mut self,
        step: &str,
        outcome: Result<String, CallError>,
        must: bool,
    ) -> io::Result<AfterStep> {
        match outcome {
            Ok(said) => self.message(said)?,
            Err(why) => {
                self.message(format!("`{step}` failed: {why}"))?;
                if must {
                    self.result(EngineResult::Failed)?;
                    return Ok(AfterStep::End(FAILED));
                }
            }
        }
        Ok(AfterStep::Step)
    }

    fn greet(&mut self) -> io::Result<()> {
        if self.greeted {
            return Ok(());
        }
        self.greeted = true;
        let Speaker { engine, version, .. } = self.speaker;
        self.say(&ProtocolLine::Hello { engine: engine.to_owned(), version: version.to_owned() })
    }

    fn say(&mut self, line: &ProtocolLine) -> io::Result<()> {
        line.write_to(&mut self.output)
    }

    fn message(&mut self, text: String) -> io::Result<()> {
        self.say(&ProtocolLine::Message { text })
    }

    fn result(&mut self, status: EngineResult) -> io::Result<()> {
        self.say(&ProtocolLine::Result { status, contract_digest: self.speaker.contract })
    }

    fn give_result(&mut self, word: ResultWord) -> io::Result<()> {
        self.result_given = true;
        match word {
            ResultWord::Completed => self.result(EngineResult::Completed),
            ResultWord::Failed => self.result(EngineResult::Failed),
            ResultWord::Rejected => self.result(EngineResult::Rejected),
            ResultWord::None => Ok(()),
            ResultWord::Malformed => self.output.write_all(b"{\"type\":\"result\",\"status\":\n"),
        }
    }

    /// Runs a file operation; reports a failure and continues.
    fn effect(
        &mut self,
        verb: &str,
        path: &ScriptPath,
        effect: impl FnOnce(PathBuf) -> io::Result<()>,
    ) -> io::Result<()> {
        match effect(self.workspace.join(path.as_path())) {
            Ok(()) => Ok(()),
            Err(why) => self.message(format!("could not {verb} `{path}`: {why}")),
        }
    }

    /// Whether the command succeeded; reports a failure.
    fn succeeded(&mut self, command: &str, ended: io::Result<ExitStatus>) -> io::Result<bool> {
        let why = match ended {
            Ok(status) if status.success() => return Ok(true),
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        self.message(format!("`{command}` failed: {why}"))?;
        Ok(false)
    }
}
