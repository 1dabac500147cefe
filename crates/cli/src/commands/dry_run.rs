//! `herma run --dry-run`.

use std::process::ExitCode;

use herma_api::output::{DryRunGate, DryRunOutput};
use herma_core::environment::BaseResult;
use herma_core::gate::Finding;
use herma_harness::{Installation, Order, dry_run as try_order};

use crate::commands::Ended;
use crate::failure::Failure;
use crate::interrupt::listen;
use crate::screen::{Screen, Tone, safe_line};
use crate::timed_notes::timed_notes;

/// Tries an order and prints what would block it.
pub(super) fn dry_run(installation: &Installation, order: &Order, screen: &Screen) -> Ended {
    listen(&installation.cancellation, screen)?;
    let tried = try_order(installation, order, &timed_notes(screen))?;
    let would_start = tried.would_start();
    if screen.is_json() {
        let gates = tried.gates.iter().map(|(gate, finding)| DryRunGate::new(*gate, finding.as_ref()));
        screen.value(&DryRunOutput {
            schema: "herma.dry-run/v1",
            contract_id: order.contract.terms.id.to_string(),
            would_start,
            gates: gates.collect(),
            layers: tried.layers,
            verify_before: tried.verify_before,
            last_lines: tried.last_lines,
        })?;
        return Ok(exit_code(would_start));
    }
    for (gate, finding) in &tried.gates {
        let name = gate.as_str();
        match finding {
            Some(Finding::Passed) => {
                screen.line(format_args!("{}  {name}", screen.paint(Tone::Good, "ok     ")));
            }
            Some(Finding::NotApplicable(_)) => {}
            Some(Finding::Missing(record)) => {
                let said = safe_line(&record.detail);
                screen.line(format_args!(
                    "{}  {name}: {}: {said}",
                    screen.paint(Tone::Bad, "blocked"),
                    record.blocker
                ));
                screen.line(format_args!("         next: {}", safe_line(&record.next_step)));
            }
            None => screen.line(format_args!("{}  {name}", screen.paint(Tone::Dim, "not run"))),
        }
    }
    for result in &tried.verify_before {
        let ended = match result {
            BaseResult::Passed { .. } => "passes".to_owned(),
            BaseResult::Failed { exit_code: Some(code), .. } => format!("fails with exit code {code}"),
            BaseResult::Failed { exit_code: None, .. } => "fails".to_owned(),
            BaseResult::Unrunnable { reason, .. } => format!("cannot run: {}", safe_line(reason)),
        };
        screen.line(format_args!("on the base `{}` {ended}", safe_line(result.command())));
    }
    for line in &tried.last_lines {
        screen.line(format_args!("  {}", screen.paint(Tone::Dim, safe_line(line))));
    }
    let verdict =
        if would_start { "nothing that was tried blocks this run" } else { "this run would be blocked" };
    screen.line(format_args!("{verdict}; no engine was started and no model was called"));
    Ok(exit_code(would_start))
}

fn exit_code(would_start: bool) -> ExitCode {
    if would_start { ExitCode::SUCCESS } else { ExitCode::from(Failure::BLOCKED) }
}
