//! The body of the hidden `herma __keep`: the first process of a container. It starts the command, reaps what is
//! orphaned, and ends, and with it everything inside, when the command ends or when herma is gone.
//!
//! herma holds the other end of its standard input, through Docker. The kernel closes that end when herma dies, also
//! by SIGKILL: nothing has to be asked, and nobody has to come back. Where Docker dies it is herma that ends the
//! container, by its own handle on this process.

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

use super::piece::Piece;
use super::wire::{GO, INPUT, Input, LONGEST_INPUT, Message, Order, TERMINATE};
use crate::launcher::NOT_STARTED;
use crate::sandbox::seccomp;
use crate::standing::Standing;
use crate::{cgroup, memory, sandbox::layout};

/// The name of the hidden subcommand.
pub const SUBCOMMAND: &str = "__keep";

/// The number under which the launcher finds the pipe for its report.
pub(super) const REPORT: i32 = 100;

/// Enough for threads that wait and copy a few words.
const STACK: usize = 256 << 10;

/// Everything inside, but not the keeper itself.
const EVERYBODY: Pid = Pid::from_raw(-1);

/// Keeps one container; the exit code is the command's.
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
    // Anywhere else its signals would reach everything that the user has started.
    if !rustix::process::getpid().is_init() {
        return Err(io::Error::other("it is not the first process of a container"));
    }
    // Nobody inside reads the token out of its memory: the user is the same.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let standing = standing();
    // herma's filter sets it too. But Docker was asked, and what it leaves out in silence may not be all.
    if standing.has(Piece::NoNewPrivileges) && !rustix::thread::no_new_privs()? {
        return Err(io::Error::other("Docker lets programs gain new privileges, though it was told not to"));
    }
    let order = Order::read(&mut io::stdin())?;
    // Around everything from here on: what Docker's own filter lets through depends on Docker's version.
    if standing.has(Piece::Filter) && standing.has(Piece::NoNewPrivileges) {
        seccomp::enforce()?;
    }
    say(&order, &Message::Ready)?;
    let mut word = [0];
    io::stdin().read_exact(&mut word)?;
    if word != [GO] {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "that was not the word to go"));
    }

    let (report, report_inside) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let report_inside = rustix::io::fcntl_dupfd_cloexec(report_inside, REPORT)?;
    if report_inside.as_raw_fd() != REPORT {
        return Err(io::Error::other("too many open files"));
    }
    rustix::io::fcntl_setfd(&report_inside, FdFlags::empty())?;
    // This thread starts the command and then does nothing but wait for whichever comes first: one that reads and one that
    // writes may hang, and the command, which dies with the thread that started it, must not outlive both. They are made
    // before it, which may leave no room for any other.
    let order = Arc::new(order);
    let born = Arc::new(OnceLock::new());
    let (over, ended) = mpsc::channel();
    let own_thread = || thread::Builder::new().stack_size(STACK);
    let (input, pieces) = match order.stdin {
        Input::Pieces => Some(feed(own_thread())?).unzip(),
        Input::Nothing | Input::Text(_) => (None, None),
    };
    let (awaited, lost) = (Arc::clone(&born), over.clone());
    own_thread().spawn(move || {
        awaited.wait();
        drop(lost.send(listen(pieces)));
    })?;
    let (awaited, told) = (Arc::clone(&born), Arc::clone(&order));
    own_thread().spawn(move || drop(over.send(see_out(&told, *awaited.wait(), report))))?;

    let mut argv = order.argv.iter();
    let program = argv.next().ok_or_else(|| io::Error::other("there is no command"))?;
    let mut command = Command::new(program);
    if standing.has(Piece::Environment) {
        command.env_clear();
    }
    let left_open = (!standing.has(Piece::Files)).then(|| rustix::io::dup(io::stderr())).transpose()?;
    let mut child = command
        .args(argv)
        .envs(order.env.iter().map(|(name, value)| (name, value)))
        .current_dir(layout::WORKSPACE)
        .stdin(match &order.stdin {
            Input::Nothing => Stdio::null(),
            Input::Text(text) => memory::file(text)?.into(),
            Input::Pieces => Stdio::piped(),
        })
        .spawn()?;
    if let (Some(input), Some(stream)) = (input, child.stdin.take()) {
        // An error says that nobody passes anything on any more, which who feeds it will hear.
        let _ = input.send(stream);
    }
    drop((report_inside, left_open));
    let _ = born.set(child.id());
    ended.recv().map_err(io::Error::other)?
}

/// Which pieces of the walls stand: all of them, but in a build for tests.
fn standing() -> Standing<Piece> {
    #[cfg(feature = "test-switches")]
    let standing = super::loosened::told();
    #[cfg(not(feature = "test-switches"))]
    let standing = Standing::default();
    standing
}

/// Waits for the command's end and says how it was.
fn see_out(order: &Order, child: u32, report: OwnedFd) -> io::Result<u8> {
    let code = reap_until(child)?;
    let mut why = String::new();
    // Nothing to read is an error here, and means that the launcher became the command.
    let _ = File::from(report).read_to_string(&mut why);
    if why.is_empty() {
        if let Some(limit) = cgroup::met_inside() {
            say(order, &Message::Met(limit))?;
        }
        say(order, &Message::Ended(code.into()))?;
        return Ok(code);
    }
    say(order, &Message::Failed(why))?;
    Ok(NOT_STARTED)
}

/// Hears what herma says, until it says nothing more: then it is gone, and everything here ends.
fn listen(mut pieces: Option<mpsc::Sender<Vec<u8>>>) -> io::Result<u8> {
    let mut word = [0];
    while io::stdin().read_exact(&mut word).is_ok() {
        match word {
            [TERMINATE] => {
                // An error says that there is nobody else.
                let _ = kill(EVERYBODY, Signal::SIGTERM);
            }
            [INPUT] => {
                let piece = piece()?;
                // An empty one is the end; and where the command reads no more, nothing is kept for it.
                let end = piece.is_empty();
                if end || pieces.as_ref().is_some_and(|pieces| pieces.send(piece).is_err()) {
                    pieces = None;
                }
            }
            _ => {}
        }
    }
    Err(io::Error::other("herma is gone"))
}

/// The piece of input that comes next.
fn piece() -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    io::stdin().read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > LONGEST_INPUT {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a piece of input is too long"));
    }
    let mut piece = vec![0; length];
    io::stdin().read_exact(&mut piece)?;
    Ok(piece)
}

/// Passes pieces on to the command's input, once that is there, from a thread of its own: a command that does not read must
/// not keep the keeper from hearing herma. herma bounds what waits here.
fn feed(thread: thread::Builder) -> io::Result<(mpsc::Sender<ChildStdin>, mpsc::Sender<Vec<u8>>)> {
    let (opened, input) = mpsc::channel::<ChildStdin>();
    let (pieces, waiting) = mpsc::channel::<Vec<u8>>();
    thread.spawn(move || {
        let Ok(mut input) = input.recv() else { return };
        while waiting.recv().is_ok_and(|piece| input.write_all(&piece).is_ok()) {}
    })?;
    Ok((opened, pieces))
}

/// Reaps every child, own or orphaned, until this one has ended; a signal is 128 plus its number.
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

fn say(order: &Order, message: &Message) -> io::Result<()> {
    let mut stdout = File::from(rustix::io::dup(io::stdout())?);
    stdout.write_all(&message.bytes(&order.token))
}
