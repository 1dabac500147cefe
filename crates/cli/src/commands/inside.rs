//! The parts of herma that run inside a destination: the launcher, the probes, and the engine `fake`.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use herma_destination::launcher;
use herma_destination::probe::{self, ProbePlan};
use herma_engines::fake;

/// Runs the hidden subcommand that the first argument names, if it names one.
pub(crate) fn dispatch(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let first = args.next()?;
    if first == launcher::SUBCOMMAND {
        let error = launcher::run(args);
        let _ = writeln!(std::io::stderr(), "herma could not start the command: {error}");
        return Some(ExitCode::from(launcher::NOT_STARTED));
    }
    if first == probe::SUBCOMMAND {
        return Some(run_probes(Path::new(&args.next()?)));
    }
    if first == fake::SUBCOMMAND {
        let script = args.next()?;
        return Some(ExitCode::from(fake::run(Path::new(&script), Path::new("."))));
    }
    None
}

fn run_probes(plan: &Path) -> ExitCode {
    let plan: Option<ProbePlan> =
        std::fs::read(plan).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(plan) = plan else { return ExitCode::FAILURE };
    let results = probe::run_inside(&plan);
    match serde_json::to_vec(&results) {
        Ok(bytes) if std::io::stdout().write_all(&bytes).is_ok() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
