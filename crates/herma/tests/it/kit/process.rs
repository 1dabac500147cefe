//! Starts the binary and other programs, and waits for them with a safety net.
#![allow(
    clippy::disallowed_types,
    reason = "the tests start the real binary, and the tools around it, from outside"
)]

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use herma_core::RunId;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Nothing that a test waits for takes this long unless it hangs.
const SAFETY_NET: Duration = Duration::from_mins(1);

/// Nothing takes this long at all, also where others use the machine: five stages of an agent are forty runs.
const LONGEST: Duration = Duration::from_mins(30);

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
    said: Option<[Said; 2]>,
}

/// The output of a command, as it arrives.
struct Said {
    so_far: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Started {
    pub(super) fn new<S: AsRef<OsStr>>(
        words: &[OsString],
        variables: &[(OsString, OsString)],
        dir: &Path,
        args: &[S],
    ) -> Self {
        Self::reading(words, variables, dir, args, Stdio::null())
    }

    /// The same with this as its standard input.
    pub(super) fn reading<S: AsRef<OsStr>>(
        words: &[OsString],
        variables: &[(OsString, OsString)],
        dir: &Path,
        args: &[S],
        stdin: Stdio,
    ) -> Self {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(args).env_clear().envs(variables.iter().cloned()).current_dir(dir);
        Self::spawn_reading(command, stdin)
    }

    fn spawn(command: Command) -> Self {
        Self::spawn_reading(command, Stdio::null())
    }

    fn spawn_reading(mut command: Command, stdin: Stdio) -> Self {
        let shown = format!("{command:?}");
        let mut child = command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
        let said = [Said::new(child.stdout.take().unwrap()), Said::new(child.stderr.take().unwrap())];
        Self { child, said: Some(said) }
    }

    /// Its standard output so far.
    pub(crate) fn stdout_so_far(&self) -> String {
        let [stdout, _] = self.said.as_ref().unwrap();
        String::from_utf8_lossy(&stdout.so_far.lock().unwrap()).into_owned()
    }

    /// Its standard error so far.
    pub(crate) fn stderr_so_far(&self) -> String {
        let [_, stderr] = self.said.as_ref().unwrap();
        String::from_utf8_lossy(&stderr.so_far.lock().unwrap()).into_owned()
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
        let [stdout, stderr] = self.said.take().unwrap().map(Said::all);
        Ended { code: status.code(), signal: status.signal(), stdout, stderr }
    }

    /// The same for one that takes longer than others: a proof, an installation, a run of a real agent.
    pub(crate) fn end_patiently(mut self) -> Ended {
        let deadline = Instant::now() + LONGEST;
        while self.is_alive() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
        self.end()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends a signal to its process group, as a terminal does. It must have been started with one of its own.
    pub(crate) fn signal_group(&self, signal: Signal) {
        kill_process_group(Pid::from_child(&self.child), signal).unwrap();
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

impl Said {
    fn new(mut stream: impl Read + Send + 'static) -> Self {
        let so_far = Arc::new(Mutex::new(Vec::new()));
        let heard = so_far.clone();
        let reader = thread::spawn(move || {
            let mut part = [0; 4096];
            loop {
                match stream.read(&mut part).unwrap() {
                    0 => break,
                    read => heard.lock().unwrap().extend_from_slice(&part[..read]),
                }
            }
        });
        Self { so_far, reader }
    }

    /// All of it, when there comes no more.
    fn all(self) -> String {
        self.reader.join().unwrap();
        String::from_utf8_lossy(&self.so_far.lock().unwrap()).into_owned()
    }
}

/// Runs another program, which must end with 0, and gives what it printed.
pub(crate) fn run_tool(program: &str, args: &[&OsStr], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(program);
    command.args(args).envs(variables.iter().copied()).current_dir("/");
    // It may be a compiler, on a busy machine.
    let ended = Started::spawn(command).end_patiently();
    assert_eq!(ended.code, Some(0), "{program} {args:?}: {ended:#?}");
    ended.stdout
}

/// A variable of the test's own environment.
#[allow(
    clippy::disallowed_methods,
    reason = "the binary under test finds its tools where the tests find theirs"
)]
pub(crate) fn environment(name: &str) -> OsString {
    std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set"))
}

/// The path of a program.
pub(crate) fn on_path(program: &str) -> PathBuf {
    let path = environment("PATH");
    let found = std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("{program} is not installed"))
}

/// The processes of the machine that carry the run's name, as their environment shows it. A dead one has none.
pub(crate) fn processes_of(run: RunId) -> Vec<u32> {
    let name = format!("HERMA_RUN={run}");
    let carries = |pid: &u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|variable| variable == name.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(carries).collect()
}

/// Waits until the condition holds; fails the test if it does not within the safety net.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + SAFETY_NET;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
