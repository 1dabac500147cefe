//! Limits: that each holds, that what holds it is said, and that nothing of it stays.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use herma_destination::{Destination as _, Exit, HeldBy, Job, LimitName, Limits, leftovers};
use herma_model::RunId;
use herma_model::units::Bytes;

use crate::support::{Ground, LONG, helper, run_id, sandbox, tell, until};

const MIB: u64 = 1 << 20;

fn with(job: Job, change: impl FnOnce(&mut Limits)) -> Job {
    let mut limits = Limits::default();
    change(&mut limits);
    Job { limits, ..job }
}

/// The groups of a run, wherever they are.
fn groups(run: RunId) -> Vec<PathBuf> {
    fn walk(dir: &Path, name: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().contains(name) {
                    found.push(entry.path());
                }
                walk(&entry.path(), name, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(Path::new("/sys/fs/cgroup"), &run.to_string(), &mut found);
    found
}

/// Whether limits of all processes together are held here by groups.
fn by_groups() -> bool {
    let held = sandbox().limits(&Limits::default());
    held.iter().any(|held| matches!(held.by, HeldBy::CgroupV1 | HeldBy::CgroupV2))
}

#[test]
fn every_limit_is_said_once_and_by_what() {
    let held = sandbox().limits(&Limits::default());
    let by = |name: LimitName| -> Vec<HeldBy> {
        held.iter().filter(|held| held.name == name).map(|held| held.by).collect()
    };
    assert_eq!(by(LimitName::Memory).len() + by(LimitName::DataOfEach).len(), 1, "{held:?}");
    assert_eq!(by(LimitName::Processes).len(), 1, "{held:?}");
    assert_eq!(by(LimitName::Cpu).len() + by(LimitName::CpuSecondsOfEach).len(), 1, "{held:?}");
    for name in [LimitName::OpenFiles, LimitName::FileSize] {
        assert_eq!(by(name), [HeldBy::Rlimit]);
    }
    for name in [LimitName::Tmp, LimitName::Home, LimitName::SharedMemory] {
        assert_eq!(by(name), [HeldBy::Tmpfs]);
    }
    for name in [LimitName::Disk, LimitName::Files] {
        assert_eq!(by(name), [HeldBy::Watch]);
    }
}

#[test]
fn a_fork_bomb_stays_small() {
    let ground = Ground::new();
    let script = "import os, time
count = 0
try:
    while count < 500:
        if os.fork() == 0: time.sleep(60); os._exit(0)
        count += 1
except BlockingIOError: print('refused')
print(count < 40)";
    let job = with(ground.python(script), |limits| limits.processes = 40);
    let told = tell(&sandbox(), &job);
    assert_eq!(told.stdout, "refused\nTrue\n");
    assert_eq!(told.over, by_groups().then_some(LimitName::Processes));
}

#[test]
fn a_memory_bomb_ends_and_what_started_it_goes_on() {
    let ground = Ground::new();
    let script = "import os, sys
pid = os.fork()
if pid == 0:
    try:
        held = [bytearray(os.urandom(1 << 20)) for _ in range(400)]
    except MemoryError: os._exit(7)
    os._exit(0)
print(os.wait()[1] != 0)";
    let job = with(ground.python(script), |limits| limits.total_memory = Bytes(160 * MIB));
    let told = tell(&sandbox(), &job);
    assert_eq!(told.stdout, "True\n");
    assert_eq!(told.over, by_groups().then_some(LimitName::Memory));
    assert_eq!(tell(&sandbox(), &ground.shell("true")).over, None);
}

#[test]
fn files_are_limited_in_number_size_and_room() {
    let ground = Ground::new();
    let script = "import os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def attempt(what):
    try: return what() or 'done'
    except OSError as error: return os.strerror(error.errno)
def many():
    held = [open('/dev/null') for _ in range(100)]
def large():
    with open('large', 'wb') as f: f.truncate(9 << 20)
def fill(place):
    with open(place + '/fill', 'wb') as f:
        for _ in range(20): f.write(b'x' * (1 << 18)); f.flush()
print(attempt(many)); print(attempt(large))
for place in '/tmp', os.environ['HOME'], '/dev/shm': print(attempt(lambda: fill(place)))
print(attempt(lambda: fill('/workspace')))";
    let job = with(ground.python(script), |limits| {
        limits.open_files = 50;
        limits.file_size = Bytes(8 * MIB);
        (limits.tmp, limits.home, limits.shared_memory) = (Bytes(MIB), Bytes(MIB), Bytes(MIB));
    });
    let told = tell(&sandbox(), &job);
    let full = "No space left on device\n";
    let expected = format!("Too many open files\nFile too large\n{full}{full}{full}done\n");
    assert_eq!(told.stdout, expected, "{}", told.stderr);
}

#[test]
fn who_fills_the_workspace_is_killed_and_the_limit_is_said() {
    for (script, limit) in [
        ("for i in range(64): open(f'f{i}', 'wb').write(b'x' * (1 << 20))", LimitName::Disk),
        ("for i in range(3000): open(f'f{i}', 'wb').close()", LimitName::Files),
    ] {
        let ground = Ground::new();
        let job = with(ground.python(&format!("import time\n{script}\ntime.sleep(60)")), |limits| {
            limits.disk = Bytes(32 * MIB);
            limits.files = 2000;
        });
        let mut process = sandbox().start(&job).unwrap();
        assert_eq!(process.wait(LONG).unwrap(), Some(Exit { code: None, signal: Some(9) }));
        assert_eq!(process.over_limit(), Some(limit));
        process.kill_all().unwrap();
    }
    let ground = Ground::new();
    let mut process = sandbox().start(&ground.shell("echo fine > file")).unwrap();
    assert!(process.wait(LONG).unwrap().unwrap().success());
    assert_eq!(process.over_limit(), None);
}

#[test]
fn a_group_is_there_while_the_job_is_and_gone_afterwards() {
    let ground = Ground::new();
    let job = ground.shell("touch ready; sleep 600");
    let mut process = sandbox().start(&job).unwrap();
    until("it is there", || ground.workspace().join("ready").exists());
    assert_eq!(!groups(job.run_id).is_empty(), by_groups());
    for group in groups(job.run_id) {
        let inside = fs::read_to_string(group.join("cgroup.procs")).unwrap();
        // The first process of the sandbox and the shell; its sleep may be about to start.
        assert!(inside.lines().count() >= 2, "{}: {inside}", group.display());
    }
    process.kill_all().unwrap();
    assert_eq!(groups(job.run_id), Vec::<PathBuf>::new());
}

#[test]
fn a_group_that_a_killed_herma_left_is_removed_with_the_leftovers() {
    let ground = Ground::new();
    let run = run_id();
    let mut herma = Command::new(helper())
        .args(["sandbox", &run.to_string()])
        .arg(ground.workspace())
        .args(["sh", "-c", "touch ready; sleep 600"])
        .spawn()
        .unwrap();
    until("it is there", || ground.workspace().join("ready").exists());
    herma.kill().unwrap();
    herma.wait().unwrap();
    assert_eq!(!groups(run).is_empty(), by_groups());
    leftovers::kill(run_id()).unwrap();
    assert_eq!(!groups(run).is_empty(), by_groups(), "another run's leftovers are left alone");
    leftovers::kill(run).unwrap();
    assert_eq!(groups(run), Vec::<PathBuf>::new());
}
