//! A dry run: the gates, the environment and the preflight of an order, without an engine, a model call or evidence.

use std::io::Read;
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::environment::{BaseResult, LayerBuildRecord};
use herma_core::gate::{Finding, Gate};
use herma_destination::{Exit, Job, JobPaths, LimitName, wait_unless};
use herma_environments::preflight::{BaseRun, PreflightProblem, check, judge};
use herma_evidence::Redactor;
use herma_git::{CheckoutState, lay_out};

use crate::command_runner::{SharedLog, copy_output};
use crate::environment_build::{EnvironmentError, EnvironmentSite, stopped, with_environment};
use crate::environment_views::{View, ViewMaker};
use crate::error::{OrderError, Stop};
use crate::gates;
use crate::installation::Installation;
use crate::last_lines::LastLines;
use crate::order::{Occasion, Order};
use crate::process_end::limits;

/// The result of a dry run.
#[derive(Clone, Debug)]
pub struct DryRun {
    /// Every gate, in the order of evaluation. A gate without a finding was not evaluated.
    pub gates: Vec<(Gate, Option<Finding>)>,
    /// The layers of the environment.
    pub layers: Vec<LayerBuildRecord>,
    /// How the verification commands ended on the base.
    pub verify_before: Vec<BaseResult>,
    /// The last lines of the command that failed first.
    pub last_lines: Vec<String>,
}

impl DryRun {
    /// Whether no gate that was evaluated would block the run.
    #[must_use]
    pub fn would_start(&self) -> bool {
        !self.gates.iter().any(|(_, finding)| matches!(finding, Some(Finding::Missing(_))))
    }
}

/// Evaluates everything of an order that needs neither the engine nor its model.
pub fn dry_run(
    installation: &Installation,
    order: &Order,
    note: &(dyn Fn(&str) + Sync),
) -> Result<DryRun, OrderError> {
    let digest = order.contract.digest().map_err(OrderError::Contract)?;
    let mut findings = gates::evaluate(installation, order, Occasion::default(), digest).findings;
    let mut prepared = Prepared::default();
    // An approval can come later; without a destination or a target nothing can be tried.
    let needed = [Gate::DestinationReady, Gate::TargetAdmitted, Gate::TargetClean, Gate::Environment];
    let is_missing = |gate: &Gate| matches!(findings.get(gate), Some(Finding::Missing(_)));
    if !needed.iter().any(is_missing) {
        let tried = with_environment(installation, order, note, |site| {
            note("preflight: running the verification commands on the base");
            prepared = verify_base(installation, &site, order).map_err(stopped)?;
            prepared.layers = site.built.map(|(_, layers)| layers).unwrap_or_default();
            Ok(())
        });
        match tried {
            Ok(()) => {
                findings.insert(Gate::Confinement, Finding::Passed);
                findings.entry(Gate::Environment).or_insert(Finding::Passed);
                findings.insert(Gate::Preflight, finding(order, &prepared.results));
            }
            Err(EnvironmentError::Internal(error)) => return Err(error),
            Err(error) => {
                let (gate, record) = missing(error);
                findings.insert(gate, Finding::Missing(record));
            }
        }
    }
    let gates = Gate::ALL.into_iter().map(|gate| (gate, findings.remove(&gate))).collect();
    let Prepared { layers, results: verify_before, last_lines } = prepared;
    Ok(DryRun { gates, layers, verify_before, last_lines })
}

#[derive(Default)]
struct Prepared {
    layers: Vec<LayerBuildRecord>,
    results: Vec<BaseResult>,
    last_lines: Vec<String>,
}

fn missing(error: EnvironmentError) -> (Gate, BlockerRecord) {
    match error {
        EnvironmentError::Blocked(record) => match record.blocker {
            Blocker::ConfinementFailed => (Gate::Confinement, record),
            Blocker::DestinationUnready => (Gate::DestinationReady, record),
            _ => (Gate::Environment, record),
        },
        error => (Gate::Environment, Blocker::EnvironmentFailed.because(error.to_string())),
    }
}

fn finding(order: &Order, results: &[BaseResult]) -> Finding {
    match check(results, order.contract.terms.expect_before) {
        Ok(()) => Finding::Passed,
        Err(problem) => {
            let record = Blocker::VerificationUnrunnable.because(problem.to_string());
            Finding::Missing(match problem {
                PreflightProblem::Unrunnable { fix, .. } => BlockerRecord { next_step: fix, ..record },
                PreflightProblem::Unexpected { .. } => record,
            })
        }
    }
}

/// Runs the verification commands on a checkout of the base, each in a home of its own, as a run does.
fn verify_base(
    installation: &Installation,
    site: &EnvironmentSite<'_>,
    order: &Order,
) -> Result<Prepared, Stop> {
    let checkout = site.dirs.preflight();
    private_dir(&checkout)?;
    lay_out(&site.base.git_dir, &site.base.entries, &[&checkout])?;
    let checkout = CheckoutState::record(
        checkout,
        site.base.git_dir.format(),
        site.base.git_dir.checked_out(&site.base.entries).into_owned(),
    );
    if let Some(repository) = site.base.repository(None) {
        repository.make(&site.base.entries, checkout.root())?;
    }
    let environment = match &site.built {
        None => None,
        Some((built, _)) => {
            let top = built.top();
            let views = ViewMaker::of(top, site.dirs, site.run_id, site.place.destination.as_ref())?;
            Some((top, views))
        }
    };
    let mut first: Option<View> = None;
    let mut prepared = Prepared::default();
    let deadline = Instant::now() + order.contract.terms.limits.total.duration();
    for (at, command) in order.contract.terms.verify.iter().enumerate() {
        let home = site.dirs.root().join(format!("dry-run-home-{at}"));
        let overlays = match (&environment, first.clone()) {
            (Some((top, views)), Some(first)) => views.another_home(top, &first, &home)?.overlays,
            (Some((top, views)), None) => {
                private_dir(&home)?;
                first.insert(views.write(top, &home, checkout.root())?).overlays.clone()
            }
            (None, _) => {
                private_dir(&home)?;
                Vec::new()
            }
        };
        let tools = &site.place.tools;
        let argv = vec!["/bin/sh".into(), "-c".into(), command.into()];
        let paths = JobPaths::new(checkout.root().to_owned()).with_home(home);
        let job = Job::new(site.run_id, argv, paths)
            .with_env(tools.env.clone())
            .with_search_path(tools.search_path.clone())
            .with_mounts(tools.mounts.clone())
            .with_overlays(overlays)
            .with_limits(limits(&order.contract));
        let Ran { exit, exceeded, lines } = run(installation, site, &job, deadline)?;
        let result = match checkout.changed().first() {
            Some(path) => BaseResult::Unrunnable {
                command: command.clone(),
                reason: format!("it changes tracked files, such as {}", path.shortened()),
                fix: "make it leave them alone: verification refuses a command that changes what it tests"
                    .to_owned(),
            },
            None => judge(&BaseRun { command, exit, exceeded, last_lines: &lines }),
        };
        if prepared.last_lines.is_empty() && !matches!(result, BaseResult::Passed { .. }) {
            prepared.last_lines = lines;
        }
        let is_unrunnable = matches!(result, BaseResult::Unrunnable { .. });
        prepared.results.push(result);
        if is_unrunnable {
            break;
        }
    }
    Ok(prepared)
}

fn private_dir(dir: &std::path::Path) -> Result<(), Stop> {
    Ok(std::fs::DirBuilder::new().mode(0o700).create(dir)?)
}

/// A command that ran.
struct Ran {
    exit: Option<Exit>,
    exceeded: Option<LimitName>,
    lines: Vec<String>,
}

/// Runs one command until none of its processes is alive.
fn run(
    installation: &Installation,
    site: &EnvironmentSite<'_>,
    job: &Job,
    deadline: Instant,
) -> Result<Ran, Stop> {
    let mut process = site.place.destination.start(job)?;
    let lines = Arc::new(Mutex::new(LastLines::default()));
    let log: SharedLog = lines.clone();
    let pump = |from: Option<Box<dyn Read + Send>>| {
        let log = Arc::clone(&log);
        from.map(|from| thread::spawn(move || copy_output(from, &log)))
    };
    let pumps = [pump(process.take_stdout()), pump(process.take_stderr())];
    let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let exit = wait_unless(process.as_mut(), left, || installation.cancellation.is_cancelled())?;
    let exceeded = process.exceeded_limit();
    process.kill_all()?;
    for pump in pumps.into_iter().flatten() {
        pump.join().map_err(|_| Stop::panicked("reading test output"))?;
    }
    if installation.cancellation.is_cancelled() {
        return Err(Stop::Blocked);
    }
    let lines = lines.lock().unwrap_or_else(PoisonError::into_inner).take(&Redactor::default());
    Ok(Ran { exit, exceeded, lines })
}
