//! The hidden subcommands that run inside a destination or start one: launcher, overlays, forwarder, keeper, probes, hook and the
//! engine `fake`.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use herma_destination::probe::{self, ProbePlan};
use herma_destination::{forward, keeper, launcher, overlay};
use herma_engines::{fake, hook};

use crate::environment;

/// Runs the hidden subcommand that the first argument names, if it names one. `own` is the name that herma was started by.
pub(crate) fn dispatch(own: &OsStr, mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let first = args.next()?;
    if first != launcher::SUBCOMMAND {
        return subcommand(&first, args);
    }
    match launcher::run(own, args) {
        Ok(command) => {
            let mut args = command.into_iter();
            subcommand(&args.next()?, args)
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "herma could not start the command: {error}");
            Some(ExitCode::from(launcher::NOT_STARTED))
        }
    }
}

fn subcommand(first: &OsStr, mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if first == probe::SUBCOMMAND {
        let plan = args.next()?;
        return Some(if plan == probe::WAIT { wait() } else { run_probes(Path::new(&plan)) });
    }
    if first == forward::SUBCOMMAND {
        return Some(forward::run(args));
    }
    if first == hook::SUBCOMMAND {
        return Some(ask(Path::new(&args.next()?)));
    }
    if first == overlay::SUBCOMMAND {
        let error = overlay::run(args);
        let _ = writeln!(std::io::stderr(), "{error}");
        return Some(ExitCode::from(launcher::NOT_STARTED));
    }
    if first == keeper::SUBCOMMAND {
        return Some(keeper::run());
    }
    if first == fake::SUBCOMMAND {
        let script = args.next()?;
        let router = environment::router_of_this_run();
        let proxy = environment::egress_of_this_run();
        let speaker = fake::Speaker { router: router.as_ref(), proxy, ..fake::Speaker::FAKE };
        return Some(ExitCode::from(fake::run(Path::new(&script), Path::new("."), speaker)));
    }
    None
}

/// Asks about a tool call, and answers the agent with the exit code.
fn ask(socket: &Path) -> ExitCode {
    let answer = hook::ask(std::io::stdin().lock(), socket);
    if answer.allowed {
        return ExitCode::SUCCESS;
    }
    let _ = writeln!(std::io::stderr(), "{}", hook::in_words(&answer.reason));
    ExitCode::from(hook::DENIED)
}

fn wait() -> ExitCode {
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    ExitCode::SUCCESS
}

fn run_probes(plan: &Path) -> ExitCode {
    let plan: Option<ProbePlan> =
        std::fs::read(plan).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(plan) = plan else { return ExitCode::FAILURE };
    let mut stdout = std::io::stdout();
    let told = probe::run_inside(&plan, |result| {
        serde_json::to_writer(&mut stdout, result)?;
        writeln!(stdout)
    });
    if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
