//! `herma run`: a contract, from every gate to the evidence.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::contract::{BadContract, MAX_BYTES, Target};
use herma_core::engine::DestinationKind;
use herma_core::{Contract, Report};
use herma_evidence::RunUpdate;
use herma_evidence::file_reading::open_named;
use herma_fixtures::Fixture;
use herma_harness::{Finished, Installation, Order, RunService};
use herma_policy::Policies;
use herma_rules::PathRules;
use herma_trust::check_egress;

use crate::args;
use crate::commands::approvals::open_request;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::listen;
use crate::progress::watcher;
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn run(args: &args::Run, environment: &Environment, screen: &Screen) -> Ended {
    Policies::compile_ahead();
    let read = read_contract(&args.contract)?;
    let script = args.script.as_deref().map(|name| find_script(&read.contract, name)).transpose()?;
    let installation = Arc::new(open(environment, screen)?);
    let order = Order {
        destination: destination(args.destination, &installation, &read)?,
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
    let finished = govern(&installation, order, screen)?;
    tell(&installation, &finished, screen)?;
    if !screen.is_json()
        && let Some(next) = how_to_get_approved(args, &installation, &finished.report)
    {
        screen.line(format_args!("{} {next}", screen.paint(Tone::Bold, "next:")));
    }
    Ok(exit_code(&finished))
}

/// What a run came to, for a person or a program.
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

/// Where to run, if the contract does not say it: what the flag says, then what was chosen for the repository. A flag that
/// the contract contradicts would be passed over, and who gave it would take the run for another one.
pub(crate) fn destination(
    flag: Option<args::DestinationArg>,
    installation: &Installation,
    read: &ReadContract,
) -> Result<Option<DestinationKind>, Failure> {
    let flag = flag.map(DestinationKind::from);
    match (flag, read.contract.terms.destination) {
        (Some(flag), Some(said)) if flag != said => {
            let (flag, said) = (flag.as_str(), said.as_str());
            return Err(Failure::bad_input(format!(
                "the contract says `destination: {said}`, and --destination says `{flag}`"
            ))
            .hint("leave --destination out, or change `destination` in the contract, which makes it another contract"));
        }
        (None, None) => {}
        (flag, _) => return Ok(flag),
    }
    let chosen = installation.choice_for(&read.contract, &read.dir)?;
    Ok(chosen.map(|choice| choice.destination))
}

/// What to type next where nothing but an approval could help; a denial is not asked about again.
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
    let watch = watcher(screen);
    let run = RunService::new(Arc::clone(installation)).submit(order)?;
    for (at, update) in run.updates().enumerate() {
        if at == 0 {
            watch.started(run.id());
        }
        match update {
            RunUpdate::Step(step) => watch.step(step),
            RunUpdate::Event(event) => watch.event(event.kind, &event.note()),
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

/// A contract that was read, and where its relative paths start.
pub(crate) struct ReadContract {
    pub(crate) contract: Contract,
    pub(crate) text: String,
    pub(crate) dir: PathBuf,
}

/// Reads a contract from a file or a built-in fixture. No run is created for one that cannot be read.
pub(crate) fn read_contract(named: &str) -> Result<ReadContract, Failure> {
    if let Some(name) = named.strip_prefix("fixture:") {
        let fixture = find_fixture(name)?;
        return parse(Path::new(named), fixture.contract.to_owned(), PathBuf::from("/"));
    }
    let path = Path::new(named);
    let text = read_text(path)?;
    let dir = std::path::absolute(path).map_err(Failure::internal)?;
    let dir = dir.parent().unwrap_or(Path::new("/")).to_owned();
    parse(path, text, dir)
}

fn parse(path: &Path, text: String, dir: PathBuf) -> Result<ReadContract, Failure> {
    let contract = Contract::parse(text.as_bytes()).map_err(|bad| bad_contract(path, &bad))?;
    check_egress(&contract, &text).map_err(|bad| bad_contract(path, &bad))?;
    PathRules::compile(&contract.terms)
        .map_err(|bad| Failure::bad_input(format!("{}: {bad}", path.display())))?;
    if let Some(finding) = herma_evidence::secrets::scan(text.as_bytes()).first() {
        let before = &text.as_bytes()[..usize::try_from(finding.offset).unwrap_or(0)];
        let lines: Vec<&[u8]> = before.split(|b| *b == b'\n').collect();
        let (line, column) = (lines.len(), 1 + lines.last().map_or(0, |line| line.len()));
        return Err(Failure::bad_input(format!(
            "{}:{line}:{column}: the contract holds what looks like a secret ({})",
            path.display(),
            finding.rule
        ))
        .hint("take it out: a contract goes into the evidence as it is"));
    }
    Ok(ReadContract { contract, text, dir })
}

/// The file's text, if it is a file of sensible size.
fn read_text(path: &Path) -> Result<String, Failure> {
    let cannot = |e: std::io::Error| {
        Failure::bad_input(format!("{}: cannot be read: {e}", path.display())).hint(
            "name a contract's file, or fixture:NAME for a built-in one; `herma contract new` writes one",
        )
    };
    let file = open_named(path).map_err(cannot)?;
    let meta = file.metadata().map_err(cannot)?;
    if meta.len() > MAX_BYTES {
        return Err(bad_contract(path, &BadContract::too_large("a contract", meta.len(), MAX_BYTES)));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(e) => match Contract::parse(e.as_bytes()) {
            Err(bad) => Err(bad_contract(path, &bad)),
            Ok(_) => Err(Failure::bad_input(format!("{}: is not UTF-8", path.display()))),
        },
    }
}

/// `FILE:LINE:COLUMN: what was found; what was expected`
fn bad_contract(path: &Path, bad: &BadContract) -> Failure {
    let place = match (bad.line, bad.column) {
        (Some(line), Some(column)) => format!("{}:{line}:{column}", path.display()),
        _ => path.display().to_string(),
    };
    let expected = if bad.expected.is_empty() { String::new() } else { format!("; {}", bad.expected) };
    Failure::bad_input(format!("{place}: {}", safe_line(&format!("{}{expected}", bad.problem))))
        .hint("docs/contract.md describes every key; `herma contract new` writes a contract to start from")
}

pub(crate) fn find_fixture(name: &str) -> Result<&'static Fixture, Failure> {
    herma_fixtures::find(name).ok_or_else(|| {
        let known: Vec<_> = herma_fixtures::all().iter().map(|f| f.name).collect();
        Failure::bad_input(format!("there is no fixture `{name}`"))
            .hint(format!("there are: {}", known.join(", ")))
    })
}

/// A script of the contract's fixture by name, or a file.
pub(crate) fn find_script(contract: &Contract, named: &str) -> Result<String, Failure> {
    if let Target::Fixture(fixture) = &contract.terms.target
        && let Some(script) = find_fixture(fixture.as_str())?.script(named)
    {
        return Ok(script.to_owned());
    }
    let read = |file: File| std::io::read_to_string(file.take(MAX_BYTES));
    open_named(Path::new(named)).and_then(read).map_err(|e| {
        Failure::bad_input(format!("--script {named}: {e}")).hint(
            "name a file, or one of the fixture's scripts; docs/fake.md describes what a script can say",
        )
    })
}

/// The verdict as a person reads it, and where the evidence lies.
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
