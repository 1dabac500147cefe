//! `herma diff`: what a run changed.

use std::process::ExitCode;

use herma_api::read_report;
use herma_evidence::file_reading::read_regular;
use herma_evidence::layout;

use crate::args;
use crate::commands::show::warn_if_touched;
use crate::commands::{Ended, find_finished_run, open};
use crate::diff_view::{show_patch, show_stat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::DiffOutput;
use crate::screen::{Screen, safe_line};

pub(crate) fn diff(args: &args::Diff, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let (run, dirs) = find_finished_run(&installation, &args.run)?;
    let report = read_report(&dirs.bundle())?;
    let touched = warn_if_touched(&installation, &dirs, &run, &[layout::REPORT, layout::PATCH], screen);
    // It goes into `git apply`: an unsigned patch is not handed out.
    let forged = (!touched.is_empty()).then(|| "it is not what was signed".to_owned());
    let code = ExitCode::from(u8::from(forged.is_some()));
    let reason = forged.or_else(|| report.not_applicable.get(layout::PATCH).cloned());
    let patch = match reason {
        Some(_) => None,
        None => Some(read_regular(&dirs.bundle().join(layout::PATCH), u64::MAX).map_err(Failure::internal)?),
    };
    if screen.is_json() {
        let patch = patch.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let changed_files = report.changed_files;
        let (schema, run_id) = ("herma.diff/v1", run.run_id);
        let output = DiffOutput { schema, run_id, changed_files, patch, reason, touched };
        screen.value(&output)?;
        return Ok(code);
    }
    match (patch, reason) {
        (Some(patch), _) if args.stat => show_stat(&patch, screen),
        // On a terminal the agent's bytes are made safe; into a file or `git apply` they go as they are.
        (Some(patch), _) if screen.is_terminal() => {
            screen.page();
            show_patch(&patch, screen);
        }
        (Some(patch), _) => screen.bytes(&patch),
        (None, reason) => {
            screen.note(format_args!("no patch is shown: {}", safe_line(&reason.unwrap_or_default())));
        }
    }
    Ok(code)
}
