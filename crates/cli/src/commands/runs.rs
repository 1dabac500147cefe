//! `herma runs`: the runs of this installation, newest first.

use std::process::ExitCode;

use herma_api::run_rows;
use herma_core::store::RunQuery;

use crate::args;
use crate::commands::{Ended, find_run, open, outcome};
use crate::environment::Environment;
use crate::output::{RunRow, RunsOutput};
use crate::screen::{Screen, Tone};

pub(crate) fn runs(args: &args::Runs, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let before = args.before.as_deref().map(|named| find_run(&installation, named)).transpose()?;
    let query = RunQuery {
        limit: args.limit,
        before: before.map(|(run, _)| run.run_id),
        status: args.status.map(Into::into),
    };
    let runs = run_rows(&installation, &query)?;
    if screen.is_json() {
        let full = u32::try_from(runs.len()).is_ok_and(|n| n == args.limit);
        let next_before = runs.last().filter(|_| full).map(|row| row.run.run_id);
        screen.value(&RunsOutput { schema: "herma.runs/v1", runs, next_before })?;
        return Ok(ExitCode::SUCCESS);
    }
    if runs.is_empty() {
        screen.line("no runs yet; start with `herma demo`");
    }
    for RunRow { run, outcome, bundle_removed_at } in runs {
        let status = run.status.map_or_else(|| screen.paint(Tone::Dim, "running"), |s| screen.status(s));
        let mut notes: Vec<String> = run.blockers.iter().map(ToString::to_string).collect();
        notes.extend(bundle_removed_at.map(|at| format!("bundle removed by gc on {at:.0}")));
        notes.extend(outcome.as_ref().map(|outcome| format!("outcome {}", outcome::in_words(outcome))));
        // Pads by hand: the colour's escapes would count.
        let pad = " ".repeat(8 - run.status.map_or("running".len(), |s| s.as_str().len()).min(8));
        screen.line(format_args!(
            "{}  {status}{pad} {:24} {:8} {}  {}",
            run.run_id.short(),
            run.contract_id.as_str(),
            run.engine.as_str(),
            run.started_at.strftime("%Y-%m-%d %H:%M:%SZ"),
            notes.join(", ")
        ));
    }
    Ok(ExitCode::SUCCESS)
}
