//! The seccomp filter: what it denies, and that programs work under it.

use std::fs;

use herma_destination::{IsolationLayer, Job, Mount};

use crate::support::{JobDirs, sandbox, tell};

/// Makes system calls by number, bypassing the C library.
const CALL: &str = "
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
X86 = platform.machine() == 'x86_64'
def call(number, *args):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in args])
    return errno.errorcode.get(ctypes.get_errno(), 'none') if result < 0 else 'done'
def number(x86, arm):
    return x86 if X86 else arm
";

fn python(ground: &JobDirs, script: &str) -> Job {
    ground.python(&format!("{CALL}\n{script}"))
}

#[test]
fn denied_calls_are_denied_by_number_too() {
    let ground = JobDirs::new();
    let script = "
open('own', 'w').close()
own, directory = os.open('own', os.O_RDONLY), os.open('.', os.O_RDONLY)
name = ctypes.create_string_buffer(b'huge')
import socket, struct
socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
accept = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0xffff))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 1, ctypes.addressof(accept)))
tried = {
    'mount': call(number(165, 40), 0, 0, 0, 0, 0),
    'pivot_root': call(number(155, 41), 0, 0),
    'chroot': call(number(161, 51), 0),
    'fsopen': call(430, 0, 0),
    'open_tree_attr': call(467, 0, 0, 0, 0, 0),
    'unshare': call(number(272, 97), 0x10000000),
    'unshare nothing': call(number(272, 97), 0),
    'setns': call(number(308, 268), 0, 0),
    'clone user': call(number(56, 220), 0x10000011, 0, 0, 0, 0),
    'clone net': call(number(56, 220), 0x40000011, 0, 0, 0, 0),
    'ptrace': call(number(101, 117), 0, 0, 0, 0),
    'process_vm_readv': call(number(310, 270), os.getpid(), 0, 0, 0, 0, 0),
    'pidfd_getfd': call(438, 0, 0, 0),
    'kexec_load': call(number(246, 104), 0, 0, 0, 0),
    'init_module': call(number(175, 105), 0, 0, 0),
    'bpf': call(number(321, 280), 0, 0, 0),
    'perf_event_open': call(number(298, 241), 0, 0, 0, 0, 0),
    'userfaultfd': call(number(323, 282), 1),
    'io_uring_setup': call(425, 1, 0),
    'keyctl': call(number(250, 219), 0, -3, 1),
    'add_key': call(number(248, 217), 0, 0, 0, 0, 0),
    'personality': call(number(135, 92), 0x0400000),
    'personality with more bits': call(number(135, 92), 0x1_0040_0000),
    'open_by_handle_at': call(number(304, 265), 0, 0, 0),
    'memfd_secret': call(447, 0),
    'F_SETLEASE': call(number(72, 25), own, 1024, 0),
    'F_SETLEASE to write': call(number(72, 25), own, 1024, 1),
    'F_SETLEASE with more bits': call(number(72, 25), own, 0x1_0000_0400, 0),
    'F_NOTIFY': call(number(72, 25), directory, 1026, 1),
    'F_SETDELEG': call(number(72, 25), own, 1040, 0),
    'MAP_HUGETLB': call(number(9, 222), 0, 1 << 21, 3, 0x40022, -1, 0),
    'MFD_HUGETLB': call(number(319, 279), ctypes.addressof(name), 4),
    'SHM_HUGETLB': call(number(29, 194), 0, 1 << 21, 0o4600 | 0o1000),
    'reboot': call(number(169, 142), 0, 0, 0, 0),
    'syslog': call(number(103, 116), 3, 0, 0),
    'packet': call(number(41, 198), 17, 3, 0),
    'packet with more bits': call(number(41, 198), 0x1_0000_0011, 3, 0),
    'vsock': call(number(41, 198), 40, 1, 0),
    'alg': call(number(41, 198), 38, 5, 0),
    'raw': call(number(41, 198), 2, 3, 1),
    'raw without waiting': call(number(41, 198), 2, 0o4003, 1),
    'raw 6': call(number(41, 198), 10, 3, 58),
    'uevents': call(number(41, 198), 16, 3, 15),
    'pair of packets': call(number(53, 199), 17, 3, 0, 0),
    'TIOCSTI': call(number(16, 29), 0, 0x5412, 0),
    'TIOCSTI with more bits': call(number(16, 29), 0, 0x1_0000_5412, 0),
    'TIOCLINUX': call(number(16, 29), 0, 0x541c, 0),
    'SO_ATTACH_FILTER': call(number(54, 208), socket.fileno(), 1, 26, ctypes.addressof(program), 16),
    'SO_ATTACH_FILTER with more bits': call(number(54, 208), socket.fileno(), 1, 0x1_0000_001a, ctypes.addressof(program), 16),
    'SO_ATTACH_BPF': call(number(54, 208), socket.fileno(), 1, 50, 0, 4),
    'SO_ATTACH_REUSEPORT_CBPF': call(number(54, 208), socket.fileno(), 1, 51, ctypes.addressof(program), 16),
    'SO_ATTACH_REUSEPORT_EBPF': call(number(54, 208), socket.fileno(), 1, 52, 0, 4),
}
for name, result in tried.items():
    if result != 'EPERM': print(name, result)
absent = {
    'clone3': call(435, 0, 0),
    'io_setup': call(number(206, 0), 1, 0),
    'cachestat': call(451, own, 0, 0, 0),
}
for name, result in absent.items():
    if result != 'ENOSYS': print(name, result)
print('all tried')";
    let told = tell(&sandbox(), &python(&ground, script));
    assert_eq!(told.stdout, "all tried\n", "{}", told.stderr);
}

#[test]
fn a_lease_on_a_file_that_is_mounted_from_the_host_is_refused() {
    let ground = JobDirs::new();
    let tool = ground.dir.path().join("tool");
    fs::create_dir(&tool).unwrap();
    fs::write(tool.join("file"), "").unwrap();
    let script = "
import fcntl
file = os.open('/opt/tool/file', os.O_RDONLY)
try:
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    print('taken')
except OSError as error: print(errno.errorcode[error.errno])";
    let mut job = python(&ground, script);
    job.mounts = vec![Mount { host: tool, inside: "/opt/tool".into() }];
    assert_eq!(tell(&sandbox(), &job).stdout, "EPERM\n");
    // The user owns the file, and only the filter denies the lease.
    assert_eq!(tell(&sandbox().without(IsolationLayer::Seccomp), &job).stdout, "taken\n");
}

#[test]
fn a_crash_starts_no_core_dump_handler() {
    let ground = JobDirs::new();
    let script = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))";
    let told = tell(&sandbox(), &python(&ground, script));
    // The kernel starts a handler that core_pattern names by a pipe for every limit but 1, 0 included.
    assert_eq!(told.stdout, "(1, 1)\n", "{}", told.stderr);
}

#[test]
fn calls_that_programs_need_are_allowed() {
    let ground = JobDirs::new();
    let script = "
import socket, threading, subprocess, pty, multiprocessing
socket.socketpair()
for family in socket.AF_UNIX, socket.AF_INET, socket.AF_INET6:
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
        socket.socket(family, kind)
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
socket.socket().setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
socket.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
threading.Thread(target=lambda: None).start()
subprocess.run(['true'], check=True)
pty.openpty()
multiprocessing.Semaphore()
import fcntl, mmap
with open('locked', 'w') as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    fcntl.lockf(file, fcntl.LOCK_EX)
    print(fcntl.fcntl(file, fcntl.F_GETLEASE) == fcntl.F_UNLCK)
mmap.mmap(-1, 1 << 21)
os.memfd_create('ordinary')
print(call(number(29, 194), 0, 4096, 0o1600))
print(call(number(294, 26), 0))
print(call(number(135, 92), 0xffffffff))
if os.fork() == 0: os._exit(0)
print(os.wait()[1])";
    let told = tell(&sandbox(), &python(&ground, script));
    assert_eq!(told.stdout, "True\ndone\ndone\ndone\n0\n", "{}", told.stderr);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn calls_of_a_foreign_architecture_kill() {
    let ground = JobDirs::new();
    let told = tell(&sandbox(), &python(&ground, "call(0x40000000 | 39); print('went on')"));
    assert_eq!((told.stdout.as_str(), told.exit.code), ("", Some(128 + 31)), "{told:?}");
    // mov eax, 20; int 0x80; ret: getpid as a 32-bit program asks for it.
    let script = "
import mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex('b814000000cd80c3'))
ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
print('went on')";
    let told = tell(&sandbox(), &python(&ground, script));
    assert_eq!(told.stdout, "", "{told:?}");
    // A kernel without 32-bit programs ends it with SIGSEGV.
    assert!(matches!(told.exit.code, Some(159 | 139)), "{told:?}");
}

#[test]
fn node_works_inside() {
    let ground = JobDirs::new();
    let script = "
const http = require('http'), os = require('os'), { Worker } = require('worker_threads'), fs = require('fs');
os.networkInterfaces();
new Worker('require(\"worker_threads\").parentPort.postMessage(1)', { eval: true }).on('message', () => {
  const server = http.createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1', async () => {
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/`);
    await fs.promises.writeFile('written', await answer.text());
    console.log(require('child_process').execSync('cat written').toString());
    process.exit(0);
  });
});";
    let told = tell(&sandbox(), &ground.job(&["node", "-e", script]));
    assert_eq!(told.stdout, "hello\n", "{}", told.stderr);
}
