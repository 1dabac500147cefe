//! `herma show`: a run on one screen, or its report and what its engine called.

mod overview;
mod reference;
mod tree;

use std::process::ExitCode;

use herma_api::{expected_run, outcome_row, read_report, run_calls, run_tree};
use herma_core::Report;
use herma_core::store::RunSummary;
use herma_evidence::layout;
use herma_evidence::sealed::touched;
use herma_harness::Installation;
use herma_home::RunDirs;

use crate::args;
use crate::commands::{Ended, find_finished_run, open, outcome};
use crate::environment::Environment;
use crate::output::{OutcomeWordNow, TreeNode, TreeOutput};
use crate::screen::{Screen, Tone, safe, safe_line};

pub(crate) fn show(args: &args::Show, environment: &Environment, screen: &Screen) -> Ended {
    if let Some(ended) = reference::shown(&args.run, environment, screen) {
        return ended;
    }
    let installation = open(environment, screen)?;
    let (run, dirs) = find_finished_run(&installation, &args.run)?;
    let report = read_report(&dirs.bundle())?;
    warn_if_touched(&installation, &dirs, &run, &[layout::REPORT, layout::EVENTS], screen);
    let tree = run_tree(&installation, &report);
    if args.tree {
        return show_tree(&report, tree, screen);
    }
    if screen.is_json() {
        screen.value(&report)?;
    } else if !args.full {
        screen.page();
        let outcome = outcome_row(&installation, &report)?;
        overview::show(&installation, &dirs.bundle(), &report, outcome.as_ref(), screen);
    } else {
        screen.page();
        screen.line(safe(&herma_evidence::render_markdown(&report)).trim_end());
        let called = run_calls(&dirs.bundle(), &report);
        if !called.lines.is_empty() {
            screen.line("\n## What the engine called\n");
            for line in &called.lines {
                screen.line(format_args!("    {}", safe_line(line)));
            }
            if called.more > 0 {
                let run = report.run_id.short();
                screen.line(format_args!("    and {} more: herma logs {run} --only events", called.more));
            }
        }
        let lines = tree::lines(&tree, report.run_id);
        if lines.len() > 1 {
            screen.line("\n## The runs around it\n");
            for line in &lines {
                screen.line(format_args!("    {}", safe_line(line)));
            }
        }
        if let Some(outcome) = outcome_row(&installation, &report)? {
            screen.line(format_args!("\nOutcome: {}", outcome::in_words(&outcome)));
            if outcome.state == OutcomeWordNow::Pending {
                let run = report.run_id.short();
                screen.line(format_args!("next: `herma accept {run}` or `herma reject {run} --reason TEXT`"));
            }
        }
        screen.line(format_args!("\nThe evidence is in {}", dirs.bundle().display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The tree alone.
fn show_tree(report: &Report, tree: TreeNode, screen: &Screen) -> Ended {
    if screen.is_json() {
        screen.value(&TreeOutput { schema: "herma.tree/v1", run_id: report.run_id, tree })?;
    } else {
        for line in tree::lines(&tree, report.run_id) {
            screen.line(safe_line(&line));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Looks whether what is shown is still what was signed, and says so loudly where it is not. Whether the bundle holds is
/// for `herma verify` to say.
pub(crate) fn warn_if_touched(
    installation: &Installation,
    dirs: &RunDirs,
    run: &RunSummary,
    names: &[&str],
    screen: &Screen,
) -> Vec<String> {
    let found = touched(&dirs.bundle(), &[installation.key.public()], &expected_run(run), names);
    if !found.is_empty() {
        let warning = screen.paint(Tone::Bad, "WARNING: the evidence was touched after it was signed:");
        screen.note(format_args!("{warning} {}", safe_line(&found.join("; "))));
        let run = run.run_id.short();
        screen.note(format_args!("it is not what the run left; `herma verify {run}` says what holds"));
    }
    found
}
