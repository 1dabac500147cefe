//! The view and the restrictions of a process inside.

use std::fs;
use std::os::fd::AsFd as _;

use herma_core::units::Bytes;
use herma_destination::{Destination as _, Job, Limits, Mount, Sandbox, StartError, Stdin};

use crate::support::{JobDirs, both, helper, hides, host, sandbox, talks, tell, until};

#[test]
fn nothing_of_the_callers_environment_is_inside() {
    let ground = JobDirs::new();
    for destination in both() {
        let mut job = ground.job(&["env"]);
        job.env = vec![("EXTRA".into(), "yes".into()), ("LC_CTYPE".into(), "C".into())];
        let told = tell(destination.as_ref(), &job);
        let mut names: Vec<&str> =
            told.stdout.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        names.sort_unstable();
        names.retain(|name| *name != "PWD");
        assert_eq!(
            names,
            [
                "EXTRA",
                "GIT_AUTHOR_EMAIL",
                "GIT_AUTHOR_NAME",
                "GIT_COMMITTER_EMAIL",
                "GIT_COMMITTER_NAME",
                "GIT_CONFIG_GLOBAL",
                "GIT_CONFIG_NOSYSTEM",
                "HERMA_RUN",
                "HOME",
                "LC_CTYPE",
                "PATH",
                "TERM",
                "TMPDIR",
                "USER"
            ]
        );
        assert!(told.stdout.contains("LC_CTYPE=C\n"), "the job's own variables win: {}", told.stdout);
        assert!(told.stdout.contains(&format!("HERMA_RUN={}\n", job.run_id)));
    }
}

#[test]
fn the_first_process_of_the_sandbox_shows_nothing_but_the_runs_name() {
    let ground = JobDirs::new();
    let job =
        ground.shell("tr '\\0' ' ' < /proc/1/cmdline; echo; tr '\\0' '\\n' 2>/dev/null < /proc/1/environ");
    let told = tell(&sandbox(), &job);
    let mut lines = told.stdout.lines();
    let command_line = lines.next().unwrap();
    assert!(!command_line.contains("setenv") && !command_line.contains("/tmp/"), "{command_line}");
    // With Landlock not even that can be read.
    let run = format!("HERMA_RUN={}", job.run_id);
    assert!(lines.all(|line| line == run), "{told:?}");
}

#[test]
fn an_open_file_of_the_caller_does_not_get_in() {
    let ground = JobDirs::new();
    let secret = fs::File::create(ground.dir.path().join("secret")).unwrap();
    rustix::io::fcntl_setfd(secret.as_fd(), rustix::io::FdFlags::empty()).unwrap();
    for destination in both() {
        let told = tell(destination.as_ref(), &ground.shell("cd /proc/self/fd && echo *"));
        // The shell opens no descriptor of its own here; `echo *` lists with one more.
        let count =
            told.stdout.split_whitespace().filter(|number| !["0", "1", "2", "3"].contains(number)).count();
        assert_eq!(count, 0, "{:?}: {}", destination.kind(), told.stdout);
        let told = tell(destination.as_ref(), &ground.shell("readlink /proc/$$/fd/* || true"));
        assert!(!told.stdout.contains("secret"), "{:?}: {}", destination.kind(), told.stdout);
    }
}

#[test]
fn only_the_job_directories_and_private_mounts_are_writable() {
    let ground = JobDirs::new();
    let script = "for dir in / /usr /usr/bin /etc /herma /home /proc/sys/kernel /dev/shm /tmp /home/agent /workspace /engine; do
        if (: > $dir/probe) 2>/dev/null; then echo $dir; fi; done
        if (: >> /proc/sys/kernel/core_pattern) 2>/dev/null; then echo core_pattern; fi
        if (: >> /etc/passwd) 2>/dev/null; then echo passwd; fi
        if (: >> /herma/inside) 2>/dev/null; then echo marker; fi";
    let told = tell(&sandbox(), &ground.shell(script));
    assert_eq!(told.stdout, "/dev/shm\n/tmp\n/home/agent\n/workspace\n/engine\n", "{}", told.stderr);
    assert!(ground.workspace().join("probe").exists());
}

#[test]
fn there_is_no_network_but_an_own_loopback() {
    let ground = JobDirs::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "import socket
def attempt(host, port):
    try:
        socket.create_connection((host, port), 2); return 'connected'
    except OSError as error:
        return type(error).__name__ + ' ' + str(error.errno)
print(attempt('127.0.0.1', {port})); print(attempt('192.0.2.1', 80)); print(attempt('example.com', 80))
own = socket.create_server(('localhost', 0)); print(attempt('localhost', own.getsockname()[1]))"
    );
    let told = tell(&sandbox(), &ground.python(&script));
    let lines: Vec<&str> = told.stdout.lines().collect();
    assert_eq!(lines[..2], ["ConnectionRefusedError 111", "OSError 101"], "{told:?}");
    assert!(lines[2].starts_with("gaierror"), "{told:?}");
    assert_eq!(lines[3], "connected", "{told:?}");
}

#[test]
fn the_inside_is_an_unprivileged_user_of_its_own() {
    let ground = JobDirs::new();
    let script = "id -u; id -un; hostname; pwd; cat /herma/inside; echo $HOME; grep -c . /proc/self/mountinfo >/dev/null
        unshare -Ur true 2>/dev/null && echo namespace; ls /root /home/agent /sys 2>/dev/null; ls /proc | grep -c '^[0-9]'";
    let job = ground.shell(script);
    let told = tell(&sandbox(), &job);
    let lines: Vec<&str> = told.stdout.lines().collect();
    let run = job.run_id.to_string();
    assert_eq!(lines[..6], ["1000", "agent", "herma", "/workspace", run.as_str(), "/home/agent"], "{told:?}");
    assert_eq!(lines[6], "/home/agent:", "{told:?}");
    assert!(lines.last().unwrap().parse::<u32>().unwrap() < 8, "only its own processes: {told:?}");
}

#[test]
fn git_and_python_work_inside() {
    let ground = JobDirs::new();
    let told = tell(
        &sandbox(),
        &ground.shell("git init -q . && git commit -q --allow-empty -m x && git log --format='%an <%ae>'"),
    );
    assert_eq!(told.stdout, "agent <agent@herma.invalid>\n", "{}", told.stderr);
    let told = tell(
        &sandbox(),
        &ground.python("import getpass, os, ssl; print(getpass.getuser(), os.path.expanduser('~'))"),
    );
    assert_eq!(told.stdout, "agent /home/agent\n", "{}", told.stderr);
}

#[test]
fn mounts_are_readable_and_not_writable() {
    let ground = JobDirs::new();
    let tree = ground.dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), "content").unwrap();
    let mount = Mount { host: tree.clone(), inside: "/opt/place/tree".into() };
    let job =
        Job { mounts: vec![mount], ..ground.shell("cat /opt/place/tree/file; echo x > /opt/place/tree/new") };
    let told = tell(&sandbox(), &job);
    assert_eq!((told.stdout.as_str(), told.exit.success()), ("content", false));
    assert!(!tree.join("new").exists());
}

#[test]
fn a_hidden_directory_is_empty_inside_and_as_it_was_outside() {
    hides(&sandbox(), &JobDirs::new());
    // A destination that cannot hide a directory starts nothing.
    let ground = JobDirs::new();
    fs::create_dir(ground.workspace().join("dir")).unwrap();
    let job = Job { hidden: vec!["dir".to_owned()], ..ground.shell("true") };
    let refused = host().start(&job).err().map(|error| error.to_string());
    assert_eq!(
        refused.as_deref(),
        Some("the directory `dir` cannot be hidden: the destination `host` hides nothing")
    );
}

#[test]
fn the_inside_is_marked_and_the_outside_is_not() {
    let ground = JobDirs::new();
    let told = tell(&sandbox(), &ground.shell("test -e /herma/inside && echo marked"));
    assert_eq!(told.stdout, "marked\n");
    assert!(!herma_destination::inside_a_run());
}

#[test]
fn the_memory_limit_holds_on_both_destinations() {
    let ground = JobDirs::new();
    let script = "import mmap
try:
    mmap.mmap(-1, 900 << 20); print('got it')
except OSError as error:
    print('refused', error.errno)";
    for destination in both() {
        assert_eq!(tell(destination.as_ref(), &ground.python(script)).stdout, "got it\n");
        let job = Job { limits: Limits::with_memory(Some(Bytes(512 << 20))), ..ground.python(script) };
        let told = tell(destination.as_ref(), &job);
        assert_eq!(told.stdout, "refused 12\n", "{:?}: {}", destination.kind(), told.stderr);
    }
}

#[test]
fn standard_input_comes_from_the_file_that_was_named() {
    let ground = JobDirs::new();
    let file = ground.dir.path().join("input");
    fs::write(&file, "brief").unwrap();
    for destination in both() {
        let job = Job { stdin: Stdin::File(file.clone()), ..ground.job(&["cat"]) };
        assert_eq!(tell(destination.as_ref(), &job).stdout, "brief");
        assert_eq!(tell(destination.as_ref(), &ground.job(&["cat"])).stdout, "");
    }
}

#[test]
fn herma_and_a_process_can_talk_until_one_of_them_ends_it() {
    let ground = JobDirs::new();
    for destination in both() {
        talks(destination.as_ref(), &ground);
    }
}

#[test]
fn extra_directories_come_first_in_path() {
    let ground = JobDirs::new();
    let bin = ground.workspace().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("git"), "#!/bin/sh\necho mine\n").unwrap();
    fs::set_permissions(bin.join("git"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let inside = sandbox().view(&ground.job(&["x"]).paths).workspace.join("bin");
    let job = Job { search_path: vec![inside], ..ground.shell("git") };
    assert_eq!(tell(&sandbox(), &job).stdout, "mine\n");
    assert_eq!(tell(&host(), &Job { search_path: vec![bin], ..job }).stdout, "mine\n");
}

#[test]
fn a_missing_bubblewrap_is_reported_and_nothing_falls_back() {
    let ground = JobDirs::new();
    let missing = Sandbox::find(helper(), ground.dir.path().as_os_str());
    let unready = missing.readiness().unwrap_err();
    assert_eq!(unready.what, "bubblewrap is not installed");
    assert!(unready.next_step.contains("apt install bubblewrap"));
    let job = ground.shell("touch started");
    assert!(matches!(missing.start(&job), Err(StartError::Unready(_))));
    assert!(!ground.workspace().join("started").exists());
}

#[test]
fn a_bubblewrap_that_does_not_work_is_not_ready() {
    let ground = JobDirs::new();
    let fake = ground.dir.path().join("bwrap");
    for (script, said) in [
        ("echo bubblewrap 0.6.2", "too old"),
        (
            "[ \"$1\" = --version ] && echo bubblewrap 0.9.0 || { echo 'bwrap: no permissions' >&2; exit 1; }",
            "no permissions",
        ),
        ("exit 3", "does not work"),
    ] {
        fs::write(&fake, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let broken = Sandbox::find(helper(), ground.dir.path().as_os_str());
        let unready = broken.rehearse().unwrap_err();
        // A bubblewrap that belongs to a normal user is rejected.
        let said = if rustix::process::geteuid().is_root() { said } else { "is not the system's own" };
        assert!(unready.what.contains(said), "{unready}");
        assert!(broken.start(&ground.shell("true")).is_err());
    }
    let ready = sandbox().readiness().unwrap();
    assert!(ready.detail.starts_with("bubblewrap ") && ready.walls.len() > 3, "{ready:?}");
}

/// Sends `hello` to the first client.
fn answering(path: &std::path::Path) -> std::thread::JoinHandle<()> {
    let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        let (mut caller, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut caller, b"hello\n").unwrap();
    })
}

#[test]
fn the_routers_socket_is_reachable_at_the_path_of_the_view_and_cannot_be_replaced() {
    for destination in both() {
        let ground = JobDirs::new();
        let socket = ground.dir.path().join("router.sock");
        let answering = answering(&socket);
        let script = "import os, socket, sys
path = os.environ['SOCKET']
s = socket.socket(socket.AF_UNIX)
s.connect(path)
print(s.makefile().readline().strip())
if path.startswith('/herma/'):
    for attempt in (lambda: os.unlink(path), lambda: os.chmod(path, 0o777), lambda: os.rename(path, '/herma/x')):
        try:
            attempt()
            print('changed it')
        except OSError:
            pass";
        let mut job = ground.python(script);
        job.paths.router = Some(socket.clone());
        let inside = destination.view(&job.paths).router.unwrap();
        job.env = vec![("SOCKET".into(), inside.to_str().unwrap().into())];
        let told = tell(destination.as_ref(), &job);
        assert_eq!((told.stdout.as_str(), told.exit.code), ("hello\n", Some(0)), "{told:?}");
        answering.join().unwrap();
        assert!(socket.exists());
    }
}

#[test]
fn a_job_without_a_router_sees_none() {
    let ground = JobDirs::new();
    let job = ground.shell("ls /herma");
    assert_eq!(sandbox().view(&job.paths).router, None);
    assert_eq!(tell(&sandbox(), &job).stdout, "herma\ninside\nlandlock-canary\n");
}

#[test]
fn locks_on_what_a_job_can_open_keep_no_other_job_waiting() {
    let ground = JobDirs::new();
    let tool = ground.dir.path().join("tool");
    fs::create_dir(&tool).unwrap();
    let mounts = vec![Mount { host: tool, inside: "/opt/tool".into() }];
    let script = "import fcntl, time
held = [open(place) for place in ('/herma/herma', '/herma/inside')]
held += [os.open(place, os.O_RDONLY) for place in ('/workspace', '/engine', '/opt/tool')]
for file in held: fcntl.flock(file, fcntl.LOCK_EX)
open('ready', 'w').close()
time.sleep(600)";
    let job = Job { mounts: mounts.clone(), ..ground.python(&format!("import os\n{script}")) };
    let mut process = sandbox().start(&job).unwrap();
    until("it holds the locks", || ground.workspace().join("ready").exists());
    let other = Job { mounts, ..ground.shell("echo went on") };
    assert_eq!(tell(&sandbox(), &other).stdout, "went on\n");
    process.kill_all().unwrap();
}
