//! The hidden `herma __forward`: relays the loopback ports of a container to their sockets from inside. A runtime
//! with its own kernel cannot pass listening sockets to the outside.
//!
//! It runs beside the command and holds no secret: a process that kills it only loses its network access.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::loopback_relay::{self, EGRESS_PORT, ROUTER_PORT};
use crate::variable_names::RUN_VARIABLE;

/// The name of the hidden subcommand.
pub const SUBCOMMAND: &str = "__forward";

/// Starts the forwarder and exits at once, so that the init process of the container becomes its parent.
const DETACH: &str = "--detach";
/// Stands for a missing socket.
const NONE: &str = "-";

/// The relayed ports of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forwarder {
    /// The run's id, which every process of the run carries.
    pub(crate) run: OsString,
    /// The router's socket inside.
    pub(crate) router: Option<PathBuf>,
    /// The egress proxy's socket inside.
    pub(crate) egress: Option<PathBuf>,
}

impl Forwarder {
    /// The arguments of the forwarder.
    pub(crate) fn words(&self) -> [OsString; 3] {
        let word = |socket: &Option<PathBuf>| socket.as_ref().map_or(NONE.into(), Into::into);
        [self.run.clone(), word(&self.router), word(&self.egress)]
    }

    /// Parses those arguments.
    pub(crate) fn parse(args: &mut impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut next = || args.next().ok_or("a forwarder takes the run and two sockets");
        let (run, router, egress) = (next()?, socket(next()?)?, socket(next()?)?);
        Ok(Self { run, router, egress })
    }

    /// Binds the ports and starts the forwarder. From here on a client connects, and waits at worst.
    pub(crate) fn start(&self) -> io::Result<()> {
        let listener = |socket: &Option<PathBuf>, port| match socket {
            None => Ok(Stdio::null()),
            Some(_) => StdListener::bind((Ipv4Addr::LOCALHOST, port)).map(|open| OwnedFd::from(open).into()),
        };
        // The listening sockets are passed as stdin and stdout: no other way passes a descriptor without unsafe
        // code.
        let status = Command::new(std::env::current_exe()?)
            .args([OsString::from(SUBCOMMAND), DETACH.into()])
            .args(self.words())
            .env_clear()
            .env(RUN_VARIABLE, &self.run)
            .current_dir("/")
            .stdin(listener(&self.router, ROUTER_PORT)?)
            .stdout(listener(&self.egress, EGRESS_PORT)?)
            .stderr(Stdio::null())
            .process_group(0)
            .status()?;
        if status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!("the forwarder did not start: {status}")))
    }

    /// Starts the forwarder as a grandchild: the direct child exits, and the forwarder stays.
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
        let mut ports = Vec::new();
        if let Some(socket) = self.router {
            ports.push((StdListener::from(io::stdin().as_fd().try_clone_to_owned()?), socket));
        }
        if let Some(socket) = self.egress {
            ports.push((StdListener::from(io::stdout().as_fd().try_clone_to_owned()?), socket));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        runtime.block_on(loopback_relay::serve(ports.into_iter()))
    }
}

/// Runs the forwarder with the arguments after `herma __forward`, until it is killed.
#[must_use]
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let mut args = args.peekable();
    let detach = args.next_if(|word| word == DETACH).is_some();
    let Ok(forward) = Forwarder::parse(&mut args) else { return ExitCode::from(2) };
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
