//! `herma env shell`.

use std::io::{self, IsTerminal as _, stdin};
use std::process::ExitCode;

use herma_harness::{Installation, ShellCommand, ShellStreams, environment_shell};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::order;
use crate::args;
use crate::commands::Ended;
use crate::failure::Failure;
use crate::interrupt::listen;
use crate::screen::Screen;
use crate::timed_notes::timed_notes;

pub(super) fn shell(installation: &Installation, args: &args::EnvShell, screen: &Screen) -> Ended {
    if screen.is_json() {
        return Err(Failure::bad_input("a shell has no JSON output").hint("leave out --json"));
    }
    let order = order(installation, &args.contract, args.destination)?;
    listen(&installation.cancellation, screen)?;
    let at_terminal = stdin().is_terminal() && io::stdout().is_terminal();
    let command = match &args.command[..] {
        [] if at_terminal => {
            let size = tcgetwinsize(stdin()).map_err(Failure::internal)?;
            ShellCommand::Interactive { rows: size.ws_row, columns: size.ws_col }
        }
        [] => ShellCommand::Piped,
        command => ShellCommand::Program(command.to_vec()),
    };
    let is_interactive = matches!(command, ShellCommand::Interactive { .. });
    let mut raw = None;
    let streams = || {
        if is_interactive {
            screen.note("a copy of the base, without network; nothing is kept; leave with `exit`");
        }
        // While the environment is built, Ctrl-C still cancels.
        raw = is_interactive.then(RawTerminal::start).transpose()?;
        let (input, output, errors) = (Box::new(stdin()), Box::new(io::stdout()), Box::new(io::stderr()));
        Ok(ShellStreams { input, output, errors })
    };
    let exit = environment_shell(installation, &order, (command, streams), &timed_notes(screen));
    drop(raw);
    let exit = exit?;
    if exit.success() {
        return Ok(ExitCode::SUCCESS);
    }
    screen.note(match (exit.code, exit.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    });
    Ok(ExitCode::FAILURE)
}

/// The terminal passes every key to the shell, until this is dropped.
struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    fn start() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
