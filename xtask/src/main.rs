//! Developer tools of this workspace. `cargo xtask --help` lists them.

mod architecture;
mod bench;
mod command;
mod commits;
mod language;
mod rust_source;
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
    /// Print the crate graph and the shape of each crate, and fail where a rule is broken
    Architecture,
    /// Build herma with optimisation and measure it beside its alternatives
    Bench(bench::Arguments),
    /// Check the messages of commits
    Commits,
    /// Check comments, messages, names and documents against the language rules
    Language(language::Arguments),
}

/// The result of a task: its exit code, or the reason why it could not be done.
type TaskResult = Result<ExitCode, command::TaskError>;

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Architecture => architecture::run(),
        Task::Commits => commits::run(),
        Task::Language(arguments) => language::run(&arguments),
        Task::Bench(arguments) => bench::run(&arguments),
    };
    done.unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "xtask: {error}");
        ExitCode::from(2)
    })
}
