//! The herma command: reads arguments and environment once, calls the libraries, and shows what came of it.

pub mod args;
mod commands;
mod confirm;
pub mod environment;
mod failure;
pub mod output;
mod progress;
pub mod schemas;
mod screen;
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
    let mut args = std::env::args_os();
    // The hidden parts of herma that run inside a destination come first: they read no environment and no home.
    if let Some(code) = commands::inside::dispatch(args.by_ref().skip(1)) {
        return code;
    }
    let args: Vec<OsString> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let environment = match Environment::read() {
        Ok(environment) => environment,
        Err(failure) => return Screen::new(cli.json, false).fail(&failure),
    };
    let screen = Screen::new(cli.json, environment.color);
    match commands::dispatch(&cli.command, &environment, &screen) {
        Ok(code) => code,
        Err(failure) => screen.fail(&failure),
    }
}

/// clap's own message; help and version are no errors.
fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if error.use_stderr() { Failure::BAD_INPUT.into() } else { ExitCode::SUCCESS }
}
