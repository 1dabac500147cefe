//! A stand-in for the herma binary in this crate's tests: the sandbox starts it as the launcher of each job.

#![allow(clippy::disallowed_macros, reason = "it reports to standard error, as the hidden subcommand does")]

use std::process::ExitCode;

use herma_destination::launcher;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let own = args.next().unwrap_or_default();
    if args.next().is_none_or(|word| word != launcher::SUBCOMMAND) {
        eprintln!("this program is only the launcher of jobs");
        return ExitCode::FAILURE;
    }
    match launcher::run(&own, args) {
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(launcher::NOT_STARTED)
        }
    }
}
