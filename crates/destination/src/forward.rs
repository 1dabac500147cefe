//! The body of the hidden `herma __forward`: the doors of a container, joined to their sockets from inside, since the
//! sockets of a container whose runtime has a kernel of its own cannot be handed out.
//!
//! It runs beside the command and knows nothing: whoever ends it loses a way out and wins nothing.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::doors::{self, EGRESS_PORT, ROUTER_PORT};
use crate::environment::RUN_VARIABLE;

/// The name of the hidden subcommand.
pub const SUBCOMMAND: &str = "__forward";

/// Who starts the forwarder and ends at once, so that it is nobody's child but the sandbox's own first process's.
const DETACH: &str = "--detach";
/// Written where a way out is not there.
const NONE: &str = "-";

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
            doors.push((StdListener::from(io::stdin().as_fd().try_clone_to_owned()?), socket));
        }
        if let Some(socket) = self.egress {
            doors.push((StdListener::from(io::stdout().as_fd().try_clone_to_owned()?), socket));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        runtime.block_on(doors::serve(doors.into_iter()))
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
