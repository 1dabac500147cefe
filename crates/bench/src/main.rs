//! `herma-bench`: measures herma beside its alternatives. `cargo xtask bench` builds and starts it.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use herma_bench::command::{Arguments, Environment, run};
use herma_bench::serve_hidden;

fn main() -> ExitCode {
    if let Some(error) = serve_hidden(std::env::args_os().skip(1)) {
        return failed(&error);
    }
    let arguments = Arguments::parse();
    match environment().and_then(|environment| Ok(run(&arguments, environment)?)) {
        Ok(code) => code,
        Err(error) => failed(&*error),
    }
}

#[allow(clippy::disallowed_methods, reason = "the environment of the benchmarks is read here, once")]
fn environment() -> Result<Environment, Box<dyn std::error::Error>> {
    Ok(Environment {
        search_path: std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin")),
        docker_host: std::env::var("DOCKER_HOST").ok(),
        program: std::env::current_exe()?,
    })
}

fn failed(error: &dyn std::fmt::Display) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "herma-bench: {error}");
    ExitCode::from(2)
}
