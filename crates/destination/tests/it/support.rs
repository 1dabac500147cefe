//! Directories, jobs and the two destinations, ready to use.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use herma_core::RunId;
use herma_core::engine::DestinationKind;
use herma_destination::{
    BadJob, Destination, Exit, Host, Job, JobPaths, LimitName, Prepared, Process, Sandbox, StartError, Stdin,
};
use tempfile::TempDir;

/// A generous timeout for conditions that hold at once on an idle machine.
pub(crate) const LONG: Duration = Duration::from_mins(2);
pub(crate) const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin";

/// The stand-in for the herma binary, which cargo builds next to the tests.
pub(crate) fn helper() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let helper = test.parent().unwrap().parent().unwrap().join("examples/destination-helper");
    assert!(helper.is_file(), "{} is missing: cargo builds it with the tests", helper.display());
    helper
}

pub(crate) fn sandbox() -> Sandbox {
    Sandbox::find(helper(), SYSTEM.as_ref())
}

pub(crate) fn host() -> Host {
    Host::new(helper())
}

pub(crate) fn both() -> [Box<dyn Destination>; 2] {
    [Box::new(host()), Box::new(sandbox())]
}

/// A workspace and an engine directory, removed with the test.
pub(crate) struct JobDirs {
    pub(crate) dir: TempDir,
}

impl JobDirs {
    pub(crate) fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    pub(crate) fn below(place: &Path) -> Self {
        let dir = TempDir::new_in(place).unwrap();
        for name in ["workspace", "engine"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    pub(crate) fn shell(&self, script: &str) -> Job {
        self.job(&["sh", "-c", script])
    }

    pub(crate) fn python(&self, script: &str) -> Job {
        self.job(&["/usr/bin/python3", "-c", script])
    }

    pub(crate) fn job(&self, argv: &[&str]) -> Job {
        let paths = JobPaths::new(self.workspace()).with_engine_dir(self.dir.path().join("engine"));
        Job::new(run_id(), argv.iter().map(Into::into).collect(), paths)
    }
}

/// A run id that no other test has: on the host the processes of a run are found by it.
pub(crate) fn run_id() -> RunId {
    let mut entropy = [0; 10];
    rustix::rand::getrandom(&mut entropy, rustix::rand::GetRandomFlags::empty()).unwrap();
    RunId::new(herma_core::Timestamp::UNIX_EPOCH, entropy)
}

/// The output and exit of a process.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) exit: Exit,
    /// The exceeded limit.
    pub(crate) over: Option<LimitName>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the job to its end.
pub(crate) fn tell(destination: &dyn Destination, job: &Job) -> Told {
    to_the_end(destination.start(job).unwrap())
}

fn to_the_end(mut process: Box<dyn Process>) -> Told {
    let mut read = streams(process.as_mut());
    let exit = process.wait(LONG).map(|exit| exit.expect("it ends in time"));
    process.kill_all().unwrap();
    let over = process.exceeded_limit();
    let (stdout, stderr) = (read.remove(0).join().unwrap(), read.remove(0).join().unwrap());
    let exit = exit.unwrap_or_else(|error| panic!("{error}: {stderr}"));
    Told { exit, over, stdout, stderr }
}

/// Reads both streams in threads.
pub(crate) fn streams(process: &mut dyn Process) -> Vec<thread::JoinHandle<String>> {
    let streams = [process.take_stdout().unwrap(), process.take_stderr().unwrap()];
    let read = |mut stream: Box<dyn std::io::Read + Send>| {
        thread::spawn(move || {
            let mut text = Vec::new();
            stream.read_to_end(&mut text).unwrap();
            String::from_utf8(text).unwrap()
        })
    };
    streams.into_iter().map(read).collect()
}

/// Waits until the condition holds; panics after `LONG`.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// How many processes of the machine have this text in their command line.
pub(crate) fn processes_with(text: &str) -> usize {
    let own = std::process::id().to_string();
    let is_one = |dir: &Path| {
        let zombie = std::fs::read_to_string(dir.join("stat")).is_ok_and(|stat| stat.contains(") Z "));
        let said = std::fs::read(dir.join("cmdline")).unwrap_or_default();
        !zombie && !dir.ends_with(&own) && String::from_utf8_lossy(&said).contains(text)
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| is_one(&entry.path())).count()
}

/// A hidden directory: it is empty inside, and cannot be filled, replaced or uncovered there; outside it is
/// unchanged.
pub(crate) fn hides(destination: &dyn Destination, ground: &JobDirs) {
    let (dir, file) = (ground.workspace().join(".own"), ground.workspace().join(".own/plugins/x.js"));
    std::fs::create_dir(&dir).unwrap();
    let script = "
import os, shutil
os.mkdir('new')
for attempt in (lambda: open('.own/plugins/x.js'), lambda: open('.own/new', 'w'), lambda: os.mkdir('.own/plugins'),
                lambda: os.rmdir('.own'), lambda: shutil.rmtree('.own'), lambda: os.rename('.own', 'away'),
                lambda: os.rename('new', '.own'), lambda: os.chmod('.own', 0o777)):
    try: attempt(); print('done')
    except OSError: pass
print(sorted(os.listdir('.')), os.listdir('.own'))";
    let job = Job { hidden: vec![".own".to_owned()], ..ground.python(script) };
    // As in a run: the job is prepared first, and its files follow.
    let prepared = Prepared::begin(destination, job).unwrap();
    std::fs::create_dir(dir.join("plugins")).unwrap();
    std::fs::write(&file, "theirs").unwrap();
    let told = to_the_end(prepared.start().unwrap());
    assert_eq!(told.stdout, "['.own', 'new'] []\n", "{:?}: {}", destination.kind(), told.stderr);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "theirs");
    std::fs::remove_dir(ground.workspace().join("new")).unwrap();

    // A link is not followed, and a missing directory is not created.
    std::os::unix::fs::symlink(".own", ground.workspace().join("link")).unwrap();
    for name in ["link", "nothing", ".own/plugins", "../engine"] {
        let job = Job { hidden: vec![name.to_owned()], ..ground.shell("true") };
        assert!(matches!(destination.start(&job), Err(StartError::BadJob(BadJob::Hidden { .. }))), "{name}");
    }
    assert!(!ground.workspace().join("nothing").exists());
}

/// A dialogue line by line; then stdin closes, which ends the process.
pub(crate) fn talks(destination: &dyn Destination, ground: &JobDirs) {
    let job = Job {
        stdin: Stdin::Pipe,
        ..ground.shell("while read -r line; do echo \"heard $line\"; done; echo bye")
    };
    let mut process = destination.start(&job).unwrap();
    let mut to = process.take_stdin().unwrap();
    assert!(process.take_stdin().is_none(), "it is given once");
    let mut from = BufReader::new(process.take_stdout().unwrap());
    for word in ["one".to_owned(), "x".repeat(200_000)] {
        writeln!(to, "{word}").unwrap();
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        assert_eq!(line, format!("heard {word}\n"), "{:?}", destination.kind());
    }
    drop(to);
    let mut rest = String::new();
    from.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "bye\n");
    assert_eq!(process.wait(LONG).unwrap().unwrap().code, Some(0));

    // A process that does not read stdin can still be ended.
    let mut process =
        destination.start(&Job { stdin: Stdin::Pipe, ..ground.job(&["sleep", "600"]) }).unwrap();
    let mut to = process.take_stdin().unwrap();
    let writer = thread::spawn(move || (0..1024).try_for_each(|_| to.write_all(&[b'x'; 4 << 10])).is_err());
    process.kill_all().unwrap();
    let stopped = writer.join().unwrap();
    assert!(stopped || destination.kind() == DestinationKind::Docker, "the keeper queues unread input");

    let mut without = destination.start(&ground.job(&["true"])).unwrap();
    assert!(without.take_stdin().is_none(), "none was requested");
}
