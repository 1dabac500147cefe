//! The hidden `herma __keep`: the init process of a container. It starts the command, reaps orphans, and exits,
//! which ends everything inside, when the command exits or herma dies.
//!
//! herma holds the other end of its stdin, through Docker. The kernel closes that end when herma dies, also by
//! SIGKILL. If Docker dies, herma kills the container through its own pidfd of this process.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::io::FdFlags;
use rustix::pipe::PipeFlags;
use rustix::process::{DumpableBehavior, WaitOptions, WaitStatus, set_dumpable_behavior};

use super::restriction::Restriction;
use super::wire::{GO, INPUT, KeeperMessage, KeeperOrder, MAX_INPUT_CHUNK_BYTES, StdinSource, TERMINATE};
use crate::enabled_layers::EnabledLayers;
use crate::launcher::NOT_STARTED;
use crate::sandbox::seccomp;
use crate::{cgroup, memory, sandbox::layout};

/// The name of the hidden subcommand.
pub const SUBCOMMAND: &str = "__keep";

/// The descriptor of the launcher's report pipe.
pub(super) const REPORT_FD: i32 = 100;

/// Enough for threads that wait and copy small messages.
const STACK_BYTES: usize = 256 << 10;

/// Every process inside except the keeper itself.
const ALL_PROCESSES: Pid = Pid::from_raw(-1);

/// Runs the keeper; the exit code is the command's.
#[must_use]
pub fn run() -> ExitCode {
    match keep() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(io::stderr(), "herma could not keep the container: {error}");
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn keep() -> io::Result<u8> {
    // Outside of a container its signals would reach every process of the user.
    if !rustix::process::getpid().is_init() {
        return Err(io::Error::other("it is not the first process of a container"));
    }
    // Processes inside have the same user and must not read the token from its memory.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let enabled = enabled();
    // herma's filter sets it too. But Docker was asked for it, and may have silently dropped other options as well.
    if enabled.has(Restriction::NoNewPrivileges) && !rustix::thread::no_new_privs()? {
        return Err(io::Error::other("Docker lets programs gain new privileges, against its configuration"));
    }
    let order = KeeperOrder::read(&mut io::stdin())?;
    // From here on for every process: Docker's own filter depends on its version.
    if enabled.has(Restriction::Filter) && enabled.has(Restriction::NoNewPrivileges) {
        seccomp::enforce()?;
    }
    say(&order, &KeeperMessage::Ready)?;
    let mut word = [0];
    io::stdin().read_exact(&mut word)?;
    if word != [GO] {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "expected the start signal"));
    }

    let (report, report_inside) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let report_inside = rustix::io::fcntl_dupfd_cloexec(report_inside, REPORT_FD)?;
    if report_inside.as_raw_fd() != REPORT_FD {
        return Err(io::Error::other("too many open files"));
    }
    rustix::io::fcntl_setfd(&report_inside, FdFlags::empty())?;
    // This thread starts the command and then only waits for the first of the other threads: those read and write,
    // and may hang, and the command dies with the thread that started it. They are created before the command,
    // which may use up all threads.
    let order = Arc::new(order);
    let born = Arc::new(OnceLock::new());
    let (over, ended) = mpsc::channel();
    let own_thread = || thread::Builder::new().stack_size(STACK_BYTES);
    let (input, chunks) = match order.stdin {
        StdinSource::Chunks => Some(feed(own_thread())?).unzip(),
        StdinSource::Nothing | StdinSource::Text(_) => (None, None),
    };
    let (awaited, lost) = (Arc::clone(&born), over.clone());
    own_thread().spawn(move || {
        awaited.wait();
        drop(lost.send(listen(chunks)));
    })?;
    let (awaited, told) = (Arc::clone(&born), Arc::clone(&order));
    own_thread().spawn(move || drop(over.send(report_exit(&told, *awaited.wait(), report))))?;

    let mut argv = order.argv.iter();
    let program = argv.next().ok_or_else(|| io::Error::other("there is no command"))?;
    let mut command = Command::new(program);
    if enabled.has(Restriction::Environment) {
        command.env_clear();
    }
    let left_open = (!enabled.has(Restriction::Files)).then(|| rustix::io::dup(io::stderr())).transpose()?;
    let mut child = command
        .args(argv)
        .envs(order.env.iter().map(|(name, value)| (name, value)))
        .current_dir(layout::WORKSPACE)
        .stdin(match &order.stdin {
            StdinSource::Nothing => Stdio::null(),
            StdinSource::Text(text) => memory::file(text)?.into(),
            StdinSource::Chunks => Stdio::piped(),
        })
        .spawn()?;
    if let (Some(input), Some(stream)) = (input, child.stdin.take()) {
        // An error means that the forwarding thread is gone, which the writer notices.
        let _ = input.send(stream);
    }
    drop((report_inside, left_open));
    let _ = born.set(child.id());
    ended.recv().map_err(io::Error::other)?
}

/// The enabled restrictions: all, except in a test build.
fn enabled() -> EnabledLayers<Restriction> {
    #[cfg(feature = "test-switches")]
    let enabled = super::test_switches::told();
    #[cfg(not(feature = "test-switches"))]
    let enabled = EnabledLayers::default();
    enabled
}

/// Waits for the command's exit and reports it.
fn report_exit(order: &KeeperOrder, child: u32, report: OwnedFd) -> io::Result<u8> {
    let code = reap_until(child)?;
    let mut why = String::new();
    // Nothing to read is an error here, and means that the launcher executed the command.
    let _ = File::from(report).read_to_string(&mut why);
    if why.is_empty() {
        if let Some(limit) = cgroup::met_inside() {
            say(order, &KeeperMessage::Met(limit))?;
        }
        say(order, &KeeperMessage::Ended(code.into()))?;
        return Ok(code);
    }
    say(order, &KeeperMessage::Failed(why))?;
    Ok(NOT_STARTED)
}

/// Reads herma's messages until stdin closes: then herma is gone, and everything here ends.
fn listen(mut chunks: Option<mpsc::Sender<Vec<u8>>>) -> io::Result<u8> {
    let mut word = [0];
    while io::stdin().read_exact(&mut word).is_ok() {
        match word {
            [TERMINATE] => {
                // An error means that there is no other process.
                let _ = kill(ALL_PROCESSES, Signal::SIGTERM);
            }
            [INPUT] => {
                let chunk = chunk()?;
                // An empty chunk is the end of stdin; if the command has closed its stdin, chunks are dropped.
                let end = chunk.is_empty();
                if end || chunks.as_ref().is_some_and(|chunks| chunks.send(chunk).is_err()) {
                    chunks = None;
                }
            }
            _ => {}
        }
    }
    Err(io::Error::other("herma is gone"))
}

/// Reads one chunk of stdin.
fn chunk() -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    io::stdin().read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > MAX_INPUT_CHUNK_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a chunk of input is too long"));
    }
    let mut chunk = vec![0; length];
    io::stdin().read_exact(&mut chunk)?;
    Ok(chunk)
}

/// Forwards chunks to the command's stdin from a thread of its own: a command that does not read must not block the
/// keeper. herma bounds the number of queued bytes.
fn feed(thread: thread::Builder) -> io::Result<(mpsc::Sender<ChildStdin>, mpsc::Sender<Vec<u8>>)> {
    let (opened, input) = mpsc::channel::<ChildStdin>();
    let (chunks, waiting) = mpsc::channel::<Vec<u8>>();
    thread.spawn(move || {
        let Ok(mut input) = input.recv() else { return };
        while waiting.recv().is_ok_and(|chunk| input.write_all(&chunk).is_ok()) {}
    })?;
    Ok((opened, chunks))
}

/// Reaps every child, own or orphaned, until this one exits; a signal is 128 plus its number.
fn reap_until(child: u32) -> io::Result<u8> {
    loop {
        let Some((pid, status)) = rustix::io::retry_on_intr(|| rustix::process::wait(WaitOptions::empty()))?
        else {
            continue;
        };
        if u32::try_from(pid.as_raw_nonzero().get()) == Ok(child)
            && let Some(code) = code(status)
        {
            return Ok(code);
        }
    }
}

fn code(status: WaitStatus) -> Option<u8> {
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal))?;
    u8::try_from(code).ok()
}

fn say(order: &KeeperOrder, message: &KeeperMessage) -> io::Result<()> {
    let mut stdout = File::from(rustix::io::dup(io::stdout())?);
    stdout.write_all(&message.bytes(&order.token))
}
