//! The abilities and restrictions of a job in a container.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;

use herma_core::CancellationToken;
use herma_core::units::Bytes;
use herma_destination::probe::{self, ProbeSite};
use herma_destination::{
    Confinement, Destination as _, Docker, Exit, HeldBy, Job, LimitName, Limits, Mount, Stdin,
};

use super::daemon::Daemon;
use crate::support::{JobDirs, LONG, helper, hides, run_id, streams, talks, tell};

#[test]
fn a_job_in_a_container_has_its_directories_and_nothing_else() {
    let daemon = Daemon::start(helper());
    exit_codes_and_streams_come_back(&daemon);
    it_is_herma_alone_that_sets_variables(&daemon);
    it_writes_in_its_rooms_only(&daemon);
    it_leaves_nothing_for_the_next_job(&daemon);
    hides(&daemon.destination(), &JobDirs::new());
    it_has_no_network_but_the_way_out(&daemon);
    a_job_with_egress_trusts_the_host_ca_bundle(&daemon);
    its_limits_hold(&daemon);
    every_container_is_new_and_labelled(&daemon);
    a_command_that_cannot_start_is_an_error(&daemon);
    a_normal_user_is_the_same_user_inside(&daemon);
}

#[test]
fn every_probe_is_denied_in_a_container() {
    let daemon = Daemon::start(helper());
    let ground = JobDirs::new();
    let mut job = ground.job(&["x"]);
    job.mounts = vec![Mount { host: ground.workspace(), inside: "/opt/tool".into() }];
    let found = probed(&daemon.destination(), &ground, &job);
    assert_eq!(found.broken(), Vec::<&probe::ProbeResult>::new());
    assert_eq!(found.probes.len(), probe::rows().count());
    let user = found.probes.iter().find(|probe| probe.name == "share_user_namespace").unwrap();
    assert!(user.observed.contains("without privileges"), "{user:?}");
    let by_docker = |name| found.limits.iter().any(|held| held.name == name && held.by != HeldBy::Rlimit);
    assert!(
        [LimitName::Memory, LimitName::Processes, LimitName::Cpu].into_iter().all(by_docker),
        "{:?}",
        found.limits
    );
    assert_eq!(daemon.containers(job.run_id), Vec::<String>::new());

    // The one mount that would give everything away.
    fs::set_permissions(daemon.socket(), fs::Permissions::from_mode(0o666)).unwrap();
    job.mounts = vec![Mount { host: daemon.socket(), inside: "/run/docker.sock".into() }];
    let found = probed(&daemon.destination(), &ground, &job);
    let broken: Vec<&str> = found.broken().iter().map(|probe| probe.name.as_str()).collect();
    assert_eq!(broken, ["reach_container_socket"]);
}

fn probed(docker: &Docker, ground: &JobDirs, job: &Job) -> Confinement {
    let homes = ["herma", "home", "scratch"].map(|name| ground.dir.path().join(name));
    for home in &homes {
        fs::create_dir_all(home).unwrap();
    }
    let [herma_home, user_home, scratch] = &homes;
    let readiness = docker.readiness().unwrap();
    let cancellation = &CancellationToken::default();
    let site = ProbeSite { scratch, herma_home, user_home, cancellation };
    let found = probe::probe(docker, &readiness, job, site).unwrap();
    // The caller removes the scratch directory, and can do so at once.
    fs::remove_dir_all(scratch).unwrap();
    for home in [herma_home, user_home] {
        assert_eq!(fs::read_dir(home).unwrap().count(), 0, "nothing is left in {}", home.display());
    }
    found
}

fn exit_codes_and_streams_come_back(daemon: &Daemon) {
    let (ground, docker) = (JobDirs::new(), daemon.destination());
    let told = tell(&docker, &ground.shell("echo out; echo err >&2; exit 42"));
    assert_eq!(told.over, None);
    assert_eq!((told.stdout.as_str(), told.stderr.as_str()), ("out\n", "err\n"));
    assert_eq!(told.exit, Exit { code: Some(42), signal: None });
    for code in [0, 1, 125, 127, 137] {
        assert_eq!(tell(&docker, &ground.shell(&format!("exit {code}"))).exit.code, Some(code));
    }
    assert_eq!(tell(&docker, &ground.shell("kill -9 $$")).exit.code, Some(137), "128 plus the signal");

    let mut job = ground.python("import sys; text = sys.stdin.read(); print(len(text), text[-5:])");
    let file = ground.dir.path().join("brief");
    fs::write(&file, format!("{}the end", "x".repeat(3 << 20))).unwrap();
    job.stdin = Stdin::File(file);
    assert_eq!(tell(&docker, &job).stdout, format!("{} e end\n", (3 << 20) + 7));
    assert_eq!(tell(&docker, &ground.shell("cat; echo done")).stdout, "done\n", "nothing to read is an end");

    talks(&docker, &ground);

    // More than any buffer holds, on one stream after the other, and bytes that are no UTF-8.
    let script = "import sys
for stream in sys.stderr, sys.stdout:
    stream.buffer.write(b'0123456789\\0\\xff\\n' * 500000); stream.flush()";
    let mut process = docker.start(&ground.python(script)).unwrap();
    let (mut stdout, mut stderr) = (process.take_stdout().unwrap(), process.take_stderr().unwrap());
    let other = std::thread::spawn(move || {
        let mut all = Vec::new();
        stdout.read_to_end(&mut all).unwrap();
        all
    });
    let mut all = Vec::new();
    stderr.read_to_end(&mut all).unwrap();
    let expected = b"0123456789\0\xff\n".repeat(500_000);
    assert!(all == expected && other.join().unwrap() == expected, "both streams are whole");
    assert_eq!(process.wait(LONG).unwrap().unwrap().code, Some(0));

    // As it is written, not at the end.
    let mut process = docker.start(&ground.shell("echo first; sleep 600")).unwrap();
    let mut first = [0; 6];
    process.take_stdout().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"first\n");
    assert_eq!(process.wait(std::time::Duration::ZERO).unwrap(), None);
}

fn it_is_herma_alone_that_sets_variables(daemon: &Daemon) {
    let ground = JobDirs::new();
    let mut job = ground.shell("env");
    job.env = vec![("TOKEN".into(), "s3cret".into()), ("LC_CTYPE".into(), "C".into())];
    let told = tell(&daemon.destination(), &job);
    let all: BTreeMap<&str, &str> = told.stdout.lines().filter_map(|line| line.split_once('=')).collect();
    let run = job.run_id.to_string();
    assert_eq!(
        (all.get("TOKEN"), all.get("LC_CTYPE"), all.get("HERMA_RUN")),
        (Some(&"s3cret"), Some(&"C"), Some(&run.as_str()))
    );
    assert_eq!(all.get("LEAK"), None, "the image's variables are not the job's: {all:?}");
    assert!(!all.contains_key("HOSTNAME") && all.get("HOME") == Some(&"/home/agent"), "{all:?}");

    job.argv = vec!["sleep".into(), "600".into()];
    let mut process = daemon.destination().start(&job).unwrap();
    let id = daemon.containers(job.run_id).remove(0);
    assert!(!daemon.say(&["inspect", &id]).contains("s3cret"), "who may ask Docker does not read them");
    process.kill_all().unwrap();
}

fn it_writes_in_its_rooms_only(daemon: &Daemon) {
    let ground = JobDirs::new();
    fs::write(ground.workspace().join("given"), "1").unwrap();
    let script = "
for place in / /usr /etc /herma /proc/sys /var /root /bin; do touch $place/x 2>/dev/null && echo wrote $place; done
touch /herma/herma /herma/inside /etc/passwd /herma/landlock-canary 2>/dev/null && echo wrote a file
touch made given /engine/made /tmp/made $HOME/made && echo fine
id -u; id -un; ls /herma; cat /herma/inside; cat /etc/resolv.conf 2>/dev/null && echo names";
    let told = tell(&daemon.destination(), &ground.shell(script));
    let inside =
        if rustix::process::geteuid().is_root() { 1000 } else { rustix::process::geteuid().as_raw() };
    assert_eq!(
        told.stdout,
        format!("fine\n{inside}\nagent\nherma\ninside\nlandlock-canary\ndocker\n"),
        "{}",
        told.stderr
    );
    for file in ["workspace/made", "workspace/given", "engine/made", "workspace"] {
        let owner = fs::metadata(ground.dir.path().join(file)).unwrap().uid();
        assert_eq!(owner, rustix::process::geteuid().as_raw(), "{file} is herma's own afterwards");
    }
    // Changing the owner of a hard-linked file would change the other name too.
    fs::write(ground.dir.path().join("theirs"), "x").unwrap();
    fs::hard_link(ground.dir.path().join("theirs"), ground.workspace().join("linked")).unwrap();
    let refused = daemon.destination().start(&ground.shell("true")).err().map(|error| error.to_string());
    assert!(refused.as_ref().is_some_and(|said| said.contains("another name outside")), "{refused:?}");
    assert_eq!(
        fs::metadata(ground.dir.path().join("theirs")).unwrap().uid(),
        rustix::process::geteuid().as_raw()
    );
    fs::remove_file(ground.workspace().join("linked")).unwrap();
    // The owner of a symlink is restored, not that of its target.
    std::os::unix::fs::chown(ground.dir.path().join("theirs"), Some(65534), None).unwrap();
    std::os::unix::fs::symlink(ground.dir.path().join("theirs"), ground.workspace().join("link")).unwrap();
    tell(&daemon.destination(), &ground.shell("true"));
    assert_eq!(fs::metadata(ground.dir.path().join("theirs")).unwrap().uid(), 65534);
}

/// Landlock does not cover attributes, modes, times and locks, so that only the job's directories may be mounted
/// writable.
fn it_leaves_nothing_for_the_next_job(daemon: &Daemon) {
    let script = "
import os
for place in ['/herma', *('/herma/' + name for name in sorted(os.listdir('/herma'))), '/etc/passwd', '/etc/group']:
    if os.listxattr(place): print('left in', place, os.listxattr(place))
    try: os.setxattr(place, 'user.left', b'1')
    except OSError: pass
print('landlock canary' if os.path.exists('/herma/landlock-canary') else 'none')";
    for job in ["the first", "the next"] {
        let told = tell(&daemon.destination(), &JobDirs::new().python(script));
        assert_eq!(told.stdout, "landlock canary\n", "{job}: {}", told.stderr);
    }

    let ground = JobDirs::new();
    let job = ground.shell("sleep 600");
    let mut process = daemon.destination().start(&job).unwrap();
    let id = daemon.containers(job.run_id).remove(0);
    let format = "{{range .Mounts}}{{if .RW}}{{.Destination}} {{end}}{{end}}";
    let said = daemon.say(&["inspect", "--format", format, &id]);
    process.kill_all().unwrap();
    let mut writable: Vec<&str> = said.split_whitespace().collect();
    writable.sort_unstable();
    assert_eq!(writable, ["/engine", "/workspace"]);
}

/// Reads until the client closes its side, then echoes in capitals.
fn echoing(ground: &JobDirs, name: &str) -> PathBuf {
    let path = ground.dir.path().join(name);
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for caller in listener.incoming() {
            let Ok(mut caller) = caller else { return };
            let mut said = Vec::new();
            let _ = caller.read_to_end(&mut said);
            said.make_ascii_uppercase();
            let _ = caller.write_all(&said);
        }
    });
    path
}

fn it_has_no_network_but_the_way_out(daemon: &Daemon) {
    let ground = JobDirs::new();
    let script = "
import os, socket
print(sorted(os.listdir('/sys/class/net')) if os.path.exists('/sys/class/net') else ['lo'])
for where in ('192.0.2.1', 80), ('169.254.169.254', 80):
    try: socket.create_connection(where, 3); print('connected')
    except OSError as error: print(error.strerror)
def ask(url, words):
    host, port = url.removeprefix('http://').split(':')
    s = socket.create_connection((host, int(port)), 20)
    s.sendall(words); s.shutdown(socket.SHUT_WR)
    return b''.join(iter(lambda: s.recv(1 << 16), b'')).decode()
print(ask(os.environ['HERMA_ROUTER_URL'], b'router'), ask(os.environ['HTTPS_PROXY'], b'egress'))
s = socket.socket(socket.AF_UNIX); s.connect('/herma/governance.sock')
s.sendall(b'tool'); s.shutdown(socket.SHUT_WR); print(s.recv(100).decode())
try: os.unlink('/herma/governance.sock')
except OSError: print('stays')";
    let mut job = ground.python(script);
    job.paths.governance = Some(echoing(&ground, "governance.sock"));
    job.paths.router = Some(echoing(&ground, "router.sock"));
    job.paths.egress = Some(echoing(&ground, "egress.sock"));
    let told = tell(&daemon.destination(), &job);
    let unreachable = "Network is unreachable\n";
    assert_eq!(
        told.stdout,
        format!("['lo']\n{unreachable}{unreachable}ROUTER EGRESS\nTOOL\nstays\n"),
        "{}",
        told.stderr
    );
}

/// The image has no certificates. A job with egress trusts the host's CA bundle, and cannot change it.
fn a_job_with_egress_trusts_the_host_ca_bundle(daemon: &Daemon) {
    let ground = JobDirs::new();
    let script = "
import hashlib, os, ssl
file = '/etc/ssl/certs/ca-certificates.crt'
print(len(ssl.create_default_context().get_ca_certs()) > 0, os.environ.get('SSL_CERT_FILE') == file)
for file in file, '/etc/pki/tls/certs/ca-bundle.crt':
    print(hashlib.sha256(open(file, 'rb').read()).hexdigest() if os.path.exists(file) else 'none')
    try: open(file, 'ab'); print('opened')
    except OSError: pass";
    let mut job = ground.python(script);
    let said =
        |told: &crate::support::Told| -> Vec<String> { told.stdout.lines().map(str::to_owned).collect() };
    let without = tell(&daemon.destination(), &job);
    assert_eq!(said(&without), ["False False", "none", "none"], "{}", without.stderr);
    job.paths.egress = Some(echoing(&ground, "egress.sock"));
    let own = herma_core::Digest::of(&fs::read("/etc/ssl/certs/ca-certificates.crt").unwrap()).to_string();
    let own = own.trim_start_matches("sha256:");
    let with = tell(&daemon.destination(), &job);
    assert_eq!(said(&with), ["True True", own, own], "{}", with.stderr);
}

fn its_limits_hold(daemon: &Daemon) {
    let docker = daemon.destination();
    let with = |script: &str, change: &dyn Fn(&mut Limits)| {
        let ground = JobDirs::new();
        let mut job = ground.python(script);
        change(&mut job.limits);
        tell(&docker, &job)
    };
    let told = with("x = bytearray(400 << 20)", &|limits| limits.total_memory = Bytes(100 << 20));
    assert_eq!((told.exit.code, told.over), (Some(137), Some(LimitName::Memory)), "{told:?}");
    let forks = "
import os, time
n = 0
try:
    while n < 200:
        if os.fork() == 0: time.sleep(60); os._exit(0)
        n += 1
except OSError: pass
print(n < 40)";
    let told = with(forks, &|limits| limits.processes = 40);
    assert_eq!((told.stdout.as_str(), told.over), ("True\n", Some(LimitName::Processes)), "{told:?}");
    let files = "
import os
n = 0
try:
    while n < 100: os.open('/dev/null', os.O_RDONLY); n += 1
except OSError: pass
print(n < 32)";
    assert_eq!(with(files, &|limits| limits.open_files = 32).stdout, "True\n");
    let large = "
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try: open('x', 'wb').write(b'x' * 3000000); print('written')
except OSError as error: print(error.strerror)";
    assert_eq!(with(large, &|limits| limits.file_size = Bytes(1 << 20)).stdout, "File too large\n");
    for place in ["/tmp", "/home/agent", "/dev/shm"] {
        let fill = format!(
            "try: open('{place}/x', 'wb').write(b'x' * 9000000); print('written')\nexcept OSError as error: print(error.strerror)"
        );
        let told = with(&fill, &|limits| {
            (limits.tmp, limits.home, limits.shared_memory) =
                (Bytes(4 << 20), Bytes(4 << 20), Bytes(4 << 20));
        });
        assert_eq!(told.stdout, "No space left on device\n", "{place}");
    }
    let ground = JobDirs::new();
    let mut job = ground.python("import time\nopen('x', 'wb').write(b'x' * (30 << 20)); time.sleep(600)");
    job.limits.disk = Bytes(10 << 20);
    let mut process = docker.start(&job).unwrap();
    assert_eq!(process.wait(LONG).unwrap(), Some(Exit { code: None, signal: Some(9) }));
    assert_eq!(process.exceeded_limit(), Some(LimitName::Disk));
}

fn every_container_is_new_and_labelled(daemon: &Daemon) {
    let (ground, docker) = (JobDirs::new(), daemon.destination());
    let mut job = ground.shell("sleep 600");
    let mut seen = |change: &dyn Fn(&mut Job)| {
        change(&mut job);
        let mut process = docker.start(&job).unwrap();
        let found = daemon.containers(job.run_id);
        let [id] = &found[..] else { panic!("{found:?}") };
        let spec = daemon.say(&["inspect", "--format", "{{index .Config.Labels \"herma.spec\"}}", id]);
        process.kill_all().unwrap();
        assert_eq!(daemon.containers(job.run_id), Vec::<String>::new(), "removed when it has ended");
        (id.clone(), spec)
    };
    let (first, spec) = seen(&|_| ());
    let (second, same) = seen(&|_| ());
    assert!(first != second && spec == same && spec.starts_with("sha256:"), "{spec} {same}");
    let mut specs = vec![spec];
    specs.push(seen(&|job| job.limits.processes = 99).1);
    specs.push(seen(&|job| job.limits.tmp = Bytes(1 << 20)).1);
    specs.push(seen(&|job| job.env.push(("A".into(), "1".into()))).1);
    specs.push(seen(&|job| job.mounts.push(Mount { host: "/usr/share".into(), inside: "/opt/x".into() })).1);
    fs::create_dir(ground.workspace().join("own")).unwrap();
    specs.push(seen(&|job| job.hidden.push("own".into())).1);
    specs.push(seen(&|job| job.argv.push("x".into())).1);
    let count = specs.len();
    specs.sort_unstable();
    specs.dedup();
    assert_eq!(specs.len(), count, "whatever changes, the digest does");
}

fn a_command_that_cannot_start_is_an_error(daemon: &Daemon) {
    let (ground, docker) = (JobDirs::new(), daemon.destination());
    let mut process = docker.start(&ground.job(&["no-such-program"])).unwrap();
    let read = streams(process.as_mut());
    let error = process.wait(LONG).unwrap_err().to_string();
    assert!(error.contains("could not start the command") && error.contains("no-such-program"), "{error}");
    process.kill_all().unwrap();
    let said: Vec<String> = read.into_iter().map(|read| read.join().unwrap()).collect();
    assert_eq!(said[0], "", "what the keeper says is not the command's");

    let mut job = ground.shell("true");
    job.mounts = vec![Mount { host: ground.dir.path().join("missing"), inside: "/opt/x".into() }];
    let error = docker.start(&job).err().unwrap().to_string();
    assert!(error.contains("missing"), "{error}");
    job.mounts = vec![Mount { host: "/usr".into(), inside: "/herma".into() }];
    assert!(docker.start(&job).is_err());
    assert_eq!(daemon.containers(job.run_id), Vec::<String>::new());
}

/// A user of Docker who is not root: no owner changes, and written files belong to that user.
fn a_normal_user_is_the_same_user_inside(daemon: &Daemon) {
    let ground = JobDirs::new();
    let place = ground.dir.path();
    fs::set_permissions(daemon.socket(), fs::Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(place, fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(daemon.socket().parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(ground.workspace(), Some(65534), Some(65534)).unwrap();
    fs::copy(helper(), place.join("helper")).unwrap();
    let kind = format!("docker={},{},{}/files", daemon.image(), daemon.socket().display(), place.display());
    let run = run_id();
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(place.join("helper"))
        .args([&kind, &run.to_string()])
        .arg(ground.workspace())
        .args(["sh", "-c", "id -u > who; id -un >> who"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_to_string(ground.workspace().join("who")).unwrap(), "65534\nagent\n");
    assert_eq!(fs::metadata(ground.workspace().join("who")).unwrap().uid(), 65534);
    assert_eq!(daemon.containers(run), Vec::<String>::new());
}
