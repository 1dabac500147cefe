//! Developer tools of this workspace. `cargo xtask --help` lists them.

mod bench;
mod command;
mod workspace;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Developer tools of this workspace
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build herma with optimisation and measure it beside its alternatives
    Bench(bench::Arguments),
}

/// The result of a task: its exit code, or the reason why it could not be done.
type TaskResult = Result<ExitCode, command::TaskError>;

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Bench(arguments) => bench::run(&arguments),
    };
    done.unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "xtask: {error}");
        ExitCode::from(2)
    })
}
