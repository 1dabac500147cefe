//! A shell in the environment of a contract, on a copy of the base and behind the same confinement as verification: to find out
//! why a test fails. Nothing that happens in it is kept.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::thread;
use std::time::Duration;

use herma_destination::{Exit, Job, JobPaths, Limits, Process, Stdin, wait_unless};
use herma_git::lay_out;

use crate::environment_build::{EnvironmentError, EnvironmentSite, stopped, with_environment};
use crate::environment_views::ViewMaker;
use crate::error::Stop;
use crate::installation::Installation;
use crate::order::Order;

/// The longest time that a shell may stay open.
const SHELL_TIMEOUT: Duration = Duration::from_hours(12);

/// The program of a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellCommand {
    /// A shell at a terminal of this size.
    Interactive {
        /// Lines.
        rows: u16,
        /// Characters in a line.
        columns: u16,
    },
    /// A shell that reads commands from the input.
    Piped,
    /// One program with its arguments.
    Program(Vec<OsString>),
}

/// The input and output of a shell.
pub struct ShellStreams {
    /// Its input.
    pub input: Box<dyn Read + Send>,
    /// Its output.
    pub output: Box<dyn Write + Send>,
    /// Its error output.
    pub errors: Box<dyn Write + Send>,
}

impl ShellCommand {
    fn argv(self) -> Vec<OsString> {
        match self {
            // By a shell, so that a program that is not there is an exit code.
            Self::Program(argv) => {
                ["/bin/sh", "-c", "exec \"$@\"", "sh"].map(Into::into).into_iter().chain(argv).collect()
            }
            Self::Piped => vec!["/bin/sh".into()],
            Self::Interactive { rows, columns } => {
                let shell = "if command -v bash >/dev/null; then exec bash --norc -i; else exec sh -i; fi";
                // `script` gives the shell a terminal of the sandbox's own; without it there is no job control.
                let at_terminal = format!("stty rows {rows} cols {columns}; {shell}");
                let start = format!(
                    "export TERM=xterm-256color PS1='env:\\w$ '; if command -v script >/dev/null; then \
                     exec script -qefc \"{at_terminal}\" /dev/null; else {shell}; fi"
                );
                vec!["/bin/sh".into(), "-c".into(), start.into()]
            }
        }
    }
}

/// Opens a shell and waits for its end. The streams are opened once the environment is built.
pub fn environment_shell(
    installation: &Installation,
    order: &Order,
    (command, streams): (ShellCommand, impl FnOnce() -> io::Result<ShellStreams>),
    note: &(dyn Fn(&str) + Sync),
) -> Result<Exit, EnvironmentError> {
    with_environment(installation, order, note, |site| {
        let job = job(&site, order, command).map_err(stopped)?;
        let streams = streams().map_err(EnvironmentError::Shell)?;
        let process = site.place.destination.start(&job)?;
        attend(installation, process, streams).map_err(EnvironmentError::Shell)
    })
}

fn job(site: &EnvironmentSite<'_>, order: &Order, command: ShellCommand) -> Result<Job, Stop> {
    let (checkout, home) = (site.dirs.preflight(), site.dirs.preflight_home());
    for dir in [&checkout, &home] {
        std::fs::create_dir(dir)?;
    }
    lay_out(&site.base.git_dir, &site.base.entries, &[&checkout])?;
    if let Some(repository) = site.base.repository(None) {
        repository.make(&site.base.entries, &checkout)?;
    }
    let mut overlays = Vec::new();
    if let Some((built, _)) = &site.built {
        let views = ViewMaker::of(built.top(), site.dirs, site.run_id, site.place.destination.as_ref())?;
        overlays = views.write(built.top(), &home, &checkout)?.overlays;
    }
    let tools = &site.place.tools;
    let limits = Limits::with_memory(order.contract.terms.limits.memory).within(SHELL_TIMEOUT);
    Ok(Job::new(site.run_id, command.argv(), JobPaths::new(checkout).with_home(home))
        .with_env(tools.env.clone())
        .with_search_path(tools.search_path.clone())
        .with_mounts(tools.mounts.clone())
        .with_overlays(overlays)
        .with_stdin(Stdin::Pipe)
        .with_limits(limits))
}

fn attend(
    installation: &Installation,
    mut process: Box<dyn Process>,
    streams: ShellStreams,
) -> io::Result<Exit> {
    let ShellStreams { input, output, errors } = streams;
    if let Some(stdin) = process.take_stdin() {
        // It waits for the person, also after the shell has ended: it is left behind and ends with the program.
        thread::spawn(move || relay(input, stdin));
    }
    let pairs = [(process.take_stdout(), output), (process.take_stderr(), errors)];
    let pumps = pairs.map(|(from, to)| from.map(|from| thread::spawn(move || relay(from, to))));
    let ended = wait_unless(process.as_mut(), SHELL_TIMEOUT, || installation.cancellation.is_cancelled())?;
    let killed = process.kill_all()?;
    for pump in pumps.into_iter().flatten() {
        let _ = pump.join();
    }
    Ok(ended.unwrap_or(killed))
}

/// Copies bytes as they arrive.
fn relay(mut from: impl Read, mut to: impl Write) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..n]).and_then(|()| to.flush()).is_err() {
            break;
        }
    }
}
