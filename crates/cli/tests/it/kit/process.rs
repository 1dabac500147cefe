//! Starts the binary and other programs, and waits for them with a safety net.
#![allow(clippy::disallowed_types, reason = "the tests start the real binary, and the tools around it, from outside")]

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::HERMA;

/// Nothing that a test waits for takes this long unless it hangs.
const SAFETY_NET: Duration = Duration::from_secs(120);

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The JSON on standard output.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("not JSON: {error}: {self:#?}"))
    }

    /// Whether it died by SIGKILL.
    pub(crate) fn was_killed(&self) -> bool {
        self.signal == Some(9)
    }
}

/// A command under way. It is killed if the test forgets it.
pub(crate) struct Started {
    child: Child,
    said: Option<[JoinHandle<String>; 2]>,
}

impl Started {
    pub(super) fn new<S: AsRef<OsStr>>(
        wrapper: &[OsString],
        variables: &[(OsString, OsString)],
        dir: &Path,
        args: &[S],
    ) -> Self {
        let mut words = wrapper.iter().cloned().chain([HERMA.into()]).collect::<Vec<_>>().into_iter();
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(args).env_clear().envs(variables.iter().cloned()).current_dir(dir);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let shown = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
        let said = [read(child.stdout.take().unwrap()), read(child.stderr.take().unwrap())];
        Self { child, said: Some(said) }
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end; fails the test if it hangs.
    pub(crate) fn end(mut self) -> Ended {
        let deadline = Instant::now() + SAFETY_NET;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "the command hangs");
            thread::sleep(Duration::from_millis(2));
        };
        let [stdout, stderr] = self.said.take().unwrap().map(|said| said.join().unwrap());
        Ended { code: status.code(), signal: status.signal(), stdout, stderr }
    }

    /// Kills it as a power cut would.
    pub(crate) fn kill(mut self) -> Ended {
        self.child.kill().unwrap();
        self.end()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Runs another program, which must end with 0, and gives what it printed.
pub(crate) fn run_tool(program: &str, args: &[&OsStr], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(program);
    command.args(args).envs(variables.iter().copied()).current_dir("/");
    let ended = Started::spawn(command).end();
    assert_eq!(ended.code, Some(0), "{program} {args:?}: {ended:#?}");
    ended.stdout
}

/// A variable of the test's own environment.
#[allow(clippy::disallowed_methods, reason = "the binary under test finds its tools where the tests find theirs")]
pub(crate) fn environment(name: &str) -> OsString {
    std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set"))
}

/// Waits until the condition holds; fails the test if it does not within the safety net.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + SAFETY_NET;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
