//! Benchmarks of runs, router, sandbox and egress proxy beside their alternatives. `cargo xtask bench` starts them.
//!
//! Each gateway is a child process on the loopback address, in front of the same upstream, which is a child too. All are
//! measured in turns in one run, so that a busy moment hits them alike. Only ratios mean anything.

mod child;
mod client;
pub mod command;
mod contenders;
mod environment;
mod error;
mod figures;
mod harness;
mod interrupt;
mod load;
mod measure;
pub mod output;
mod plan;
mod print;
mod proxy;
mod sandbox;
mod serve;
mod targets;
#[cfg(test)]
mod tests;
mod upstream;
mod usage;
mod wire;

use std::ffi::OsString;
use std::io;

pub use error::BenchError;

use self::sandbox::{source, tunnel};

/// Serves the hidden subcommand that the first argument names, until the process is killed; the reason if that fails.
pub fn serve_hidden(mut args: impl Iterator<Item = OsString>) -> Option<io::Error> {
    match args.next()?.to_str()? {
        upstream::SUBCOMMAND => Some(upstream::run(args)),
        proxy::SUBCOMMAND => Some(proxy::run(args)),
        source::SUBCOMMAND => Some(source::run(args)),
        tunnel::SUBCOMMAND => Some(tunnel::run(args)),
        _ => None,
    }
}
