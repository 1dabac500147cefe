//! The loopback relay: two ports of the sandbox's loopback lead to two sockets, and nothing else answers.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;

use herma_destination::{Destination as _, Job};

use crate::support::{JobDirs, host, sandbox, tell};

/// Reads until the client closes its side, then echoes in capitals.
fn echoing(ground: &JobDirs, name: &str) -> PathBuf {
    let path = ground.dir.path().join(name);
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for caller in listener.incoming() {
            let Ok(mut caller) = caller else { return };
            thread::spawn(move || {
                let mut said = Vec::new();
                let _ = caller.read_to_end(&mut said);
                said.make_ascii_uppercase();
                let _ = caller.write_all(&said);
                let _ = caller.shutdown(Shutdown::Write);
            });
        }
    });
    path
}

const CLIENT: &str = "
import hashlib, os, signal, socket, sys, threading, time
def at(url):
    host, port = url.removeprefix('http://').split(':')
    return host, int(port)
def ask(where, words):
    s = socket.create_connection(where, 20)
    threading.Thread(target=lambda: (s.sendall(words), s.shutdown(socket.SHUT_WR))).start()
    said = b''.join(iter(lambda: s.recv(1 << 16), b''))
    s.close()
    return said
";

fn client(ground: &JobDirs, script: &str) -> Job {
    let mut job = ground.python(&format!("{CLIENT}\n{script}"));
    job.paths.router = Some(echoing(ground, "router.sock"));
    job.paths.egress = Some(echoing(ground, "egress.sock"));
    job
}

#[test]
fn the_socket_for_tool_calls_is_reachable_by_its_path_and_cannot_be_removed() {
    let ground = JobDirs::new();
    let script = "
import os, socket
for attempt in lambda: os.unlink(PATH), lambda: os.rename(PATH, '/tmp/x'), lambda: os.chmod(PATH, 0), lambda: open(PATH, 'w'):
    try: attempt(); print('done')
    except OSError: pass
s = socket.socket(socket.AF_UNIX); s.connect(PATH)
s.sendall(b'tool'); s.shutdown(socket.SHUT_WR); print(s.recv(100).decode())";
    let mut job = ground.shell("ls /herma/governance.sock");
    assert_eq!(tell(&sandbox(), &job).stdout, "");
    job.paths.governance = Some(echoing(&ground, "governance.sock"));
    let path = sandbox().view(&job.paths).governance.unwrap();
    let paths = job.paths;
    let job = Job { paths, ..ground.python(&script.replace("PATH", &format!("'{}'", path.display()))) };
    let told = tell(&sandbox(), &job);
    assert_eq!(told.stdout, "TOOL\n", "{}", told.stderr);
}

#[test]
fn both_sockets_are_reached_through_the_ports_that_the_variables_name() {
    let ground = JobDirs::new();
    let script = "
print(ask(at(os.environ['HERMA_ROUTER_URL']), b'router').decode())
for name in 'HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy':
    print(ask(at(os.environ[name]), b'egress').decode())
print(os.environ['NO_PROXY'] == os.environ['no_proxy'] == '127.0.0.1,localhost,::1')";
    let job = client(&ground, script);
    let view = sandbox().view(&job.paths);
    assert!(view.router_port.is_some() && view.egress_port.is_some() && view.router_port != view.egress_port);
    let told = tell(&sandbox(), &job);
    assert_eq!(told.stdout, "ROUTER\nEGRESS\nEGRESS\nEGRESS\nEGRESS\nTrue\n", "{}", told.stderr);
    assert_eq!(host().view(&job.paths).router_port, None);
}

#[test]
fn many_bytes_and_many_connections_pass_unchanged() {
    let ground = JobDirs::new();
    let script = "
router, egress = at(os.environ['HERMA_ROUTER_URL']), at(os.environ['HTTP_PROXY'])
words = os.urandom(24 << 20)
print(hashlib.sha256(ask(router, words)).digest() == hashlib.sha256(words.upper()).digest())
# More than are let in at once: those beyond wait until one goes, and none is lost.
waiting = [socket.create_connection(egress, 20) for _ in range(360)]
for s in waiting: s.sendall(b'x')
for s in waiting: s.shutdown(socket.SHUT_WR)
print(all(s.recv(10) == b'X' for s in waiting))
print(ask(router, b'still there').decode())";
    let told = tell(&sandbox(), &client(&ground, script));
    assert_eq!(told.stdout, "True\nTrue\nSTILL THERE\n", "{}", told.stderr);
}

#[test]
fn nothing_else_answers() {
    let ground = JobDirs::new();
    let script = "
open_ports = []
for port in range(1, 65536):
    s = socket.socket()
    s.settimeout(1)
    if s.connect_ex(('127.0.0.1', port)) == 0 and s.getsockname() != s.getpeername(): open_ports.append(port)
    s.close()
print(sorted(open_ports) == sorted({at(os.environ['HERMA_ROUTER_URL'])[1], at(os.environ['HTTP_PROXY'])[1]}))";
    let told = tell(&sandbox(), &client(&ground, script));
    assert_eq!(told.stdout, "True\n", "{}", told.stderr);
    let without = tell(&sandbox(), &ground.shell("env | grep -i -e proxy -e router; ls /herma"));
    assert_eq!(without.stdout, "herma\ninside\nlandlock-canary\n");
}

#[test]
fn killing_everything_inside_does_not_end_the_relay() {
    let ground = JobDirs::new();
    let script = "
router = at(os.environ['HERMA_ROUTER_URL'])
print(ask(router, b'before').decode())
others = [int(name) for name in os.listdir('/proc') if name.isdigit() and int(name) not in (1, os.getpid())]
print(others)
try: os.kill(-1, signal.SIGKILL)
except OSError: pass
print(ask(router, b'after').decode())
sys.exit(5)";
    let told = tell(&sandbox(), &client(&ground, script));
    assert_eq!((told.stdout.as_str(), told.exit.code), ("BEFORE\n[]\nAFTER\n", Some(5)), "{}", told.stderr);
}

#[test]
fn a_command_has_no_file_but_its_streams_and_ports_that_nobody_else_can_take() {
    let ground = JobDirs::new();
    let script = "
print(sorted(os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))
try: socket.socket().bind(at(os.environ['HTTP_PROXY'])); print('taken')
except OSError as error: print(error.strerror)";
    let told = tell(&sandbox(), &client(&ground, script));
    // The fourth is the directory that is being read.
    assert_eq!(told.stdout, "['0', '1', '2'] 4\nAddress already in use\n", "{}", told.stderr);
}

#[test]
fn a_socket_with_a_long_path_is_reachable() {
    let ground = JobDirs::new();
    let deep = ground.dir.path().join("d".repeat(100)).join("e".repeat(100));
    std::fs::create_dir_all(&deep).unwrap();
    let mut job = client(&ground, "print(ask(at(os.environ['HTTP_PROXY']), b'deep').decode())");
    let socket = deep.join("egress.sock");
    std::fs::rename(job.paths.egress.unwrap(), &socket).unwrap();
    job.paths.egress = Some(socket);
    let told = tell(&sandbox(), &job);
    assert_eq!(told.stdout, "DEEP\n", "{}", told.stderr);
}

#[test]
fn the_command_has_no_child_that_it_did_not_start() {
    let ground = JobDirs::new();
    let script = "
try: os.wait(); print('a child')
except ChildProcessError: print('none')";
    let told = tell(&sandbox(), &client(&ground, script));
    assert_eq!(told.stdout, "none\n", "{}", told.stderr);
}
