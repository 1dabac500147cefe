//! Checks that report, events, attestation and model calls agree.

use std::collections::BTreeSet;

use herma_core::engine::{EndedBy, EngineExit, EngineResult};
use herma_core::event::RunCompleted;
use herma_core::report::{ApprovalStatus, ChangedByCommand, LandedIn, OutcomeState, VerificationStatus};
use herma_core::trust::TrustHead;
use herma_core::{Blocker, Contract, EventType, RepoPath, Report, Stage, Status, Verdict};

use super::check::Good;
use super::children::children;
use super::egress::egress;
use super::environment::environment;
use super::model_calls::model_calls;
use super::pass::BundleContents;
use super::recorded::recorded;
use crate::redact::is_redacted;

/// Nothing in the bundle contradicts anything else in it.
pub(super) fn agreement(seen: &BundleContents) -> Result<Good, String> {
    let report = seen.report()?;
    if Verdict::new(report.blockers.clone()).status() != report.status {
        return Err(format!("the status {} does not follow from the blockers", report.status.as_str()));
    }
    // Whether a contract that cannot be read is excused is what the check of the contract says.
    if seen.contract().is_ok_and(|contract| contract.terms.mutation_scope() != report.mutation_scope) {
        return Err("the mutation scope is not that of the contract".to_owned());
    }
    let named = |contract: &Contract| {
        let (provider, model) = (report.model_provider.as_deref(), report.model.as_deref());
        let choice = contract.terms.model.as_ref();
        (provider, model) == (choice.map(|c| c.provider.as_str()), choice.map(|c| c.model.as_str()))
    };
    if seen.contract().is_ok_and(|contract| !named(contract)) {
        return Err("the model is not that of the contract".to_owned());
    }
    last_event(seen, report)?;
    trust_head(seen, report)?;
    recorded(seen, report)?;
    statement(seen, report)?;
    engine(report)?;
    changed_by_commands(report)?;
    if report.status == Status::Pass {
        if report.stage.starts_engine() {
            pass(seen, report)?;
        } else if report.engine_started || report.stage == Stage::CandidateDefault {
            return Err(format!("no engine is started at stage {}", report.stage));
        }
    }
    needs(seen, report)?;
    landing(report)?;
    target(report)?;
    model_calls(seen, report)?;
    egress(seen, report)?;
    environment(seen, report)?;
    children(seen, report)?;
    Ok(Good::Passed(format!("{} everywhere", report.status.as_str())))
}

fn last_event(seen: &BundleContents, report: &Report) -> Result<(), String> {
    let Some(events) = &seen.events else { return Ok(()) };
    let last = match events.last() {
        Some(last) if last.kind == EventType::RunCompleted => last,
        // Whether its absence is excused is what the check of the order says.
        _ => return Ok(()),
    };
    let said =
        RunCompleted::from_data(&last.data).map_err(|e| format!("the last event holds no verdict: {e}"))?;
    let verdict = RunCompleted::new(report.status, &report.blockers, said.agent_events_left_out);
    if said != verdict {
        return Err("the last event's verdict is not the report's".to_owned());
    }
    Ok(())
}

/// The report names the head of the trust chain that the first event names.
fn trust_head(seen: &BundleContents, report: &Report) -> Result<(), String> {
    let Some(events) = &seen.events else { return Ok(()) };
    let Some(first) = events.first().filter(|first| first.kind == EventType::RunStarted) else {
        return Ok(());
    };
    let said = first.data.get("trust_head").map(|head| serde_json::from_value(head.clone())).transpose();
    let said: Option<TrustHead> = said.map_err(|e| format!("the first event's trust head: {e}"))?;
    if said == report.trust_head {
        Ok(())
    } else {
        Err("the report's trust head is not that of the first event".to_owned())
    }
}

fn statement(seen: &BundleContents, report: &Report) -> Result<(), String> {
    let (_, statement) = seen.envelope()?;
    let said = &statement.predicate;
    let same = said.run_id == report.run_id
        && said.contract_digest == report.contract_digest
        && said.status == report.status
        && said.herma_version == report.herma_version
        && said.trust_head == report.trust_head;
    same.then_some(()).ok_or_else(|| "the attestation speaks of another run than the report".to_owned())
}

fn engine(report: &Report) -> Result<(), String> {
    if !report.engine_started && report.engine_exit.is_some() {
        return Err("the engine ended without having started".to_owned());
    }
    if !report.engine_started && !report.changed_files.is_empty() {
        return Err("there are changes though the engine was not started".to_owned());
    }
    let changed = distinct(report.changed_files.iter().map(|file| &file.path), "changed file")?;
    distinct(&report.ignored_files, "ignored file")?;
    for (paths, kind) in [
        (&report.changed_tests, "changed test"),
        (&report.changed_verification_files, "changed verification file"),
    ] {
        if let Some(path) = distinct(paths, kind)?.difference(&changed).next() {
            return Err(format!("{path} is listed as a {kind} and was not changed"));
        }
    }
    Ok(())
}

/// The paths as a set. A list that has one twice is refused; two names can be the same only where a secret in them was
/// redacted.
fn distinct<'a>(
    paths: impl IntoIterator<Item = &'a RepoPath>,
    kind: &str,
) -> Result<BTreeSet<&'a RepoPath>, String> {
    let mut set = BTreeSet::new();
    for path in paths {
        if !set.insert(path) && !is_redacted(path.as_bytes()) {
            return Err(format!("{path} is listed twice as a {kind}"));
        }
    }
    Ok(set)
}

/// If a verification command changed tracked files, its record and the blockers must say so.
fn changed_by_commands(report: &Report) -> Result<(), String> {
    let commands = || report.verification.iter().chain(&report.verification_with_baseline_tests);
    for command in commands() {
        let consistent = command.changed_files.as_ref().is_none_or(ChangedByCommand::is_consistent);
        let named = command.status != VerificationStatus::ChangedFiles || command.changed_files.is_some();
        if !consistent
            || !named
            || (command.status == VerificationStatus::Passed && command.changed_files.is_some())
        {
            return Err(format!(
                "the files that `{}` changed are not recorded as they must be",
                command.command
            ));
        }
    }
    let changed = commands().any(|command| command.changed_files.is_some());
    let blocked = report.blockers.iter().any(|record| record.blocker == Blocker::VerificationChangedFiles);
    if changed != blocked {
        return Err(
            "a verification command changed tracked files and no blocker says so, or the other way round"
                .to_owned(),
        );
    }
    Ok(())
}

/// The report says how the engine supports what the contract needs, and in a pass nothing of it is missing.
fn needs(seen: &BundleContents, report: &Report) -> Result<(), String> {
    let Ok(contract) = seen.contract() else { return Ok(()) };
    let needed = &contract.terms.needs;
    if let Some(other) = report.needs.keys().find(|other| !needed.contains(other)) {
        return Err(format!("the contract does not need `{other}`, of which the report tells"));
    }
    if report.status != Status::Pass {
        return Ok(());
    }
    let missing =
        needed.iter().find(|need| !report.needs.get(need).is_some_and(|support| support.is_there()));
    match missing {
        Some(need) => Err(format!("the report is a pass, and does not say that its engine has `{need}`")),
        None => Ok(()),
    }
}

/// The landed result is the one that passed, and has a pending outcome where the stage requires one.
fn landing(report: &Report) -> Result<(), String> {
    let landed = report.landing.as_ref().filter(|landing| landing.landed);
    if landed.is_some() && (!report.engine_started || report.result_tree.is_none()) {
        return Err("something landed that no engine made".to_owned());
    }
    if let Some(landing) = &report.landing {
        let made = landing.repository == LandedIn::Disposable;
        let fits = report.stage.lands()
            && made == (report.stage == Stage::DisposableRepo)
            && made == landing.disposal.is_some()
            && landing.reference.starts_with("refs/heads/herma/");
        if !fits {
            return Err("it landed where its stage does not land".to_owned());
        }
    }
    if report.outcome_due.is_some_and(|due| due < report.run_started_at) {
        return Err("the outcome was due before the run began".to_owned());
    }
    let pass = report.status == Status::Pass;
    if pass && report.stage.lands() && landed.is_none() {
        return Err("the report is a pass, and nothing landed".to_owned());
    }
    let pending = report.outcome == OutcomeState::Pending;
    if pending != (landed.is_some() && report.stage.needs_outcome())
        || pending != report.outcome_due.is_some()
    {
        return Err("an outcome is asked for where none is, or the other way round".to_owned());
    }
    let consumed = report.approval_status == ApprovalStatus::Consumed;
    if report.stage.needs_approval() && report.engine_started && !consumed {
        return Err("the engine was started without an approval".to_owned());
    }
    if consumed && report.approval_id.is_none() {
        return Err("an approval was used and is not named".to_owned());
    }
    Ok(())
}

/// Whether the engine's exit allows a pass.
fn ended_well(exit: &EngineExit) -> bool {
    let in_time = match exit.ended_by {
        EndedBy::Exited => (exit.code, exit.signal) == (Some(0), None),
        EndedBy::EarlyStop => true,
        _ => false,
    };
    in_time && exit.result == Some(EngineResult::Completed)
}

/// The report's statement about the target agrees with its blockers.
fn target(report: &Report) -> Result<(), String> {
    let listed = |blocker| report.blockers.iter().any(|record| record.blocker == blocker);
    // A missing gate is then the only blocker.
    if !report.engine_started {
        return Ok(());
    }
    for (field, told, blocker) in [
        ("source_mutated", report.source_mutated == Some(true), Blocker::SourceMutated),
        ("target_clean_end", report.target_clean_end == Some(false), Blocker::DirtyEndingTree),
    ] {
        if told && !listed(blocker) {
            return Err(format!("`{field}` is not what the blockers say"));
        }
    }
    let (start, end) = (report.target_clean_start, report.target_clean_end);
    if start == Some(true) && end == Some(false) && report.source_mutated != Some(true) {
        return Err("the target was clean only before the run, and is said not to have changed".to_owned());
    }
    Ok(())
}

fn pass(seen: &BundleContents, report: &Report) -> Result<(), String> {
    let contract = seen.contract()?;
    let commands = report.verification.iter().map(|v| &v.command);
    let with_old_tests = &report.verification_with_baseline_tests;
    let changes_checks = !report.changed_tests.is_empty() || !report.changed_verification_files.is_empty();
    let leans = changes_checks
        && !contract.terms.tests_may_change
        && !with_old_tests.iter().map(|v| &v.command).eq(&contract.terms.verify);
    let charged = report.usage.charged().plus(report.children.unwrap_or_default().charged());
    let exit = report.engine_exit.as_ref();
    let rules: [(bool, &str); 15] = [
        (report.engine_started, "the engine was not started"),
        (exit.is_some_and(ended_well), "the engine did not end well"),
        (
            report.verification.iter().all(|v| v.status == VerificationStatus::Passed),
            "a verification did not pass",
        ),
        (!report.verification.is_empty(), "nothing was verified"),
        (commands.eq(&contract.terms.verify), "other commands were verified than the contract's"),
        (!leans, "nothing shows that it passes with the tests as they were"),
        (
            with_old_tests.iter().all(|v| v.status == VerificationStatus::Passed),
            "it does not pass with the tests as they were",
        ),
        (report.allowed_paths_passed == Some(true), "a change is not allowed"),
        (report.forbidden_paths_passed == Some(true), "a change is forbidden"),
        (report.forbidden_actions_attempted.is_empty(), "a forbidden action was attempted"),
        (report.required_events_passed, "a required event is missing"),
        (report.source_mutated != Some(true), "the target was changed"),
        (report.freshness.passed, "a file is not fresh"),
        (!contract.terms.require_diff || !report.changed_files.is_empty(), "nothing was changed"),
        (contract.terms.limits.overspent(charged).is_none(), "more was charged than the contract's limits"),
    ];
    match rules.iter().find(|(holds, _)| !holds) {
        Some((_, problem)) => Err(format!("the report is a pass, and {problem}")),
        None => Ok(()),
    }
}
