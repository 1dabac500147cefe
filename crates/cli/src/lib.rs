//! The herma command: reads arguments and environment once, calls the libraries, and prints the results.

pub mod args;
mod cells;
mod commands;
mod confirm;
mod diff_view;
pub mod environment;
mod failure;
mod interrupt;
mod live_status;
mod logging;
pub mod output;
mod progress;
pub mod schemas;
mod screen;
mod selection;
mod timed_notes;
mod transcript_view;
mod typed;
mod unlock;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Cli;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::Screen;

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // The hidden parts of herma that run inside a destination come first: they read no environment and no home.
    if let Some((own, rest)) = args.split_first()
        && let Some(code) = commands::inside::dispatch(own, rest.iter().cloned())
    {
        return code;
    }
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, asks_for_json(&args)),
    };
    let environment = match Environment::read() {
        Ok(environment) => environment,
        Err(failure) => {
            let screen = Screen::new(cli.json, false);
            return screen.end(screen.fail(&failure));
        }
    };
    let screen = Screen::new(cli.json, environment.color);
    let pager = environment.pager.clone().filter(|_| !cli.no_pager && !cli.json);
    let screen = screen.with_pager(pager, environment.settings.search_path.clone());
    let logs = match logging::start(&cli, &environment) {
        Ok(logs) => logs,
        Err(failure) => return screen.end(screen.fail(&failure)),
    };
    let screen = if logs { screen.beside_logs() } else { screen };
    let code = match commands::dispatch(&cli.command, &environment, &screen) {
        Ok(code) => code,
        Err(failure) => screen.fail(&failure),
    };
    screen.end(code)
}

/// Whether the output is for a program, where clap does not understand the arguments.
fn asks_for_json(args: &[OsString]) -> bool {
    args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json")
}

/// clap's own message; help and version are no errors.
fn usage(error: &clap::Error, json: bool) -> ExitCode {
    let screen = Screen::new(json, false);
    let code = match (error.use_stderr(), json) {
        (true, true) => screen.fail(&Failure::usage(error)),
        (is_error, _) => {
            screen.usage(error);
            if is_error { Failure::BAD_INPUT.into() } else { ExitCode::SUCCESS }
        }
    };
    screen.end(code)
}
