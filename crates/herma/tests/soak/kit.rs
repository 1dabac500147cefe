//! Starts herma, kills it, and sees what it left.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Seek as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use herma_core::RunId;
use herma_home::{MARKER, MARKER_TEXT};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;

use crate::clock::TestClock;
use crate::daemon::Daemon;

/// The permitted entries of herma's home once everything is closed.
const HOME: [&str; 11] = [
    "active",
    "docker",
    "herma-home",
    "keys",
    "own-digest.json",
    "reserve",
    "runs",
    "settings.yaml",
    "store.db",
    "store.db-shm",
    "store.db-wal",
];

/// How long is waited between two looks for a victim.
const GLANCE: Duration = Duration::from_millis(1);

/// The herma that was built for this test, with a home of its own for a user of its own.
pub(crate) struct Herma {
    home: tempfile::TempDir,
    user: tempfile::TempDir,
    docker_host: Option<String>,
    clock: TestClock,
    _clock_dir: tempfile::TempDir,
}

/// How far the wall clock is off, in milliseconds, at the moments of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockSteps {
    pub(crate) at_start: i64,
    /// How long after the start it steps, and to what.
    pub(crate) during: (Duration, i64),
    pub(crate) at_recovery: i64,
}

/// The victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victim {
    Herma,
    /// The processes of the run that herma itself started with this hidden word.
    Inside(&'static str),
}

/// How a herma ended that was to be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It was still there, and was killed.
    Killed,
    /// It had already ended with this exit code.
    Exited(i32),
}

impl Herma {
    /// With a daemon for those runs that take place in containers.
    pub(crate) fn new(docker: Option<&Daemon>) -> Self {
        let private = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o700)).tempdir();
        let (home, user) = (private.unwrap(), tempfile::tempdir().unwrap());
        if let Some(docker) = docker {
            let settings = format!("docker_image: {}\n", docker.image());
            fs::write(home.path().join("herma-home"), "herma-home 1\n").unwrap();
            fs::write(home.path().join(MARKER), MARKER_TEXT).unwrap();
            fs::write(home.path().join("settings.yaml"), settings).unwrap();
        }
        let docker_host = docker.map(|docker| format!("unix://{}", docker.socket().display()));
        let clock_dir = tempfile::tempdir().unwrap();
        let clock = TestClock::new(clock_dir.path().join("offset"));
        Self { home, user, docker_host, clock, _clock_dir: clock_dir }
    }

    /// Its wall clock.
    pub(crate) fn clock(&self) -> &TestClock {
        &self.clock
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    fn command(&self, args: &[String]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_herma"));
        command.args(args).env("HERMA_HOME", self.home()).stdin(Stdio::null());
        command.env("HOME", self.user.path()).env("TMPDIR", self.user.path());
        command.envs(self.docker_host.iter().map(|host| ("DOCKER_HOST", host)));
        command.envs(self.clock.variables());
        command
    }

    /// Runs herma to its end: exit code, standard output, standard error.
    pub(crate) fn run(&self, args: &[String]) -> (i32, String, String) {
        let output = self.command(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    /// How long a whole run takes, and its exit code.
    pub(crate) fn timed(&self, args: &[String]) -> (Duration, i32) {
        let start = Instant::now();
        let (code, ..) = self.run(args);
        (start.elapsed(), code)
    }

    /// Starts herma and kills it after `delay`; or, `delay` after the first of its run that the victim is, whoever is that
    /// then or next. Meanwhile its wall clock steps. The second answer says whether something was killed, the third what
    /// herma had to say.
    pub(crate) fn killed_after(
        &self,
        args: &[String],
        delay: Duration,
        victim: Victim,
        steps: &ClockSteps,
    ) -> (End, bool, String) {
        self.clock.set_ms(steps.at_start);
        std::thread::scope(|scope| {
            let (after, offset) = steps.during;
            scope.spawn(move || {
                std::thread::sleep(after);
                self.clock.set_ms(offset);
            });
            self.kill_after(args, delay, victim)
        })
    }

    fn kill_after(&self, args: &[String], delay: Duration, victim: Victim) -> (End, bool, String) {
        let before = self.run_dirs();
        let mut said = tempfile::tempfile().unwrap();
        let mut command = self.command(args);
        let mut child = command.stdout(Stdio::null()).stderr(said.try_clone().unwrap()).spawn().unwrap();
        let mut hit = false;
        if let Victim::Inside(word) = victim {
            let next = || loop {
                let runs: Vec<_> = self.run_dirs().difference(&before).map(ToString::to_string).collect();
                let found = inside(child.id(), &runs, word);
                if !found.is_empty() || is_over(&child) {
                    return found;
                }
                std::thread::sleep(GLANCE);
            };
            next();
            std::thread::sleep(delay);
            for pid in next() {
                hit |= kill_process(pid, Signal::KILL).is_ok();
            }
        } else {
            std::thread::sleep(delay);
            child.kill().unwrap();
        }
        let end = child.wait().unwrap().code().map_or(End::Killed, End::Exited);
        said.rewind().unwrap();
        (end, hit || end == End::Killed, std::io::read_to_string(said).unwrap())
    }

    /// The list of `herma runs`, which also closes orphaned runs.
    pub(crate) fn runs(&self) -> Result<Vec<Value>, String> {
        let (code, out, err) = self.run(&words("runs --json --limit 1000"));
        if code != 0 {
            return Err(format!("`herma runs` exits with {code}: {err}"));
        }
        let listed: Value = serde_json::from_str(&out).map_err(|e| format!("{e}: {out}"))?;
        Ok(listed["runs"].as_array().cloned().unwrap_or_default())
    }

    /// Files that no closed run needs: in herma's home, in the user's, among temporary files.
    pub(crate) fn litter(&self) -> Vec<String> {
        let mut litter = names(self.user.path());
        litter.extend(names(self.home()).into_iter().filter(|name| !HOME.contains(&name.as_str())));
        litter
    }

    /// The runs that have a directory.
    pub(crate) fn run_dirs(&self) -> BTreeSet<RunId> {
        names(&self.home().join("runs")).iter().map(|name| name.parse().unwrap()).collect()
    }
}

/// The names in a directory; none if it is not there.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub(crate) fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// Every file below a directory: permissions and bytes, or where a link leads.
pub(crate) fn snapshot(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut files = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let bytes = if meta.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if meta.is_dir() {
                open.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            files.insert(path, (meta.permissions().mode(), bytes));
        }
    }
    files
}

/// The processes that work somewhere below a directory.
pub(crate) fn processes_in(dir: &Path) -> Vec<String> {
    let dir = dir.canonicalize().unwrap();
    let inside =
        |pid: &String| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&dir));
    names(Path::new("/proc"))
        .into_iter()
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        .filter(inside)
        .map(|pid| {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!("{pid}: {}", line.replace('\0', " "))
        })
        .collect()
}

/// Whether a process has ended, and waits to be asked how.
fn is_over(child: &Child) -> bool {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).unwrap();
    let asked = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), asked).unwrap().is_some()
}

/// The processes with this word that come from this herma, or from the keeper of one of these runs' containers.
fn inside(herma: u32, runs: &[String], word: &str) -> Vec<Pid> {
    let numbers = names(Path::new("/proc")).into_iter().filter_map(|name| name.parse::<u32>().ok());
    let all: BTreeMap<u32, (u32, Vec<String>)> =
        numbers.filter_map(|pid| Some((pid, (parent(pid)?, words_of(pid)?)))).collect();
    let keeps = |words: &[String]| {
        words.iter().any(|word| word == "__keep") && runs.iter().any(|run| words.contains(run))
    };
    let belongs = |pid: u32| {
        let mut at = Some(pid);
        while let Some(pid) = at {
            let Some((parent, words)) = all.get(&pid) else { return false };
            if pid == herma || keeps(words) {
                return true;
            }
            at = Some(*parent);
        }
        false
    };
    // bubblewrap has the command's words too; the launcher keeps its own where it goes on as the command.
    let is = |words: &[String]| match words {
        [_, second, ..] if second == word => true,
        [own, second, rest @ ..] if second == "__launch" => {
            rest.windows(3).any(|words| words[0] == "--" && words[1] == *own && words[2] == word)
        }
        _ => false,
    };
    let found = all.iter().filter(|(pid, (_, words))| is(words) && belongs(**pid)).map(|(pid, _)| *pid);
    found.filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).collect()
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

fn words_of(pid: u32) -> Option<Vec<String>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect())
}

/// The system's remains of a run: control groups, mounts, and files in shared directories.
pub(crate) fn left_of(run: &str) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut left: Vec<String> =
        mounts.lines().filter(|line| line.contains(run)).map(|line| format!("mount: {line}")).collect();
    left.extend(names(Path::new("/tmp")).into_iter().filter(|name| name.contains(run)));
    groups(Path::new("/sys/fs/cgroup"), run, &mut left);
    left
}

fn groups(dir: &Path, run: &str, left: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if entry.file_name().to_string_lossy().contains(run) {
            left.push(format!("group: {}", entry.path().display()));
        }
        groups(&entry.path(), run, left);
    }
}
