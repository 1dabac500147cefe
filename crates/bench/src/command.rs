//! The command line of `herma-bench`, which `cargo xtask bench` builds and starts.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use herma_harness::SystemClock;
use serde::Serialize;
use tempfile::TempDir;

use crate::error::BenchError;
use crate::output::{BenchOutput, BenchRouterOutput, BenchSandboxOutput};
use crate::targets::Target;
use crate::{harness, measure, plan, print, sandbox};

/// Measure herma beside its alternatives, in turns
#[derive(Debug, Parser)]
#[command(name = "herma-bench")]
pub struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// The herma to measure; the one beside this program if none is named
    #[arg(long, global = true, value_name = "FILE")]
    herma: Option<PathBuf>,
    /// Work below this directory; that of this program if none is named
    #[arg(long, global = true, value_name = "DIR")]
    scratch: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// A governed run against the same work by hand, and `herma verify` against `sha256sum`
    Harness {
        /// Measure each at least this often; the median counts
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
        repeat: u32,
        /// Leave out the largest repository and bundle
        #[arg(long)]
        quick: bool,
    },
    /// A run with an environment of 50,000 files against one with an empty environment, and a copy of the files against `cp -a`
    Environment {
        /// Measure each at least this often; the median counts
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
        repeat: u32,
        /// Measure 2,000 files
        #[arg(long)]
        quick: bool,
    },
    /// The router with everything on, against a direct call, nginx, a bare proxy, and the gateways that are installed
    Router {
        /// Measure each in this many rounds; the median counts
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
        repeat: u32,
        /// Only show that it can be measured: a few hundred requests, and only what starts at once
        #[arg(long, conflicts_with = "repeat")]
        quick: bool,
    },
    /// A start in the sandbox, with and without the probes, against a bare bubblewrap, sandbox-runtime and `docker run`;
    /// and a tunnel of the egress proxy against `socat`
    Sandbox {
        /// Start each this often; the median counts
        #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        repeat: u32,
        /// Only show that it can be measured: three starts, and few bytes
        #[arg(long, conflicts_with = "repeat")]
        quick: bool,
    },
}

/// The environment, as the program was started with it.
pub struct Environment {
    /// PATH.
    pub search_path: OsString,
    /// `DOCKER_HOST`.
    pub docker_host: Option<String>,
    /// The path of this program.
    pub program: PathBuf,
}

/// Runs the benchmark and prints its figures. The exit code is 1 if a limit is exceeded or a target is missed.
pub fn run(arguments: &Arguments, environment: Environment) -> Result<ExitCode, BenchError> {
    let beside = environment.program.parent().map(PathBuf::from).unwrap_or_default();
    let herma = arguments.herma.clone().unwrap_or_else(|| beside.join("herma"));
    let herma = fs::canonicalize(&herma).map_err(BenchError::io(herma.display().to_string()))?;
    let below = arguments.scratch.clone().unwrap_or(beside);
    let made = tempfile::Builder::new().prefix("bench-").tempdir_in(&below);
    let scratch = made.map_err(BenchError::io(format!("cannot make a directory in {}", below.display())))?;
    let scratch_path =
        fs::canonicalize(scratch.path()).map_err(BenchError::io("cannot find the scratch directory"))?;
    let progress = |what: &str| {
        if !arguments.json {
            let _ = writeln!(io::stderr(), "measuring {what} ...");
        }
    };
    let Environment { search_path, docker_host, program } = environment;
    let missed = match arguments.benchmark {
        Benchmark::Harness { repeat, quick } => {
            let home = scratch_path.join("home");
            let subject = harness::Subject { herma, home, scratch: scratch_path, search_path };
            let rows = harness::measure(&subject, repeat, quick, &progress)?;
            let over = rows.iter().any(|row| row.ratio > row.limit);
            show(arguments.json, &BenchOutput { schema: "herma.bench/v1", rows }, |output, text| {
                print::harness(&output.rows, text)
            })?;
            over
        }
        Benchmark::Environment { repeat, quick } => {
            let home = scratch_path.join("home");
            let subject = harness::Subject { herma, home, scratch: scratch_path, search_path };
            let rows = crate::environment::measure(&subject, repeat, quick, &progress)?;
            let over = rows.iter().any(|row| row.ratio > row.limit);
            let output = BenchOutput { schema: "herma.bench/v1", rows };
            show(arguments.json, &output, |output, text| print::environment(&output.rows, text))?;
            over
        }
        Benchmark::Router { repeat, quick } => {
            let plan = if quick { plan::Plan::quick() } else { plan::Plan::full(repeat) };
            let order = measure::Order {
                herma,
                program,
                search_path,
                scratch: scratch_path,
                plan,
                clock: &SystemClock,
            };
            let measured = measure::measure(&order, &progress)?;
            let missed = any_missed(&measured.targets);
            let output = BenchRouterOutput { schema: "herma.bench-router/v1", measured };
            show(arguments.json, &output, |output, text| print::router(&output.measured, text))?;
            missed
        }
        Benchmark::Sandbox { repeat, quick } => {
            let plan = if quick { sandbox::Plan::quick() } else { sandbox::Plan::full(repeat) };
            let clock = &SystemClock;
            let order = sandbox::Order {
                herma,
                program,
                search_path,
                docker_host,
                scratch: scratch_path,
                plan,
                clock,
            };
            let measured = sandbox::measure(&order, &progress)?;
            let missed = any_missed(&measured.targets);
            let output = BenchSandboxOutput { schema: "herma.bench-sandbox/v1", measured };
            show(arguments.json, &output, |output, text| print::sandbox(&output.measured, text))?;
            missed
        }
    };
    TempDir::close(scratch).map_err(BenchError::io("cannot remove the scratch directory"))?;
    Ok(ExitCode::from(u8::from(missed)))
}

fn any_missed(targets: &[Target]) -> bool {
    targets.iter().any(|target| target.holds == Some(false))
}

fn show<T: Serialize>(
    json: bool,
    output: &T,
    table: impl FnOnce(&T, &mut print::Text<'_>) -> io::Result<()>,
) -> Result<(), BenchError> {
    let mut stdout = io::stdout().lock();
    let printed = if json {
        serde_json::to_writer_pretty(&mut stdout, output)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(stdout))
    } else {
        table(output, &mut stdout)
    };
    printed.map_err(BenchError::io("cannot print"))
}
