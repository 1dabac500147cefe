//! The results of all steps, and the verdict that follows from them.

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::contract::Action;
use herma_core::event::{EndSummary, first_missing, required};
use herma_core::tool::{ModelToolCalls, ToolUse};
use herma_core::{Contract, Digest, Event, EventType, Status, Verdict};
use herma_rules::verdict::{RunFacts, SourceFacts};
use serde::{Deserialize, Serialize};

use crate::checks::Checked;
use crate::collect::Collected;
use crate::decide::{ApprovalResults, DecisionResults, GateResults};
use crate::effectful_gates::ProbeResults;
use crate::egress::EgressResults;
use crate::engine_results::EngineResults;
use crate::environment::EnvironmentResults;
use crate::governance::ToolCallResults;
use crate::land::{DisposableResults, LandingResults};
use crate::path_shims::ShimResults;
use crate::run_router::ModelResults;
use crate::services::ServicesStarted;
use crate::verification::Verified;
use crate::witness::Witnessed;
use crate::workspace::WorkspaceResults;

/// The result of each step that was taken. The keys are those of the journal.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RunResults {
    pub(crate) gates: Option<GateResults>,
    pub(crate) approval: Option<ApprovalResults>,
    pub(crate) services: Option<ServicesStarted>,
    pub(crate) probe: Option<ProbeResults>,
    pub(crate) environment: Option<EnvironmentResults>,
    pub(crate) decision: Option<DecisionResults>,
    pub(crate) workspace: Option<WorkspaceResults>,
    pub(crate) disposable: Option<DisposableResults>,
    pub(crate) engine: Option<EngineResults>,
    pub(crate) models: Option<ModelResults>,
    pub(crate) egress: Option<EgressResults>,
    pub(crate) tools: Option<ToolCallResults>,
    pub(crate) shims: Option<ShimResults>,
    pub(crate) collected: Option<Collected>,
    pub(crate) checked: Option<Checked>,
    pub(crate) verified: Option<Verified>,
    pub(crate) witnessed: Option<Witnessed>,
    pub(crate) landing: Option<LandingResults>,
    /// The end of the run itself; never in the journal.
    #[serde(skip)]
    pub(crate) end: RunEnd,
}

/// Why a run ended early, and what closing it found.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunEnd {
    pub(crate) interrupted: Option<String>,
    /// Whether the workspace is kept for a later run; none until that is known.
    pub(crate) keeps_workspace: Option<bool>,
    /// The next step of an interrupted run that can be resumed.
    pub(crate) resume_with: Option<String>,
    pub(crate) write_failures: Vec<String>,
    pub(crate) missing_event: Option<EventType>,
    /// Why herma's own verification refuses the bundle.
    pub(crate) evidence_refused: Option<String>,
}

impl RunResults {
    pub(crate) fn engine_started(&self) -> bool {
        self.engine.as_ref().is_some_and(|engine| engine.started)
    }

    pub(crate) fn confined(&self) -> bool {
        self.probe.as_ref().is_some_and(|probe| probe.confined)
    }

    pub(crate) fn landed(&self) -> bool {
        self.landing.as_ref().is_some_and(|landing| landing.landed)
    }

    /// The digest of the engine that was decided on, or that the gates judged.
    pub(crate) fn engine_digest(&self) -> Option<Digest> {
        match &self.decision {
            Some(decision) => decision.engine_digest,
            None => self.gates.as_ref()?.engine_digest,
        }
    }

    /// Why verification cannot use the environment: the patch changed what it is made of.
    pub(crate) fn stale_environment(&self) -> Option<&'static str> {
        let changed = self.environment.as_ref().is_some_and(|found| !found.changed_inputs.is_empty());
        changed.then_some("the patch changes what the environment is made of, so it was not verified")
    }

    pub(crate) fn own_model_calls(&self) -> u64 {
        self.engine.as_ref().map_or(0, |engine| engine.own_model_calls)
    }

    /// The forbidden actions that were attempted, each once, in the order of the steps that saw them.
    pub(crate) fn forbidden_actions(&self) -> Vec<Action> {
        let engine = self.engine.iter().flat_map(|engine| &engine.actions);
        let egress = self.egress.iter().flat_map(|egress| &egress.attempted);
        let tools = self.tools.iter().flat_map(|tools| &tools.attempted);
        let shims = self.shims.iter().flat_map(|shims| &shims.attempted);
        let mut actions = Vec::new();
        for action in engine.chain(egress).chain(tools).chain(shims) {
            if !actions.contains(action) {
                actions.push(*action);
            }
        }
        actions
    }

    /// The tool calls of the engine: those of its dialogue, of its hooks, and those that the model asked for.
    pub(crate) fn tool_use(&self) -> Option<ToolUse> {
        let mut tools = self.engine.as_ref()?.tools.clone()?;
        if let Some(hooked) = &self.tools {
            tools.asked += hooked.asked;
            tools.denied += hooked.denied;
            // The agent also reports the calls that its hook asked about.
            tools.unasked = tools.unasked.saturating_sub(hooked.asked);
        }
        if let Some(ModelResults { asked_for, at_gates, .. }) = self.models {
            tools.model_calls = Some(ModelToolCalls { asked_for, at_gates, unreconciled: 0 });
        }
        Some(tools)
    }

    /// Every gate that does not hold.
    pub(crate) fn gate_blockers(&self) -> impl Iterator<Item = &BlockerRecord> {
        let decided = self.decision.iter().flat_map(|decision| &decision.gate_blockers);
        decided.chain(self.workspace.iter().filter_map(|workspace| workspace.dirty.as_ref()))
    }

    /// Every record that could not be written.
    pub(crate) fn write_failures(&self) -> impl Iterator<Item = &String> {
        let models = self.models.iter().flat_map(|models| &models.write_failures);
        let egress = self.egress.iter().filter_map(|egress| egress.write_failure.as_ref());
        let tools = self.tools.iter().filter_map(|tools| tools.write_failure.as_ref());
        models.chain(egress).chain(tools).chain(&self.end.write_failures)
    }

    /// Every text that may name a path of this machine, because git or the system wrote a part of it.
    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let decided = self.decision.iter_mut().flat_map(|decision| &mut decision.gate_blockers);
        let dirty = self.workspace.iter_mut().filter_map(|workspace| workspace.dirty.as_mut());
        let refused = self.landing.iter_mut().filter_map(|landing| landing.refused.as_mut());
        let records = decided.chain(dirty).chain(refused).map(|record| &mut record.detail);
        let models = self.models.iter_mut().flat_map(|models| &mut models.write_failures);
        let egress = self.egress.iter_mut().filter_map(|egress| egress.write_failure.as_mut());
        let tools = self.tools.iter_mut().filter_map(|tools| tools.write_failure.as_mut());
        let end = self.end.interrupted.iter_mut().chain(&mut self.end.write_failures);
        records.chain(models).chain(egress).chain(tools).chain(end)
    }

    /// The changes of the target and of the disposable repository.
    fn source(&self) -> Option<SourceFacts> {
        let witnessed = self.witnessed.as_ref();
        let source_before = self.gates.as_ref().and_then(|gates| gates.source_before.as_ref());
        let source_after = witnessed.and_then(|witnessed| witnessed.source_after.as_ref());
        let made_before = self.disposable.as_ref().map(|disposable| &disposable.before);
        let made_after = witnessed.and_then(|witnessed| witnessed.disposable_after.as_ref());
        let seen: Vec<_> =
            source_before.zip(source_after).into_iter().chain(made_before.zip(made_after)).collect();
        let differences: Vec<_> = seen.iter().flat_map(|(before, after)| before.differences(after)).collect();
        (!seen.is_empty()).then(|| SourceFacts {
            clean_end: seen.iter().all(|(before, after)| after.clean_since(before)),
            mutated: !differences.is_empty(),
            what: differences.join(", "),
        })
    }

    /// The verdict by the rules of `herma_rules::verdict`.
    pub(crate) fn judge(&self, contract: &Contract) -> Verdict {
        let engine = self.engine.as_ref();
        let (collected, checked) = (self.collected.as_ref(), self.checked.as_ref());
        let verified = self.verified.as_ref();
        let secret = match (checked, collected) {
            (Some(checked), Some(collected)) => checked.secret(collected).cloned(),
            (_, collected) => collected.and_then(|collected| collected.secret.clone()),
        };
        let verdict = herma_rules::verdict::judge(&RunFacts {
            gates_only: !contract.terms.stage.starts_engine(),
            require_diff: contract.terms.require_diff,
            engine_exit: engine.and_then(|engine| engine.exit.clone()),
            engine_ended: engine.and_then(|engine| engine.ended.clone()),
            changed: collected.map_or(0, |collected| collected.changed_files.len()),
            changed_inputs: self.environment.as_ref().map_or(&[], |found| &found.changed_inputs),
            rebuild_refused: self.environment.as_ref().and_then(|found| found.rebuild_refused.clone()),
            violations: checked.map_or(&[], |checked| &checked.violations),
            forbidden_actions: &self.forbidden_actions(),
            verification: verified.map_or(&[], |verified| &verified.commands),
            verification_with_baseline_tests: verified.map_or(&[], |verified| &verified.with_baseline_tests),
            changed_verification_files: collected.map_or(&[], |found| &found.changed_verification_files),
            verify_declared: contract.terms.verify.len(),
            model_refusals: self.models.as_ref().map(|models| models.refusals.clone()).unwrap_or_default(),
            egress_denied: self.egress.as_ref().and_then(|egress| egress.denied.clone()),
            missing_event: self.end.missing_event,
            evidence_refused: self.end.evidence_refused.clone(),
            secret,
            source: self.source(),
            landing_refused: self.landing.as_ref().and_then(|landing| landing.refused.clone()),
            write_failures: self.write_failures().cloned().collect(),
            protocol_error: engine.and_then(|engine| engine.protocol_error.clone()),
            gate_blockers: self.gate_blockers().cloned().collect(),
            interrupted: self.end.interrupted.clone(),
            interrupted_next_step: self.end.resume_with.clone(),
        });
        match self.models.as_ref().and_then(|models| models.provider_failure.as_deref()) {
            None => verdict,
            Some(failure) => explained(&verdict, failure),
        }
    }

    /// The first event before the last one that a run with this status must have left and has not.
    pub(crate) fn missing_event(
        &self,
        contract: &Contract,
        status: Status,
        events: &[Event],
    ) -> Option<EventType> {
        let (engine_started, confined) = (self.engine_started(), self.confined());
        let stage = contract.terms.stage;
        let mut wanted = required(EndSummary { stage, status, engine_started, confined });
        wanted.retain(|kind| *kind != EventType::RunCompleted);
        first_missing(&wanted, events)
    }

    /// Whether every check so far has passed and every event is recorded.
    pub(crate) fn would_pass(&self, contract: &Contract, events: &[Event]) -> bool {
        self.missing_event(contract, Status::Pass, events).is_none()
            && self.judge(contract).status() == Status::Pass
    }
}

/// The verdict on an engine whose provider failed: it could not do its work, and its own output says less.
fn explained(verdict: &Verdict, failure: &str) -> Verdict {
    use Blocker as B;
    let records = verdict.blockers().iter().cloned().map(|record| match record.blocker {
        B::EngineFailed | B::AgentProtocolError | B::TimeoutIdle | B::TimeoutTotal => BlockerRecord {
            detail: format!("{}; {failure}", record.detail),
            next_step: "The provider failed, not the engine: run the contract again later. `herma router probe PROVIDER/MODEL` asks \
                        the model."
                .to_owned(),
            ..record
        },
        _ => record,
    });
    Verdict::new(records.collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::journal::{Journal, StepResult};

    fn journaled<T: StepResult>(dir: &Path, result: &T) -> RunResults {
        let file = dir.join(T::KEY);
        Journal::new(file.clone()).append(result).unwrap();
        Journal::replay(&file)
    }

    #[test]
    fn each_result_comes_back_from_the_journal_under_its_own_key() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        assert!(journaled(dir, &GateResults::default()).gates.is_some());
        assert!(journaled(dir, &ServicesStarted::default()).services.is_some());
        assert!(journaled(dir, &ProbeResults::default()).probe.is_some());
        let decision = DecisionResults { gate_blockers: Vec::new(), engine_digest: None };
        assert!(journaled(dir, &decision).decision.is_some());
        assert!(journaled(dir, &WorkspaceResults::default()).workspace.is_some());
        assert!(journaled(dir, &EngineResults::default()).engine.is_some());
        assert!(journaled(dir, &ModelResults::default()).models.is_some());
        assert!(journaled(dir, &EgressResults::default()).egress.is_some());
        assert!(journaled(dir, &ToolCallResults::default()).tools.is_some());
        assert!(journaled(dir, &ShimResults::default()).shims.is_some());
        assert!(journaled(dir, &Verified::default()).verified.is_some());
        assert!(journaled(dir, &Witnessed::default()).witnessed.is_some());
        assert!(journaled(dir, &LandingResults::default()).landing.is_some());
        let keys = [ApprovalResults::KEY, Collected::KEY, Checked::KEY, DisposableResults::KEY];
        assert_eq!(keys, ["approval", "collected", "checked", "disposable"]);
    }
}
