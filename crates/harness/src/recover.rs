//! Closes the runs that a dead process left: every run ends in a report.

use std::io;
use std::sync::Arc;

use herma_core::approval::{ApprovalId, ApprovalRequest};
use herma_core::event::{ApprovalConsumed, Source};
use herma_core::store::StoreError;
use herma_core::{Contract, EventType, Report, RunId, Stage, Step};
use herma_destination::probe;
use herma_evidence::bundle::Reopened;
use herma_evidence::chain::{Broken, Chain};
use herma_evidence::{Bundle, EventLog, Redactor, Trace, attest, layout, report};
use herma_git::SourceRepo;

use crate::close::{Closing, remember_landing, was_used};
use crate::decide::ApprovalResults;
use crate::egress;
use crate::error::OrderError;
use crate::file_reading::{MAX_RECORD_BYTES, read_regular};
use crate::installation::Installation;
use crate::journal::Journal;
use crate::order::Plan;
use crate::pipeline::first_events;
use crate::results::RunResults;
use crate::run_router;
use crate::session;
use crate::target::find_again;
use herma_home::{ActiveRun, RunDirs};

/// A run that was closed for a dead process.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The run.
    pub run_id: RunId,
    /// Its report; none if the process died before there was a run.
    pub report: Option<Report>,
}

/// Closes every run whose process is gone: a child before the run that asked for it, whose report says what it was charged.
/// One that cannot be closed keeps no other open; what is wrong with the newest such is the error.
pub fn recover(installation: &Installation) -> Result<Vec<Recovered>, OrderError> {
    let orphans = installation.home.orphans().map_err(OrderError::home)?;
    let newest_first = orphans.into_iter().rev();
    let tried: Vec<_> = newest_first.map(|(run_id, active)| close(installation, run_id, active)).collect();
    let mut closed = tried.into_iter().collect::<Result<Vec<_>, _>>()?;
    if !closed.is_empty() {
        settle_used(installation)?;
    }
    closed.reverse();
    Ok(closed)
}

/// Brings the store in step with the marks of used approvals and with the trust chain. A run that was killed between its mark
/// and the store's transaction has used its approval, whatever the store says; so has one whose store was restored.
pub fn settle_used(installation: &Installation) -> Result<(), StoreError> {
    for approval in installation.store.call(|store| store.granted_approvals())? {
        let ApprovalRequest { id, requested_at, .. } = approval.request;
        let chained = || installation.trust_log.read().ok()?.consumed_by(id);
        if let Some(run) = installation.home.marked_by(id).or_else(chained) {
            // The mark was made in time; that it is over by now does not undo the use.
            installation.store.call(|store| store.consume_approval(id, run, requested_at))?;
        }
    }
    Ok(())
}

fn close(installation: &Installation, run_id: RunId, active: ActiveRun) -> Result<Recovered, OrderError> {
    let dirs = installation.home.run(run_id);
    let planned = match read_plan(&dirs) {
        Ok(planned) => planned,
        Err(error) => return reap_local(installation, run_id).and(Err(error)),
    };
    let kind = planned.as_ref().map(|(plan, _)| plan.destination);
    installation.destinations().reap(run_id, kind).map_err(OrderError::internal)?;
    let home = installation.home.root();
    probe::clean_up(run_id, home, &installation.settings.user_home);
    complete_trust_chain(installation, run_id);
    let report = match planned {
        // It died after everything was done but giving up its lock.
        None if dirs.bundle().join(layout::ATTESTATION).exists() => None,
        // It died before it had written its plan: there is no run to report on.
        None => {
            herma_home::remove_tree(dirs.root()).map_err(OrderError::home)?;
            None
        }
        Some((plan, contract)) => Some(close_planned(installation, &dirs, &plan, &contract)?),
    };
    // Once more: a process that was just being started when herma died may have appeared since.
    reap_local(installation, run_id)?;
    active.done().map_err(OrderError::home)?;
    Ok(Recovered { run_id, report })
}

/// Writes to the trust chain that the run used its approval, where it died between the mark and that. Where the chain cannot
/// be used the mark still says it, and nothing that needs trust goes on.
fn complete_trust_chain(installation: &Installation, run_id: RunId) {
    for approval in installation.home.approvals_marked_by(run_id) {
        let _ = installation.trust_log.consume(approval, run_id, installation.clock.now());
    }
}

fn reap_local(installation: &Installation, run_id: RunId) -> Result<(), OrderError> {
    installation.destinations().reap_local(run_id).map_err(OrderError::internal)
}

/// The plan of a run; none where it was not written in full. Where something else than a file has its name, nothing can be
/// said about the run, and nothing of it is removed.
fn read_plan(dirs: &RunDirs) -> Result<Option<(Plan, Contract)>, OrderError> {
    let file = dirs.plan();
    let bytes = match read_regular(&file, MAX_RECORD_BYTES) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(OrderError::home(io::Error::other(format!("{}: {e}", file.display())))),
    };
    let Ok(plan) = serde_json::from_slice::<Plan>(&bytes) else { return Ok(None) };
    let contract = Contract::parse(plan.contract_text.as_bytes()).ok();
    Ok(contract.map(|contract| (plan, contract)))
}

fn close_planned(
    installation: &Installation,
    dirs: &RunDirs,
    plan: &Plan,
    contract: &Contract,
) -> Result<Report, OrderError> {
    // After a power cut the journal may be lost; a patch without its step result proves nothing.
    let results: RunResults = Journal::replay(&dirs.facts());
    if results.collected.is_none() && !dirs.bundle().join(layout::ATTESTATION).exists() {
        for name in [layout::PATCH, layout::TEST_LOG] {
            let _ = std::fs::remove_file(dirs.bundle().join(name));
        }
    }
    let clock = Arc::clone(&installation.clock);
    let (report, events) = match Bundle::reopen(dirs.bundle(), clock, plan.started_at)? {
        // It died after the attestation: the verdict is final, only the store lacks it.
        Reopened::Attested => {
            let (report, events) = finished(dirs)?;
            remember_landing(installation, &report, &results)?;
            (report, events)
        }
        Reopened::Open(bundle) => interrupt(installation, plan, contract, &bundle, results)?,
    };
    run_router::index(&installation.store, &dirs.bundle(), &report)?;
    installation.store.call(|store| store.finish_run(&report, &events))?;
    let kept = plan.keep_workspace && was_used(&events);
    dirs.clear(kept || session::keeps_workspace(dirs), kept)
        .and_then(|()| dirs.forget_plan())
        .map_err(OrderError::home)?;
    Ok(report)
}

/// Puts a closed run into the store, from its bundle. The caller has verified the bundle.
pub fn record_bundle(installation: &Installation, run_id: RunId) -> Result<Report, OrderError> {
    let dirs = installation.home.run(run_id);
    let (report, events) = finished(&dirs)?;
    run_router::index(&installation.store, &dirs.bundle(), &report)?;
    installation.store.call(|store| store.finish_run(&report, &events))?;
    Ok(report)
}

fn finished(dirs: &RunDirs) -> Result<(Report, Vec<herma_core::Event>), OrderError> {
    let read = |name| read_regular(&dirs.bundle().join(name), MAX_RECORD_BYTES).map_err(OrderError::home);
    let report = report::parse(&read(layout::REPORT)?).map_err(OrderError::internal)?;
    let mut chain = Chain::new(Some(report.run_id));
    let log = read(layout::EVENTS)?;
    let lines = log.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let events: Result<_, _> = lines.map(|line| chain.follow(line)).collect();
    Ok((report, events.map_err(|broken: Broken| OrderError::internal(broken))?))
}

/// Writes the first events of a run that died before it had written them.
fn complete_the_start(
    plan: &Plan,
    contract: &Contract,
    bundle: &Bundle,
    events: &EventLog,
) -> Result<(), OrderError> {
    let there = events.events().len();
    for data in first_events(plan, contract).into_iter().skip(there) {
        events.record(Source::Harness, data)?;
    }
    if !bundle.artifacts().contains_key(layout::CONTRACT) {
        bundle.write(layout::CONTRACT, plan.contract_text.as_bytes())?;
    }
    Ok(())
}

/// Records that the run used its approval, where it died between the mark that says so and the event.
fn note_used_approval(
    installation: &Installation,
    run_id: RunId,
    events: &EventLog,
    results: &mut RunResults,
) -> Result<(), OrderError> {
    let events_so_far = events.events();
    let seen = |kind| events_so_far.iter().find(|event| event.kind == kind);
    let granted = seen(EventType::ApprovalGranted).and_then(|event| event.data.get("approval_id")?.as_str());
    let Some(id) = granted.and_then(|id| id.parse::<ApprovalId>().ok()) else { return Ok(()) };
    if installation.home.marked_by(id) != Some(run_id) {
        return Ok(());
    }
    results.approval = Some(ApprovalResults::consumed(id));
    if seen(EventType::ApprovalConsumed).is_none() {
        events.record(Source::Harness, ApprovalConsumed { approval_id: id })?;
    }
    Ok(())
}

/// Ends the run as interrupted, with the results of the steps that it had taken.
fn interrupt(
    installation: &Installation,
    plan: &Plan,
    contract: &Contract,
    bundle: &Bundle,
    mut results: RunResults,
) -> Result<(Report, Vec<herma_core::Event>), OrderError> {
    let events = EventLog::resume(bundle, plan.run_id, Redactor::default())?;
    let (trace, steps) = Trace::resume(bundle)?;
    complete_the_start(plan, contract, bundle, &events)?;
    let last = steps.last().map_or(Step::Start, |line| line.step);
    results.end.interrupted = Some(format!("herma was stopped at or after the step `{last}`"));
    note_used_approval(installation, plan.run_id, &events, &mut results)?;
    let own_calls = results.own_model_calls();
    run_router::recover(installation, plan, (bundle, &events), own_calls, &mut results.models)?;
    recover_from_events(plan, &events.events(), &mut results);
    let landing_place = recover_target(installation, contract, &mut results);
    let mut closing = Closing {
        installation,
        plan,
        contract,
        bundle,
        events: &events,
        trace: &trace,
        results: &mut results,
        landing_place,
    };
    let report = closing.seal()?;
    attest(bundle, &installation.key, &report)?;
    Ok((report, events.events()))
}

/// Completes the results with what the events say: a step may have died between its event and its result.
fn recover_from_events(plan: &Plan, events: &[herma_core::Event], results: &mut RunResults) {
    let had_proxy = results.services.as_ref().is_some_and(|services| services.egress.is_some());
    let had_proxy = had_proxy || results.egress.is_some();
    if let Some(used) = egress::recover(had_proxy, plan.egress, events) {
        results.egress.get_or_insert_default().used = used;
    }
    let seen = |kind| events.iter().any(|event| event.kind == kind);
    results.engine.get_or_insert_default().started = seen(EventType::EngineStarted);
    results.probe.get_or_insert_default().confined = seen(EventType::ConfinementProbed);
}

/// Takes back what landed, and captures the target; returns the repository that the run lands in.
fn recover_target(
    installation: &Installation,
    contract: &Contract,
    results: &mut RunResults,
) -> Option<SourceRepo> {
    let gates = results.gates.as_ref();
    let source = find_again(installation, contract, gates.and_then(|gates| gates.target_dir.as_deref()));
    let had_source = gates.is_some_and(|gates| gates.source_before.is_some());
    if contract.terms.stage == Stage::DisposableRepo
        && let Some(landing) = &mut results.landing
    {
        landing.gone();
    }
    let landing_place = source.clone().filter(|_| contract.terms.stage == Stage::OwnedRepo);
    if let (Some(place), Some(landing)) = (&landing_place, &mut results.landing) {
        // An interrupted run is no pass, and one that died between the pack and the ref has left the pack.
        landing.look_again(place, installation.clock.now());
        landing.take_back(place);
    }
    if had_source && !results.landed() {
        results.witnessed.get_or_insert_default().source_after =
            source.and_then(|source| source.capture().ok());
    }
    landing_place
}
