//! `herma run`: a contract, from every gate to the evidence.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use herma_api::{find_engine, find_script, open_request, read_contract, resolve_destination};
use herma_core::Report;
use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::engine::DestinationKind;
use herma_evidence::RunUpdate;
use herma_harness::{Finished, Installation, Order, RunService};
use herma_policy::Policies;

use crate::args;
use crate::commands::dry_run::dry_run;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::listen;
use crate::progress::watcher;
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn run(args: &args::Run, environment: &Environment, screen: &Screen) -> Ended {
    Policies::compile_ahead();
    let read = read_contract(&args.contract, &environment.settings)?;
    let script = args.script.as_deref().map(|name| find_script(&read.contract, name)).transpose()?;
    let installation = Arc::new(open(environment, screen)?);
    // A mistyped name is no run.
    find_engine(&installation, &args.engine)?;
    let order = Order {
        destination: resolve_destination(args.destination.map(Into::into), &installation, &read)?,
        contract: read.contract,
        contract_text: read.text,
        contract_dir: read.dir,
        engine: args.engine.clone(),
        script,
        keep_workspace: args.keep_workspace,
        egress: args.egress.into(),
        resumes: None,
        fault: environment.fault.clone(),
    };
    if args.dry_run {
        return dry_run(&installation, &order, screen);
    }
    let finished = govern(&installation, order, screen)?;
    tell(&installation, &finished, screen)?;
    if !screen.is_json()
        && let Some(next) = how_to_get_approved(args, &installation, &finished.report)
    {
        screen.line(format_args!("{} {next}", screen.paint(Tone::Bold, "next:")));
    }
    Ok(exit_code(&finished))
}

/// Prints the result of a run, for a person or a program.
pub(crate) fn tell(installation: &Installation, finished: &Finished, screen: &Screen) -> Result<(), Failure> {
    let Finished { report, bundle, .. } = finished;
    if screen.is_json() {
        return screen.value(report);
    }
    show_verdict(report, bundle, screen);
    let kept = installation.home.run(report.run_id).workspace();
    if kept.exists() {
        screen.line(format_args!("  workspace {}", kept.display()));
    }
    if let Some(due) = report.outcome_due {
        let run = report.run_id.short();
        screen.line(format_args!(
            "{} `herma accept {run}` or `herma reject {run} --reason TEXT`, until {due}",
            screen.paint(Tone::Bold, "next:")
        ));
    }
    Ok(())
}

/// The next command where only an approval is missing; after a denial there is none.
fn how_to_get_approved(args: &args::Run, installation: &Installation, report: &Report) -> Option<String> {
    let lacks = |record: &BlockerRecord| {
        use Blocker as B;
        matches!(record.blocker, B::ApprovalVoid | B::ApprovalExpired | B::ApprovalAlreadyConsumed)
    };
    if !report.blockers.iter().any(lacks) {
        return None;
    }
    if let Some(waiting) = open_request(installation, report) {
        let id = waiting.request.id.short();
        return Some(format!("an approver says `herma approvals grant {id} --reason TEXT`"));
    }
    let destination = args.destination.map(|arg| DestinationKind::from(arg).as_str());
    let destination = destination.map(|name| format!(" --destination {name}")).unwrap_or_default();
    let (contract, engine) = (safe_line(&args.contract), &args.engine);
    Some(format!(
        "ask for an approval with `herma approvals request {contract} --engine {engine}{destination} --reason TEXT`"
    ))
}

/// Runs the order and shows its progress on the screen.
pub(crate) fn govern(
    installation: &Arc<Installation>,
    order: Order,
    screen: &Screen,
) -> Result<Finished, Failure> {
    listen(&installation.cancellation, screen)?;
    let watch = watcher(screen, Some(installation));
    let run = RunService::new(Arc::clone(installation)).submit(order)?;
    for (at, update) in run.updates().enumerate() {
        if at == 0 {
            watch.started(run.id());
        }
        match update {
            RunUpdate::Step(step) => watch.step(step),
            RunUpdate::Event(event) => watch.event(event.kind, &event.note()),
            RunUpdate::Note(text) => watch.note(&text),
        }
    }
    Ok(run.wait()?)
}

/// 0 pass, 1 fail, 3 blocked; 4 where herma itself failed.
pub(crate) fn exit_code(finished: &Finished) -> ExitCode {
    match &finished.internal_error {
        Some(_) => ExitCode::from(Failure::INTERNAL),
        None => ExitCode::from(finished.report.status.exit_code()),
    }
}

/// Prints the verdict and the directory of the evidence.
pub(crate) fn show_verdict(report: &Report, bundle: &Path, screen: &Screen) {
    show_result(report, screen);
    screen.line(format_args!("  evidence {}", bundle.display()));
}

/// The verdict as a person reads it.
pub(crate) fn show_result(report: &Report, screen: &Screen) {
    screen.line(format_args!(
        "{}  {}  {}",
        screen.status(report.status),
        report.contract_id,
        screen.paint(Tone::Dim, report.run_id)
    ));
    for blocker in &report.blockers {
        screen.line(format_args!(
            "  {}  {}",
            screen.paint(Tone::Bold, blocker.blocker),
            safe_line(&blocker.detail)
        ));
        screen.line(format_args!("    next: {}", safe_line(&blocker.next_step)));
    }
    for change in &report.changed_files {
        let kind = match (&change.old, &change.new) {
            (None, _) => "added",
            (_, None) => "deleted",
            _ => "changed",
        };
        let test = if report.changed_tests.contains(&change.path) {
            screen.paint(Tone::Warn, "  a test, rewritten by the engine")
        } else if report.changed_verification_files.contains(&change.path) {
            screen.paint(Tone::Warn, "  decides what verification does")
        } else {
            String::new()
        };
        screen.line(format_args!("  {kind:8} {}{test}", safe_line(&change.path.to_string())));
    }
    for check in &report.verification {
        let code = check.exit_code.map_or_else(|| "killed".to_owned(), |code| format!("exit {code}"));
        screen.line(format_args!(
            "  verify   {}  ({code}, {} ms)",
            safe_line(&check.command),
            check.duration_ms
        ));
        if let Some(changed) = &check.changed_files {
            let text = format!("           changed {}", safe_line(&changed.to_string()));
            screen.line(format_args!("{}", screen.paint(Tone::Warn, text)));
        }
    }
}
