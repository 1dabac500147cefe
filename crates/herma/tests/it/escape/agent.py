# What the attempts share, and how each is made: in a process of its own, with one line to say what came of it.
# herma's test puts `W` (where the canaries are) before this and the attempts after it.
import ctypes, errno, fcntl, json, os, platform, resource, signal, socket, stat, struct, subprocess, sys, threading, time

OPEN_AT_START = {number: os.readlink(f'/proc/self/fd/{number}') for number in os.listdir('/proc/self/fd')
                 if os.path.lexists(f'/proc/self/fd/{number}')}
libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == 'x86_64'
# Numbers of system calls: on x86_64 and elsewhere. From 424 on they are the same everywhere.
CALLS = {'mount': (165, 40), 'umount2': (166, 39), 'pivot_root': (155, 41), 'clone': (56, 220), 'unshare': (272, 97),
         'setns': (308, 268), 'ptrace': (101, 117), 'process_vm_readv': (310, 270), 'name_to_handle_at': (303, 264),
         'open_by_handle_at': (304, 265), 'add_key': (248, 217), 'request_key': (249, 218), 'keyctl': (250, 219),
         'bpf': (321, 280), 'perf_event_open': (298, 241), 'userfaultfd': (323, 282), 'finit_module': (313, 273),
         'kexec_load': (246, 104), 'reboot': (169, 142), 'syslog': (103, 116), 'personality': (135, 92),
         'fanotify_init': (300, 262), 'acct': (163, 89), 'swapon': (167, 224), 'capset': (126, 91), 'shmat': (30, 196),
         'clock_settime': (227, 112), 'sethostname': (170, 161), 'prctl': (157, 167), 'chroot': (161, 51),
         'io_setup': (206, 0), 'mmap': (9, 222), 'memfd_create': (319, 279), 'shmget': (29, 194), 'cachestat': 451,
         'io_uring_setup': 425, 'open_tree': 428, 'fsopen': 430, 'clone3': 435, 'pidfd_open': 434, 'pidfd_getfd': 438,
         'mount_setattr': 442}
NEWNS, NEWNET, NEWUSER = 0x20000, 0x40000000, 0x10000000


class Out(Exception):
    """It got out."""


def got(what):
    raise Out(repr(what)[:200])


def call(name, *words):
    """A system call; an error is an OSError."""
    number = CALLS[name]
    number = number if isinstance(number, int) else number[0 if X86 else 1]
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    libc.syscall.restype = ctypes.c_long
    answer = libc.syscall(ctypes.c_long(number), *words)
    if answer < 0:
        raise OSError(ctypes.get_errno(), name)
    return answer


def read(path):
    """Reads a file that must not be there."""
    with open(path, 'rb') as file:
        got(file.read(200))


def opened(path, flags=os.O_WRONLY):
    """Opens what must not be opened, and writes nothing."""
    os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY))
    got(path)


def each(attempt, places):
    """Tries all of them; what refused each, every word once."""
    words = set()
    for place in places:
        try:
            words.add(attempt(place) or 'nothing')
        except OSError as error:
            words.add(word(error))
    return '+'.join(sorted(words)) or 'none-there'


def word(error):
    if isinstance(error, TimeoutError) and error.errno is None:
        return 'silence'
    return errno.errorcode.get(error.errno, f'errno-{error.errno}')


def pids():
    return [int(name) for name in os.listdir('/proc') if name.isdigit() and int(name) != os.getpid()]


def outsider():
    """Whether the number of the process outside is its own here, and not one of ours with the same."""
    try:
        return W['mark'].encode() in open(f"/proc/{W['pid']}/cmdline", 'rb').read()
    except OSError:
        return False


def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as s:
        s.settimeout(2)
        s.connect(address)
        got(address)


def send(address, family=socket.AF_INET):
    """A datagram. Where nobody takes it the second one is refused; where nothing refuses it, it is out."""
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(0.3)
        s.connect(address)
        for _ in range(3):
            s.send(b'escaped')
            time.sleep(0.05)
        got(address)


def proxy():
    host, port = os.environ['HTTPS_PROXY'].rsplit('/', 1)[1].split(':')
    s = socket.create_connection((host, int(port)), 5)
    return s


def ask(head):
    """The proxy's answer: its status, where that is a refusal."""
    with proxy() as s:
        s.sendall(head.replace('\n', '\r\n').encode())
        answer = s.recv(4096)
    if not answer.startswith((b'HTTP/1.1 4', b'HTTP/1.1 5')):
        got(answer)
    return 'http-' + answer.split()[1].decode()


def tunnel(to):
    return ask(f'CONNECT {to} HTTP/1.1\nHost: {to}\n\n')


def run(*words):
    """A program; what it said where it did what must not be."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=8)
    if done.returncode == 0:
        got(done.stdout)
    return 'failed'


def scratch(name):
    """A name in a place of its own that is gone with the run."""
    place = f"{os.environ.get('TMPDIR', '/tmp')}/escape-{os.getpid()}"
    os.makedirs(place, exist_ok=True)
    return f'{place}/{name}'


def attempt_in_child(attempt, answer):
    signal.alarm(10)
    try:
        said = attempt() or 'nothing'
    except Out as out:
        said = f'got-out {out}'
    except OSError as error:
        said = word(error)
    except BaseException as error:
        said = f'broke {error!r}'
    os.write(answer, said.encode())
    os._exit(0)


def main(attempts):
    for attempt in attempts:
        mine, answer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(mine)
            attempt_in_child(attempt, answer)
        os.close(answer)
        said = b''
        while part := os.read(mine, 4096):
            said += part
        os.close(mine)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            said = signal.Signals(os.WTERMSIG(status)).name.encode()
        print('attempt', attempt.__name__, said.decode().replace('\n', ' '), flush=True)
