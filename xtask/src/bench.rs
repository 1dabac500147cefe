//! `cargo xtask bench`: builds herma and the benchmarks with optimisation, and starts the benchmarks.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::Args;

use crate::TaskResult;
use crate::command::{TaskError, status};
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Build with this profile; figures of other profiles than `dist` and `release` mean nothing
    #[arg(long, default_value = "dist")]
    profile: String,
    /// The benchmark and its options: `environment`, `harness`, `router` or `sandbox`; `--help` lists the options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> TaskResult {
    let build = ["build", "--locked", "--package", "herma", "--package", "herma-bench", "--profile"];
    let build: Vec<&OsStr> =
        build.iter().map(OsStr::new).chain([OsStr::new(arguments.profile.as_str())]).collect();
    if status(OsStr::new("cargo"), &build)? != 0 {
        return Err(TaskError::Failed { program: "cargo build".to_owned(), stderr: String::new() });
    }
    // The `dev` profile is the only one that builds into a directory of another name.
    let directory = if arguments.profile == "dev" { "debug" } else { &arguments.profile };
    let program = Workspace::read()?.target_directory.join(directory).join("herma-bench");
    let words: Vec<&OsStr> = arguments.arguments.iter().map(OsString::as_os_str).collect();
    Ok(ExitCode::from(status(program.as_os_str(), &words)?))
}
