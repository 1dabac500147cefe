//! herma's own helper programs, mainly git: found by absolute path, started with an explicit environment.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::cgroup::InitialCgroup;
use crate::destination::Unready;
use crate::memory;
use crate::spawner::{self, InheritedFds};

/// The number of stderr lines that an error message repeats.
const STDERR_LINES: usize = 8;

/// Whether helpers get their own process group.
static OWN_PROCESS_GROUP: AtomicBool = AtomicBool::new(false);

/// Starts helpers in their own process group from now on, so that Ctrl-C in the terminal reaches herma alone:
/// closing a run needs its helpers. Only for callers that handle SIGINT, which would otherwise leave helpers
/// behind.
pub fn use_own_process_group() {
    OWN_PROCESS_GROUP.store(true, Ordering::Relaxed);
}

/// A helper program.
#[derive(Clone, Debug)]
pub struct Tool {
    name: String,
    path: PathBuf,
}

/// A builder for one call of a helper program. Its environment is empty until variables are added.
#[derive(Debug)]
pub struct ToolInvocation<'a> {
    tool: &'a Tool,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    stdin: Vec<u8>,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub struct ToolOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// All of its standard output.
    pub stdout: Vec<u8>,
    /// All of its standard error.
    pub stderr: Vec<u8>,
}

/// A running call whose stdin is written and stdout read by the caller.
#[derive(Debug)]
pub struct Streaming {
    what: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: File,
}

/// The resource limits of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// CPU time, in seconds.
    pub cpu_seconds: u64,
    /// Anonymous memory, in bytes.
    pub memory_bytes: u64,
    /// The largest file that it writes, in bytes.
    pub file_bytes: u64,
}

/// A helper program was not started or failed.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It is not found in PATH.
    #[error(transparent)]
    Missing(#[from] Unready),
    /// It could not be started, written to or read from.
    #[error("`{what}`: {source}")]
    Io {
        /// The program and its first arguments.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
    /// It exited with another status than success.
    #[error("`{what}` ended with {status}: {said}")]
    Failed {
        /// The program and its first arguments.
        what: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its standard error.
        said: String,
    },
}

/// The first executable file of this name in the absolute directories of `path`.
pub(crate) fn locate(name: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name)).find(|file| {
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    })
}

impl Tool {
    /// Finds the program in the directories of `path`; relative ones are passed over.
    pub fn find(name: &str, path: &OsStr) -> Result<Self, ToolError> {
        let found = locate(name, path).ok_or_else(|| Unready {
            what: format!("{name} is not installed"),
            next_step: format!("install it so that a directory of PATH holds it: apt install {name}"),
        })?;
        Ok(Self::at(name, found))
    }

    /// The program at a path that is already known.
    #[must_use]
    pub fn at(name: &str, path: PathBuf) -> Self {
        Self { name: name.to_owned(), path }
    }

    /// Its absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins a call: no arguments, no variables, the root directory, nothing on standard input.
    #[must_use]
    pub fn call(&self) -> ToolInvocation<'_> {
        ToolInvocation { tool: self, args: Vec::new(), env: Vec::new(), cwd: "/".into(), stdin: Vec::new() }
    }
}

impl ToolInvocation<'_> {
    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets variables.
    #[must_use]
    pub fn envs(mut self, env: impl IntoIterator<Item = (impl Into<OsString>, impl Into<OsString>)>) -> Self {
        self.env.extend(env.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Starts it in this directory.
    #[must_use]
    pub fn cwd(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cwd = dir.into();
        self
    }

    /// Gives it these bytes on standard input.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Runs it to its end and returns the result, whatever the exit status is.
    pub fn output(mut self) -> Result<ToolOutput, ToolError> {
        let input = std::mem::take(&mut self.stdin);
        let what = self.what();
        let failed = |source| ToolError::Io { what: what.clone(), source };
        // Memory files instead of pipes: neither side blocks.
        let stdin = match &input[..] {
            [] => Stdio::null(),
            bytes => Stdio::from(memory::file(bytes).map_err(failed)?),
        };
        let mut streaming = self.start(stdin)?;
        let mut stdout = Vec::new();
        streaming.stdout.read_to_end(&mut stdout).map_err(failed)?;
        let (status, stderr) = streaming.end()?;
        Ok(ToolOutput { status, stdout, stderr })
    }

    /// Runs it to its end; anything but exit code 0 is an error.
    pub fn checked(self) -> Result<ToolOutput, ToolError> {
        let what = self.what();
        let output = self.output()?;
        judge(what, output.status, &output.stderr)?;
        Ok(output)
    }

    /// Starts it and returns its streams. Bytes given by [`ToolInvocation::stdin`] are not written.
    pub fn spawn(self) -> Result<Streaming, ToolError> {
        self.start(Stdio::piped())
    }

    fn start(self, stdin: Stdio) -> Result<Streaming, ToolError> {
        let what = self.what();
        let failed = |source| ToolError::Io { what: what.clone(), source };
        let stderr = memory::file(b"").map_err(failed)?;
        let mut command = Command::new(&self.tool.path);
        command.args(self.args).env_clear().envs(self.env).current_dir(self.cwd);
        command.stdin(stdin).stdout(Stdio::piped()).stderr(stderr.try_clone().map_err(failed)?);
        if OWN_PROCESS_GROUP.load(Ordering::Relaxed) {
            command.process_group(0);
        }
        let mut child =
            spawner::spawn(command, InheritedFds::default(), InitialCgroup::default()).map_err(failed)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stdout = stdout.ok_or_else(|| failed(io::Error::other("it started without its output")))?;
        Ok(Streaming { what, child, stdin, stdout, stderr })
    }

    fn what(&self) -> String {
        let first: Vec<_> = self.args.iter().take(2).map(|arg| arg.to_string_lossy()).collect();
        format!("{} {}", self.tool.name, first.join(" ")).trim_end().to_owned()
    }
}

impl Streaming {
    /// Sets resource limits from now on. A call that waits for its stdin has used nothing yet.
    pub fn limit(&self, limits: CallLimits) -> Result<(), ToolError> {
        let CallLimits { cpu_seconds, memory_bytes, file_bytes } = limits;
        let pid = Pid::from_child(&self.child);
        let resources =
            [(Resource::Cpu, cpu_seconds), (Resource::Data, memory_bytes), (Resource::Fsize, file_bytes)];
        for (resource, most) in resources {
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            prlimit(Some(pid), resource, limit)
                .map_err(|error| ToolError::Io { what: self.what.clone(), source: error.into() })?;
        }
        Ok(())
    }

    /// Its stdin and stdout together, so that one can be written while the other is read.
    ///
    /// Stdin is `None` after [`Streaming::close_stdin`].
    pub fn streams(&mut self) -> (Option<&mut ChildStdin>, &mut ChildStdout) {
        (self.stdin.as_mut(), &mut self.stdout)
    }

    /// Its stdin, once, for a thread of its own; dropping it closes stdin.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Closes its stdin.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Closes stdin, drains stdout and waits for the exit; anything but exit code 0 is an error.
    pub fn finish(mut self) -> Result<(), ToolError> {
        self.close_stdin();
        let drained = io::copy(&mut self.stdout, &mut io::sink());
        drained.map_err(|source| ToolError::Io { what: self.what.clone(), source })?;
        let (status, stderr) = self.end()?;
        judge(self.what.clone(), status, &stderr)
    }

    fn end(&mut self) -> Result<(ExitStatus, Vec<u8>), ToolError> {
        let failed = |source| ToolError::Io { what: self.what.clone(), source };
        let status = self.child.wait().map_err(failed)?;
        let mut stderr = Vec::new();
        self.stderr.rewind().and_then(|()| self.stderr.read_to_end(&mut stderr)).map_err(failed)?;
        Ok((status, stderr))
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        // Does nothing to a child that was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn judge(what: String, status: ExitStatus, stderr: &[u8]) -> Result<(), ToolError> {
    if status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.trim().lines().collect();
    let said = lines[lines.len().saturating_sub(STDERR_LINES)..].join("\n");
    Err(ToolError::Failed { what, status, said })
}
