//! `herma discard`: deletes the kept workspace and session of a run. The bundle stays.

use std::process::ExitCode;

use herma_api::{DiscardError, discard as discard_run, find_run};

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::Screen;

pub(crate) fn discard(args: &args::Discard, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let run = find_run(&installation, &args.run)?;
    let output = discard_run(&installation, &run)?;
    if screen.is_json() {
        screen.value(&output)?;
    } else {
        let removed = output.removed.join(" and ");
        screen.line(format_args!("discarded the {removed} of run {}; its bundle stays", run.run_id.short()));
    }
    Ok(ExitCode::SUCCESS)
}

impl From<DiscardError> for Failure {
    fn from(error: DiscardError) -> Self {
        match error {
            DiscardError::UnderWay(_) | DiscardError::InUse(_) => {
                Self::bad_input(error).hint("wait until it has ended")
            }
            DiscardError::Nothing(_) => {
                Self::bad_input(error).hint("`herma gc --dry-run` lists what is kept")
            }
            DiscardError::Discarded(..) => Self::bad_input(error).hint("there is nothing left to delete"),
            DiscardError::Remove(..) => Self::internal(error).hint("run the same command again"),
        }
    }
}
