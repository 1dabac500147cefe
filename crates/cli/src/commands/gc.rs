//! `herma gc`: lists old workspaces, sessions, environments and bundles, and removes them when a person agrees.

use std::io::{IsTerminal as _, stdin};
use std::process::ExitCode;

use herma_api::{GcError, GcLimits, collect_garbage, plan_gc};

use crate::args;
use crate::commands::{Ended, open};
use crate::confirm::agrees;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::GcOutput;
use crate::screen::{Screen, Tone, readable_bytes, safe_line};

pub(crate) fn gc(args: &args::Gc, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let limits = GcLimits { older_than: args.older_than, bundles_older_than: args.bundles_older_than };
    let plan = plan_gc(&installation, &limits)?;
    if args.dry_run {
        return show(&plan, screen);
    }
    if !args.yes {
        if !stdin().is_terminal() || screen.is_json() {
            return Err(Failure::bad_input("there is no terminal to ask at")
                .hint("`herma gc --dry-run` lists what would be removed; `--yes` removes it"));
        }
        show(&plan, screen)?;
        if is_empty(&plan) || !agrees("Remove this? Type yes, or anything else to stop:", screen)? {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let removed = collect_garbage(&installation, &limits, &plan)?;
    show(&removed, screen)
}

fn is_empty(plan: &GcOutput) -> bool {
    plan.workspaces.is_empty() && plan.environments.is_empty() && plan.bundles.is_empty()
}

fn show(output: &GcOutput, screen: &Screen) -> Ended {
    if screen.is_json() {
        screen.value(output)?;
        return Ok(ExitCode::SUCCESS);
    }
    for workspace in &output.workspaces {
        let (run, kept) = (workspace.run_id.short(), workspace.kept.join(" and "));
        screen.line(format_args!("run {run}  {kept}  {}", readable_bytes(workspace.bytes)));
    }
    for environment in &output.environments {
        let key: String = environment.key.hex().chars().take(12).collect();
        screen.line(format_args!("environment {key}  {}", readable_bytes(environment.bytes)));
    }
    for bundle in &output.bundles {
        screen.line(format_args!("run {}  bundle  {}", bundle.run_id.short(), readable_bytes(bundle.bytes)));
    }
    for kept in &output.kept_bundles {
        let text =
            format!("run {}  its bundle stays: named by {}", kept.run_id.short(), kept.because.join(", "));
        screen.line(screen.paint(Tone::Dim, text));
    }
    for record in &output.unreadable {
        screen.note(format_args!("cannot be read, so no bundle is removed: {}", safe_line(record)));
    }
    let bytes = readable_bytes(output.bytes);
    screen.line(match (is_empty(output), output.removed) {
        (true, _) => "nothing to remove".to_owned(),
        (false, true) => format!("{bytes} removed"),
        (false, false) => format!("{bytes} would be removed"),
    });
    Ok(ExitCode::SUCCESS)
}

impl From<GcError> for Failure {
    fn from(error: GcError) -> Self {
        match error {
            GcError::Store(error) => error.into(),
            GcError::Io { .. } => {
                Self::internal(error).hint("make it readable and writable, then run the same command again")
            }
        }
    }
}
