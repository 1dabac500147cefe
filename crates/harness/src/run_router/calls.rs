//! The records of the run's router: into the bundle, the events, and the results of the run.

use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::budget::{Amount, Day, Scope};
use herma_core::event::{ModelCallSummary, ModelCalled, Source};
use herma_core::model_call::{ModelCall, Sums};
use herma_core::report::{ChildrenUse, Usage};
use herma_core::store::StoreError;
use herma_core::{EventType, RunId};
use herma_evidence::verify::refusal;
use herma_evidence::{Bundle, EventLog, WriteError, layout};
use herma_router::audit::{self, Audit};
use herma_router::service::Refusals;
use serde::{Deserialize, Serialize};

use crate::context::RunContext;
use crate::error::Stop;
use crate::file_reading::open_regular;
use crate::installation::Installation;
use crate::journal::StepResult;
use crate::order::Plan;

/// How many calls get an event of their own; what follows is in `model-calls.jsonl` only.
const MAX_EVENTS: usize = 10_000;
/// How many models are named that were asked for and not admitted.
const MAX_NAMED: usize = 8;

/// The sums over the calls of a run.
#[derive(Default)]
struct Seen {
    usage: Usage,
    /// How many calls herma itself made before the engine was started.
    own_calls: u64,
    /// How many tool calls the model asked herma for.
    at_gates: u64,
    /// How many it asked the engine for.
    asked_for: u64,
    events: Vec<ModelCallSummary>,
    left_out: u64,
    mismatched: Vec<String>,
    exhausted: u64,
    answered_by: Option<String>,
    provider_failure: Option<String>,
}

/// The run's usage of models, by its router's own record.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ModelResults {
    pub(crate) usage: Usage,
    /// The tool calls that the model asked the engine for.
    pub(crate) asked_for: u64,
    /// The tool calls that the model asked herma's own gates for.
    pub(crate) at_gates: u64,
    /// The upstream that answered last.
    pub(crate) answered_by: Option<String>,
    /// How the provider failed the engine's last call, in words.
    #[serde(default)]
    pub(crate) provider_failure: Option<String>,
    pub(crate) refusals: Vec<BlockerRecord>,
    pub(crate) write_failures: Vec<String>,
}

impl StepResult for ModelResults {
    const KEY: &'static str = "models";
}

/// Takes over the records of the run's router. Its calls have ended.
pub(super) fn take_calls(
    ctx: &RunContext<'_>,
    refusals: &Refusals,
    own_model_calls: u64,
    found: &mut Option<ModelResults>,
) -> Result<(), Stop> {
    let dir = ctx.dirs.router();
    let seen = read(&dir, ctx.plan.run_id, own_model_calls)?;
    let results = found.insert(ModelResults::of(&seen, refusals));
    let below = ChildrenUse::from_events(&ctx.events.events()).unwrap_or_default();
    if seen.exhausted == 0
        && let Some(over) = ctx.contract.terms.limits.overspent(seen.usage.charged().plus(below.charged()))
    {
        let detail = format!("{over}: the provider counted more than could be set aside");
        results.refusals.push(Blocker::BudgetExhausted.because(detail));
    }
    ctx.journal.append(results)?;
    record(&ctx.events, &seen, 0)?;
    Ok(into_bundle(&dir, &ctx.bundle)?)
}

/// The same for a run that a dead process left: a call without an end is charged at the most.
pub(crate) fn recover(
    installation: &Installation,
    plan: &Plan,
    (bundle, events): (&Bundle, &EventLog),
    own_model_calls: u64,
    found: &mut Option<ModelResults>,
) -> Result<(), Stop> {
    let run_id = plan.run_id;
    let dir = installation.home.run(run_id).router();
    if !dir.join(audit::MODEL_CALLS).exists() {
        return Ok(());
    }
    let closed = Audit::open(&dir, &run_id.to_string()).and_then(|(audit, _)| audit.finish());
    let seen = match (closed, read(&dir, run_id, own_model_calls)) {
        (Ok(sums), Ok(seen)) => {
            give_back(installation, plan, &sums)?;
            seen
        }
        (_, Err(Stop::Write(why) | Stop::Internal(why))) => {
            found.get_or_insert_default().write_failures.push(why.to_string());
            return Ok(());
        }
        _ => {
            let why = format!("{} cannot be closed", layout::MODEL_CALLS);
            found.get_or_insert_default().write_failures.push(why);
            return Ok(());
        }
    };
    let earlier = found.take().map(|results| results.write_failures).unwrap_or_default();
    *found = Some(ModelResults { write_failures: earlier, ..ModelResults::of(&seen, &Refusals::default()) });
    let told = events.events().iter().filter(|event| event.kind == EventType::ModelCalled).count();
    record(events, &seen, told)?;
    Ok(into_bundle(&dir, bundle)?)
}

/// Frees what the dead process had leased of shared budgets and not spent.
fn give_back(installation: &Installation, plan: &Plan, sums: &Sums) -> Result<(), StoreError> {
    let untouched = [plan.started_at, installation.clock.now()].map(|at| (Day::of(at), Amount::default()));
    let mut days = BTreeMap::from(untouched);
    days.extend(&sums.by_day);
    let mut spent: Vec<(Scope, Amount)> =
        days.into_iter().map(|(day, spent)| (Scope::Day(Arc::from(day.to_string())), spent)).collect();
    spent.push((Scope::Engine(Arc::from(plan.engine.as_str())), sums.charged));
    let holder = plan.run_id.to_string();
    spent.iter().try_for_each(|(scope, spent)| {
        let reconciled = installation.store.call(|store| store.reconcile(scope, &holder, *spent));
        reconciled.map_err(|e| StoreError::new(e.source.kind(), "reconcile a lease", e))
    })
}

fn read(dir: &Path, run_id: RunId, own_calls: u64) -> Result<Seen, Stop> {
    let mut seen = Seen { own_calls, ..Seen::default() };
    let file = BufReader::new(open_regular(&dir.join(audit::MODEL_CALLS))?);
    let read = audit::read(file, &run_id.to_string(), |call| seen.take(call))?
        .map_err(|broken| Stop::write(format!("{}: {broken}", layout::MODEL_CALLS)))?;
    seen.usage = Usage::from(&read.sums);
    Ok(seen)
}

impl Seen {
    fn take(&mut self, call: &ModelCall) {
        match refusal(call) {
            Some(Blocker::ModelMismatch) if !self.mismatched.contains(&call.asked) => {
                self.mismatched.push(call.asked.clone());
            }
            Some(Blocker::BudgetExhausted) => self.exhausted += 1,
            _ => {}
        }
        // They are counted as they begin, and what never began was not answered.
        let of_whom = if call.call < Some(self.own_calls) { &mut self.at_gates } else { &mut self.asked_for };
        *of_whom = of_whom.saturating_add(call.tool_calls);
        if call.call >= Some(self.own_calls) {
            self.provider_failure = provider_failure(call);
        }
        if call.answered.is_some() {
            self.answered_by = call.attempts.last().map(|attempt| attempt.upstream.clone());
        }
        if self.events.len() < MAX_EVENTS {
            self.events.push(event(call));
        } else {
            self.left_out += 1;
        }
    }
}

/// How the provider failed this call, if it did.
fn provider_failure(call: &ModelCall) -> Option<String> {
    let attempt = call.attempts.last()?;
    match attempt.status {
        Some(status @ 500..) => Some(format!(
            "the provider `{}` answered the last model call with status {status}",
            attempt.upstream
        )),
        _ => None,
    }
}

fn event(call: &ModelCall) -> ModelCallSummary {
    ModelCallSummary {
        seq: call.seq,
        asked: call.asked.clone(),
        answered: call.answered.clone(),
        upstream: call.attempts.last().map(|attempt| attempt.upstream.clone()),
        status: call.status,
        ended: call.ended,
        reason: call.reason.clone(),
        charged: call.charged,
        settled: call.settled,
    }
}

impl ModelResults {
    fn of(seen: &Seen, refusals: &Refusals) -> Self {
        Self {
            usage: seen.usage,
            asked_for: seen.asked_for,
            at_gates: seen.at_gates,
            answered_by: seen.answered_by.clone(),
            provider_failure: seen.provider_failure.clone(),
            refusals: blockers(seen, refusals),
            write_failures: Vec::new(),
        }
    }
}

fn blockers(seen: &Seen, refusals: &Refusals) -> Vec<BlockerRecord> {
    let mut blockers = Vec::new();
    if !seen.mismatched.is_empty() {
        let named: Vec<String> = seen
            .mismatched
            .iter()
            .take(MAX_NAMED)
            .map(|asked| format!("`{}`", asked.escape_debug()))
            .collect();
        let more = match seen.mismatched.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        blockers
            .push(Blocker::ModelMismatch.because(format!("the engine asked for {}{more}", named.join(", "))));
    }
    if seen.exhausted > 0 {
        let of = match &refusals.budgets[..] {
            [] => String::new(),
            budgets => format!(" ({})", budgets.join(", ")),
        };
        let detail = format!("{} model calls were refused: the budget is exhausted{of}", seen.exhausted);
        blockers.push(Blocker::BudgetExhausted.because(detail));
    }
    blockers
}

/// Records the calls that have no event yet: those after the first `told`.
fn record(events: &EventLog, seen: &Seen, told: usize) -> Result<(), WriteError> {
    let mut new: Vec<_> = seen.events.iter().skip(told).cloned().map(ModelCalled::Call).collect();
    if seen.left_out > 0 && told <= MAX_EVENTS {
        new.push(ModelCalled::Rest { calls_without_an_event: seen.left_out });
    }
    new.into_iter().try_for_each(|data| events.record(Source::Harness, data))
}

fn into_bundle(dir: &Path, bundle: &Bundle) -> Result<(), WriteError> {
    let name = layout::MODEL_CALLS;
    let mut writer = bundle.writer(name)?;
    open_regular(&dir.join(audit::MODEL_CALLS))
        .and_then(|mut calls| io::copy(&mut calls, &mut writer))
        .map_err(|source| WriteError { name: name.to_owned(), source })?;
    writer.finish()
}
