//! Limits: each is enforced, its enforcer is reported, and nothing is left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use herma_core::RunId;
use herma_core::units::Bytes;
use herma_destination::{Destination as _, Exit, HeldBy, Job, LimitName, Limits, leftovers};
use rustix::process::{Resource, getrlimit};

use crate::support::{JobDirs, LONG, helper, run_id, sandbox, tell, until};

const MIB: u64 = 1 << 20;

fn with(job: Job, change: impl FnOnce(&mut Limits)) -> Job {
    let mut limits = Limits::default();
    change(&mut limits);
    Job { limits, ..job }
}

/// The cgroups of a run, in every hierarchy.
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

/// Whether cgroups enforce limits here.
fn by_groups() -> bool {
    let held = sandbox().limits(&Limits::default());
    held.iter().any(|held| matches!(held.by, HeldBy::CgroupV1 | HeldBy::CgroupV2))
}

#[test]
fn every_limit_is_reported_once_with_its_enforcer() {
    let held = sandbox().limits(&Limits::default());
    let by = |name: LimitName| -> Vec<HeldBy> {
        held.iter().filter(|held| held.name == name).map(|held| held.by).collect()
    };
    assert_eq!(by(LimitName::Memory).len() + by(LimitName::DataOfEach).len(), 1, "{held:?}");
    assert_eq!(by(LimitName::Processes).len(), 1, "{held:?}");
    assert_eq!(by(LimitName::Cpu).len() + by(LimitName::CpuSecondsOfEach).len(), 1, "{held:?}");
    for name in [
        LimitName::OpenFiles,
        LimitName::FileSize,
        LimitName::MessageQueues,
        LimitName::PendingSignals,
        LimitName::LockedMemoryOfEach,
        LimitName::RealtimePriority,
        LimitName::RaisedPriority,
    ] {
        assert_eq!(by(name), [HeldBy::Rlimit]);
    }
    for name in [LimitName::Tmp, LimitName::Home, LimitName::SharedMemory] {
        assert_eq!(by(name), [HeldBy::Tmpfs]);
    }
    for name in [LimitName::Disk, LimitName::Files, LimitName::Terminals] {
        assert_eq!(by(name), [HeldBy::Watch]);
    }
    for name in [LimitName::InotifyInstances, LimitName::InotifyWatches] {
        assert_eq!(by(name), [HeldBy::UserNamespace]);
    }
}

#[test]
fn a_fork_bomb_stays_small() {
    let ground = JobDirs::new();
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
fn socket_buffers_are_bounded_too() {
    let by = |wanted| {
        sandbox().limits(&Limits::default()).iter().any(|h| h.name == LimitName::Memory && h.by == wanted)
    };
    // Version 2 counts them as memory, and kills; without groups nothing counts them.
    if !by(HeldBy::CgroupV1) {
        return;
    }
    let ground = JobDirs::new();
    let script = "import socket
def fill(send):
    sent = 0
    try:
        while sent < 16 << 20: sent += send(bytes(32768))
    except OSError: pass
    return sent
kept, tcp, udp = [], 0, 0
server = socket.create_server(('127.0.0.1', 0))
for _ in range(20):
    one = socket.create_connection(server.getsockname()); one.setblocking(False)
    kept.append((one, server.accept()))
    tcp += fill(one.send)
for _ in range(200):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.bind(('127.0.0.1', 0)); one.setblocking(False)
    kept.append(one)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    for _ in range(20):
        try: one.sendto(bytes(32768), one.getsockname())
        except OSError: pass
    try:
        while True: udp += len(one.recv(65536, socket.MSG_PEEK)); break
    except OSError: pass
print(tcp >> 20, udp >> 10)
print(tcp < 48 << 20)";
    let job = with(ground.python(script), |limits| limits.total_memory = Bytes(256 * MIB));
    let told = tell(&sandbox(), &job);
    assert!(told.stdout.ends_with("True\n"), "{told:?}");
}

#[test]
fn a_memory_bomb_ends_and_what_started_it_goes_on() {
    let ground = JobDirs::new();
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
fn files_are_limited_in_number_size_and_total() {
    let ground = JobDirs::new();
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
fn a_job_that_fills_the_workspace_is_killed_and_the_limit_is_reported() {
    for (script, limit) in [
        ("for i in range(64): open(f'f{i}', 'wb').write(b'x' * (1 << 20))", LimitName::Disk),
        ("for i in range(3000): open(f'f{i}', 'wb').close()", LimitName::Files),
    ] {
        let ground = JobDirs::new();
        let job = with(ground.python(&format!("import time\n{script}\ntime.sleep(60)")), |limits| {
            limits.disk = Bytes(32 * MIB);
            limits.files = 2000;
        });
        let mut process = sandbox().start(&job).unwrap();
        assert_eq!(process.wait(LONG).unwrap(), Some(Exit { code: None, signal: Some(9) }));
        assert_eq!(process.exceeded_limit(), Some(limit));
        process.kill_all().unwrap();
    }
    let ground = JobDirs::new();
    let mut process = sandbox().start(&ground.shell("echo fine > file")).unwrap();
    assert!(process.wait(LONG).unwrap().unwrap().success());
    assert_eq!(process.exceeded_limit(), None);
}

/// For a normal user, who cannot read entries with such a mode.
#[test]
fn modes_do_not_hide_files_from_the_limits() {
    let many = "for i in range(3000): open(f'{place}/f{i}', 'wb').close()";
    let large = "open(f'{place}/large', 'wb').write(b'x' * (32 << 20))";
    let modes = ["0o333", "0o444", "0o111", "0o000"];
    let cases = [(".", many, LimitName::Files), ("h", many, LimitName::Files), ("h", large, LimitName::Disk)];
    for ((place, fill, limit), mode) in cases.iter().flat_map(|case| modes.map(|mode| (case, mode))) {
        // Unreadable directories are judged by the whole file system, so take one that nothing else uses.
        let ground = JobDirs::below(Path::new("/dev/shm"));
        let script = format!(
            "import os, time\nplace = '{place}'\nos.makedirs(place, exist_ok=True)\nos.chmod(place, 0o333)\n{fill}
os.chmod(place, {mode})\ntime.sleep(60)"
        );
        let job = with(ground.python(&script), |limits| {
            limits.disk = Bytes(24 * MIB);
            limits.files = 2000;
        });
        let mut process = sandbox().start(&job).unwrap();
        let exit = process.wait(LONG).unwrap();
        process.kill_all().unwrap();
        // Not through its own `.`, which some modes close.
        let place = if *place == "." { ground.workspace() } else { ground.workspace().join(place) };
        fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(exit, Some(Exit { code: None, signal: Some(9) }), "{mode} {}", place.display());
        assert_eq!(process.exceeded_limit(), Some(*limit), "{mode} {}", place.display());
    }
}

#[test]
fn a_directory_that_cannot_be_read_is_no_passed_limit_and_keeps_its_mode() {
    let ground = JobDirs::new();
    let script = "mkdir h; echo text > h/file; chmod 0 h; sleep 2; stat -c %a h; chmod 700 h; cat h/file";
    let told = tell(&sandbox(), &ground.shell(script));
    assert_eq!((told.stdout.as_str(), told.over), ("0\ntext\n", None), "{}", told.stderr);
}

#[test]
fn connections_leave_descriptors_for_the_usage_monitor() {
    let few = 512;
    if getrlimit(Resource::Nofile).maximum.is_none_or(|most| most > few) {
        // Once more, in a process with a low descriptor limit.
        let name = "limits::connections_leave_descriptors_for_the_usage_monitor";
        let output = Command::new("prlimit")
            .arg(format!("--nofile={few}:{few}"))
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("ok. 1 passed"), "{said}");
        return;
    }
    let ground = JobDirs::new();
    let script = "import os, socket, time
held = []
try:
    for _ in range(300):
        held.append(socket.create_connection(('127.0.0.1', 61802), 1))
        held[-1].sendall(b'x')
except OSError: pass
time.sleep(1)
os.mkdir('h')
for i in range(3000): open(f'h/f{i}', 'wb').close()
time.sleep(60)";
    let mut job = with(ground.python(script), |limits| limits.files = 2000);
    job.paths.egress = Some(ground.dir.path().join("egress.sock"));
    let listener = UnixListener::bind(ground.dir.path().join("egress.sock")).unwrap();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for caller in listener.incoming() {
            match caller {
                Ok(caller) => held.push(caller),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    });
    let mut process = sandbox().start(&job).unwrap();
    assert_eq!(process.wait(LONG).unwrap(), Some(Exit { code: None, signal: Some(9) }));
    assert_eq!(process.exceeded_limit(), Some(LimitName::Files));
}

#[test]
fn a_job_that_opens_too_many_terminals_is_killed_and_the_limit_is_reported() {
    for (count, over) in [(8, None), (30, Some(LimitName::Terminals))] {
        let ground = JobDirs::new();
        let script =
            format!("import pty, time\nheld = [pty.openpty() for _ in range({count})]\ntime.sleep(3)");
        let told = tell(&sandbox(), &with(ground.python(&script), |limits| limits.terminals = 20));
        assert_eq!((told.over, told.exit.success()), (over, over.is_none()), "{told:?}");
    }
}

#[test]
fn inotify_is_bounded_by_the_sandboxes_own_namespace_and_leaves_the_rest_to_the_user() {
    let ground = JobDirs::new();
    let script = "
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def refused(call, *words):
    return errno.errorcode[ctypes.get_errno()] if call(*words) < 0 else None
made = 0
while made < 10 and not (why := refused(libc.inotify_init)): made += 1
print(made, why, flush=True)
# One of the instances that were made: the numbers 0 to 2 are the standard streams.
watched = 0
for name in range(12):
    open(str(name), 'w').close()
    if (why := refused(libc.inotify_add_watch, 3, str(name).encode(), 2)): break
    watched += 1
print(watched, why, flush=True)
if os.fork() == 0:
    print('child', refused(libc.inotify_init), flush=True)
    os._exit(0)
os.wait()";
    let job = with(ground.python(script), |limits| {
        (limits.inotify_instances, limits.inotify_watches) = (4, 7);
    });
    let told = tell(&sandbox(), &job);
    assert_eq!(told.stdout, "4 EMFILE\n7 ENOSPC\nchild EMFILE\n", "{}", told.stderr);
    let script =
        "for place in /proc/sys/user/max_inotify_instances /proc/sys/fs/inotify/max_user_instances; do
        (echo 9999 > $place) 2>/dev/null && echo $place; done; true";
    assert_eq!(tell(&sandbox(), &ground.shell(script)).stdout, "");
}

#[test]
fn per_user_kernel_quotas_are_limited_inside() {
    let ground = JobDirs::new();
    let script = "import resource
names = ('MSGQUEUE', 'SIGPENDING', 'MEMLOCK', 'RTPRIO', 'NICE')
print(*(resource.getrlimit(getattr(resource, 'RLIMIT_' + name))[1] for name in names))";
    let job = with(ground.python(script), |limits| {
        (limits.message_queues, limits.locked_memory) = (Bytes(4096), Bytes(8192));
        limits.pending_signals = 33;
    });
    assert_eq!(tell(&sandbox(), &job).stdout, "4096 33 8192 0 0\n");
    // Another sandbox of the same user has its own count.
    let queue = "import ctypes, signal, os
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
libc = ctypes.CDLL(None, use_errno=True)
sent = 0
while sent < 100 and libc.sigqueue(os.getpid(), int(signal.SIGRTMIN), ctypes.c_void_p(0)) == 0: sent += 1
print(sent <= 33)";
    let job = with(ground.python(queue), |limits| limits.pending_signals = 33);
    assert_eq!(tell(&sandbox(), &job).stdout, "True\n");
}

#[test]
fn a_group_is_there_while_the_job_is_and_gone_afterwards() {
    let ground = JobDirs::new();
    let job = ground.shell("touch ready; sleep 600");
    let mut process = sandbox().start(&job).unwrap();
    until("it is there", || ground.workspace().join("ready").exists());
    assert_eq!(!groups(job.run_id).is_empty(), by_groups());
    for group in groups(job.run_id) {
        let inside = fs::read_to_string(group.join("cgroup.procs")).unwrap();
        // Init and the shell; its sleep may not have started yet.
        assert!(inside.lines().count() >= 2, "{}: {inside}", group.display());
    }
    process.kill_all().unwrap();
    assert_eq!(groups(job.run_id), Vec::<PathBuf>::new());
}

#[test]
fn a_group_that_a_killed_herma_left_is_removed_with_the_leftovers() {
    let ground = JobDirs::new();
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
