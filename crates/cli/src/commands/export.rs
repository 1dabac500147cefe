//! `herma export`: writes the bundles of runs into one archive.

use std::process::ExitCode;

use herma_api::{ExportError, export as write_archive};

use crate::args;
use crate::commands::{Ended, find_finished_run, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::{Screen, safe_line};

pub(crate) fn export(args: &args::Export, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let runs = args.runs.iter().map(|named| find_finished_run(&installation, named).map(|(run, _)| run));
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    let output = write_archive(&installation, &runs, args.children, &args.output)?;
    if screen.is_json() {
        screen.value(&output)?;
    } else {
        let (file, bundles) = (safe_line(&output.file.display().to_string()), output.runs.len());
        let bundles = if bundles == 1 { "1 bundle".to_owned() } else { format!("{bundles} bundles") };
        screen.line(format_args!("{file}: {bundles}, {} bytes, {}", output.bytes, output.sha256));
    }
    Ok(ExitCode::SUCCESS)
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::UnderWay(_) => Self::bad_input(error).hint("wait until it has ended"),
            ExportError::Exists(_) => Self::bad_input(error).hint("name another file with `--output FILE`"),
            ExportError::Report(error) => error.into(),
            ExportError::Broken(run, _) => {
                Self::blocked(error).hint(format!("`herma verify {}` says what holds", run.short()))
            }
            ExportError::Io { .. } => {
                Self::internal(error).hint("free space or name another file, then try again")
            }
        }
    }
}
