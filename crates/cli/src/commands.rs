//! One file for each command.

mod admissions;
mod admit;
mod apply;
mod approvals;
mod approver;
mod child;
mod compare;
mod completions;
mod contract;
mod demo;
mod destinations;
mod diff;
mod discard;
mod do_task;
mod doctor;
mod dry_run;
mod egress;
mod engines;
mod env;
mod export;
mod gc;
mod health;
mod init;
pub(crate) mod inside;
mod ladder;
mod logs;
mod matrix;
mod models;
mod outcome;
mod policy;
mod probe;
mod prove;
mod quickstart;
mod resume;
mod router;
mod run;
mod runs;
mod schema;
mod show;
mod store;
mod summary;
mod trust;
mod usage;
mod verify;
mod watch;

use std::process::ExitCode;
use std::sync::Arc;

use herma_core::store::RunSummary;
use herma_harness::{Installation, OpenError, SystemClock, recover};
use herma_home::RunDirs;

use crate::args::Command;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::Screen;

/// The exit code of a command, or its failure.
pub(crate) type Ended = Result<ExitCode, Failure>;

/// Runs a command.
pub(crate) fn dispatch(command: &Command, environment: &Environment, screen: &Screen) -> Ended {
    if let Some(ended) = child::in_place_of(command, environment, screen) {
        return ended;
    }
    match command {
        Command::Demo(args) => demo::demo(args, environment, screen),
        Command::Quickstart(args) => quickstart::quickstart(args, environment, screen),
        Command::Init(args) => init::init(args, screen),
        Command::Run(args) => run::run(args, environment, screen),
        Command::Do(args) => do_task::do_task(args, environment, screen),
        Command::Resume(args) => resume::resume(args, environment, screen),
        Command::Discard(args) => discard::discard(args, environment, screen),
        Command::Gc(args) => gc::gc(args, environment, screen),
        Command::Export(args) => export::export(args, environment, screen),
        Command::Runs(args) => runs::runs(args, environment, screen),
        Command::Show(args) => show::show(args, environment, screen),
        Command::Diff(args) => diff::diff(args, environment, screen),
        Command::Logs(args) => logs::logs(args, environment, screen),
        Command::Watch(args) => watch::watch(args, environment, screen),
        Command::Verify(args) => verify::verify(args, environment, screen),
        Command::Apply(args) => apply::apply(args, environment, screen),
        Command::Accept(args) => outcome::accept(args, environment, screen),
        Command::Reject(args) => outcome::reject(args, environment, screen),
        Command::Compare(args) => compare::compare(args, environment, screen),
        Command::Contract(command) => contract::contract(command, &environment.settings, screen),
        Command::Engines(args) => engines::engines(args, environment, screen),
        Command::Destinations(of) => destinations::destinations(of, environment, screen),
        Command::Destination(command) => destinations::destination(command, environment, screen),
        Command::Probe(args) => probe::probe(args, environment, screen),
        Command::Approvals(command) => approvals::approvals(command, environment, screen),
        Command::Admit(command) => admit::admit(command, environment, screen),
        Command::Admissions(command) => admissions::admissions(command, environment, screen),
        Command::Prove(args) => prove::prove(args, environment, screen),
        Command::Ladder(args) => ladder::ladder(args, environment, screen),
        Command::Summary(args) => summary::summary(args, environment, screen),
        Command::Health(args) => health::health(args, environment, screen),
        Command::Matrix(args) => matrix::matrix(args, environment, screen),
        Command::Approver(command) => approver::approver(command, environment, screen),
        Command::Trust(command) => trust::trust(command, environment, screen),
        Command::Store(command) => store::store(command, environment, screen),
        Command::Env(command) => env::env(command, environment, screen),
        Command::Egress(command) => egress::egress(command, environment, screen),
        Command::Policy(command) => policy::policy(command, environment, screen),
        Command::Router(args) => router::router(args, environment, screen),
        Command::Models => models::models(environment, screen),
        Command::Usage(args) => usage::usage(args, environment, screen),
        Command::Schema(args) => schema::schema(args, screen),
        Command::Doctor(args) => doctor::doctor(args, environment, screen),
        Command::Completions(args) => completions::completions(args, screen),
    }
}

/// Opens the installation, and closes and reports runs of a process that died.
pub(crate) fn open(environment: &Environment, screen: &Screen) -> Result<Installation, Failure> {
    let installation = Installation::open(environment.settings.clone(), Arc::new(SystemClock))?;
    for recovered in recover(&installation)? {
        if let Some(report) = recovered.report
            && !screen.is_json()
        {
            screen.note(format_args!(
                "run {} was left by a herma process that died; it is closed as {}",
                recovered.run_id,
                report.status.as_str()
            ));
        }
    }
    Ok(installation)
}

/// Opens an installation that exists, to read its records. Nothing in the home is made or changed.
pub(crate) fn open_to_read(environment: &Environment) -> Result<Installation, Failure> {
    Ok(try_open_to_read(environment)?)
}

/// The same, with the reason where that is not possible.
pub(crate) fn try_open_to_read(environment: &Environment) -> Result<Installation, OpenError> {
    Installation::open_to_read(environment.settings.clone(), Arc::new(SystemClock))
}

/// Finds a run by its id, the start or the last digits of it, or `last`.
pub(crate) fn find_run(installation: &Installation, named: &str) -> Result<(RunSummary, RunDirs), Failure> {
    let run = herma_api::find_run(installation, named)?;
    let dirs = installation.home.run(run.run_id);
    Ok((run, dirs))
}

/// The same for a run whose evidence is needed: one that has ended.
pub(crate) fn find_finished_run(
    installation: &Installation,
    named: &str,
) -> Result<(RunSummary, RunDirs), Failure> {
    let run = herma_api::find_finished_run(installation, named)?;
    let dirs = installation.home.run(run.run_id);
    Ok((run, dirs))
}
