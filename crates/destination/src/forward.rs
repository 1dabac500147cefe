//! The body of the hidden `herma __forward`: joins two ports of the sandbox's own loopback to the sockets of the run's
//! router and egress proxy, byte for byte.
//!
//! It runs inside, beside the command, and knows nothing: whoever ends it loses a way out and wins nothing.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;

use crate::environment::RUN_VARIABLE;

/// The name of the hidden subcommand.
pub const SUBCOMMAND: &str = "__forward";

/// The port of the sandbox's own loopback that leads to the router. Above the range from which the kernel draws, so
/// that no server of a test gets it by chance.
pub const ROUTER_PORT: u16 = 61801;
/// The port that leads to the egress proxy.
pub const EGRESS_PORT: u16 = 61802;

/// Who starts the forwarder and ends at once, so that it is nobody's child but the sandbox's own first process's.
const DETACH: &str = "--detach";
/// Written where a way out is not there.
const NONE: &str = "-";

/// Connections at once through each port. More wait in the kernel's queue.
const MOST: usize = 256;
/// What is read at once, in each direction of each connection.
const BUFFER: usize = 16 << 10;

/// The ways out of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forward {
    /// The run's name, which the forwarder carries as everything else of the run does.
    pub(crate) run: OsString,
    /// The router's socket inside.
    pub(crate) router: Option<PathBuf>,
    /// The egress proxy's socket inside.
    pub(crate) egress: Option<PathBuf>,
}

impl Forward {
    /// Itself as three words.
    pub(crate) fn words(&self) -> [OsString; 3] {
        let word = |socket: &Option<PathBuf>| socket.as_ref().map_or(NONE.into(), Into::into);
        [self.run.clone(), word(&self.router), word(&self.egress)]
    }

    /// Reads three words.
    pub(crate) fn parse(args: &mut impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut next = || args.next().ok_or("a forwarder takes the run and two sockets");
        let (run, router, egress) = (next()?, socket(next()?)?, socket(next()?)?);
        Ok(Self { run, router, egress })
    }

    /// Opens the ports and starts the forwarder. From here on a caller is at worst kept waiting.
    pub(crate) fn start(&self) -> io::Result<()> {
        let door = |socket: &Option<PathBuf>, port| match socket {
            None => Ok(Stdio::null()),
            Some(_) => StdListener::bind((Ipv4Addr::LOCALHOST, port)).map(|open| OwnedFd::from(open).into()),
        };
        // The open ports go where the standard streams are: no other way hands on a file without unsafe code.
        let status = Command::new(std::env::current_exe()?)
            .args([OsString::from(SUBCOMMAND), DETACH.into()])
            .args(self.words())
            .env_clear()
            .env(RUN_VARIABLE, &self.run)
            .current_dir("/")
            .stdin(door(&self.router, ROUTER_PORT)?)
            .stdout(door(&self.egress, EGRESS_PORT)?)
            .stderr(Stdio::null())
            .process_group(0)
            .status()?;
        if status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!("the forwarder did not start: {status}")))
    }

    /// The same words once more, without the first: the caller's own child ends, and the forwarder stays.
    fn detach(&self) -> io::Result<()> {
        Command::new(std::env::current_exe()?)
            .arg(SUBCOMMAND)
            .args(self.words())
            .env_clear()
            .env(RUN_VARIABLE, &self.run)
            .spawn()
            .map(drop)
    }

    fn serve(self) -> io::Result<()> {
        let mut doors = Vec::new();
        if let Some(socket) = self.router {
            doors.push((listener(io::stdin().as_fd().try_clone_to_owned()?)?, socket));
        }
        if let Some(socket) = self.egress {
            doors.push((listener(io::stdout().as_fd().try_clone_to_owned()?)?, socket));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(async {
            let mut open = JoinSet::new();
            for (listener, socket) in doors {
                open.spawn(door(TcpListener::from_std(listener)?, socket));
            }
            while open.join_next().await.is_some() {}
            Err(io::Error::other("no port is open"))
        })
    }
}

/// Runs the forwarder that `args` (what follows `herma __forward`) ask for; it goes on until it is killed.
#[must_use]
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let mut args = args.peekable();
    let detach = args.next_if(|word| word == DETACH).is_some();
    let Ok(forward) = Forward::parse(&mut args) else { return ExitCode::from(2) };
    let done = if detach { forward.detach() } else { forward.serve() };
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn socket(word: OsString) -> Result<Option<PathBuf>, String> {
    if word == NONE {
        return Ok(None);
    }
    let path = PathBuf::from(word);
    if path.is_absolute() { Ok(Some(path)) } else { Err(format!("`{}` is no socket", path.display())) }
}

fn listener(file: OwnedFd) -> io::Result<StdListener> {
    let listener = StdListener::from(file);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Lets callers in, as many as fit.
async fn door(listener: TcpListener, socket: PathBuf) {
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        if open.len() >= MOST {
            open.join_next().await;
        }
        match listener.accept().await {
            Ok((caller, _)) => drop(open.spawn(join(caller, socket.clone()))),
            // No file is left for another caller: the next one that goes makes room.
            Err(_) => drop(open.join_next().await),
        }
    }
}

/// Both directions, each until its end; the end of one is passed on while the other goes on.
async fn join(mut caller: TcpStream, socket: impl AsRef<Path>) -> io::Result<()> {
    let mut other = UnixStream::connect(socket).await?;
    caller.set_nodelay(true)?;
    copy_bidirectional_with_sizes(&mut caller, &mut other, BUFFER, BUFFER).await.map(drop)
}
