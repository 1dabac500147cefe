//! `herma runs`: the runs of this installation, newest first.

use std::process::ExitCode;

use herma_api::{find_runs, run_row};

use crate::args;
use crate::cells::{cut, duration};
use crate::commands::{Ended, find_run, open, outcome};
use crate::environment::Environment;
use crate::output::{RunRow, RunsOutput};
use crate::screen::{Screen, Tone, safe_line};
use crate::selection::filter;

/// The columns of a terminal that has room for a run on one line.
const WIDE: usize = 100;
/// The longest name of a contract on one line.
const MAX_NAME: usize = 36;

pub(crate) fn runs(args: &args::Runs, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let before = args.before.as_deref().map(|named| find_run(&installation, named)).transpose()?;
    let filter = filter(&args.selection, installation.now())?;
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let found = find_runs(&installation, &filter, before.map(|(run, _)| run.run_id), limit)?;
    let runs: Vec<RunRow> = found.runs.into_iter().map(|run| run_row(&installation, run)).collect();
    if screen.is_json() {
        let next_before = runs.last().filter(|_| found.has_more).map(|row| row.run.run_id);
        screen.value(&RunsOutput { schema: "herma.runs/v1", runs, next_before })?;
        return Ok(ExitCode::SUCCESS);
    }
    let others = match found.left_out {
        0 => String::new(),
        runs => format!("{runs} of proofs, comparisons and demos: --all"),
    };
    match (runs.is_empty(), others.is_empty()) {
        (true, true) => screen.line("no runs yet; start with `herma demo`"),
        (true, false) => screen.line(format_args!("no runs of your own yet ({others})")),
        (false, _) => {}
    }
    for row in &runs {
        show(row, screen);
    }
    if !runs.is_empty() && !others.is_empty() && screen.is_terminal() {
        screen.note(screen.paint(Tone::Dim, format_args!("and {others}")));
    }
    Ok(ExitCode::SUCCESS)
}

fn show(row: &RunRow, screen: &Screen) {
    let RunRow { run, outcome, bundle_removed_at } = row;
    let status = run.status.map_or_else(|| screen.paint(Tone::Dim, "running"), |s| screen.status(s));
    // Pads by hand: the colour's escapes would count.
    let pad = " ".repeat(8 - run.status.map_or("running".len(), |s| s.as_str().len()).min(8));
    let length = run.finished_at.map_or_else(String::new, |end| {
        duration(u64::try_from(end.as_millisecond() - run.started_at.as_millisecond()).unwrap_or(0))
    });
    let mut notes: Vec<String> = run.blockers.iter().map(ToString::to_string).collect();
    notes.extend(bundle_removed_at.map(|at| format!("bundle removed by gc on {at:.0}")));
    notes.extend(outcome.as_ref().map(|outcome| format!("outcome {}", outcome::in_words(outcome))));
    let (id, name, engine) = (run.run_id.short(), run.contract_id.as_str(), run.engine.as_str());
    let columns = screen.columns();
    if columns.is_none_or(|columns| columns >= WIDE) {
        let name = if columns.is_some() { cut(name, MAX_NAME) } else { name.to_owned() };
        let started = run.started_at.strftime("%Y-%m-%d %H:%M:%SZ");
        let line =
            format!("{id}  {status}{pad} {name:24} {engine:8} {started} {length:>7}  {}", notes.join(", "));
        screen.line(line.trim_end());
        return;
    }
    let columns = columns.unwrap_or(WIDE);
    let started = run.started_at.strftime("%m-%d %H:%M");
    // 8 of the id, 2 between, 9 of the status, 8 of the time, and a blank before each of the last two.
    let room = columns.saturating_sub(29).max(8);
    screen.line(format_args!("{id}  {status}{pad} {:room$} {length:>7}", cut(name, room)));
    let rest = format!("{engine} {started}  {}", safe_line(&notes.join(", ")));
    screen.line(format_args!(
        "          {}",
        screen.paint(Tone::Dim, cut(rest.trim_end(), columns.saturating_sub(10)))
    ));
}
