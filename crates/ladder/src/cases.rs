//! The cases of each stage's proof, each with the way to provoke it.

use herma_core::contract::{ContractId, ModelChoice, Risk, Terms};
use herma_core::units::Span;
use herma_core::{EventType, Fault, Stage};
use herma_trust::{StageCase, stage_cases};

use crate::error::ProveError;

/// One case: a run, how it must end, and the way to make it end so.
pub(crate) struct Case {
    /// The case that the proof must cover.
    pub(crate) required: StageCase,
    /// The fixture's script that the engine follows.
    pub(crate) script: &'static str,
    /// How the contract differs from the pass case's.
    pub(crate) change: fn(&mut Terms),
    /// The fault that is injected into the run.
    pub(crate) fault: fn() -> Option<Fault>,
    /// The condition of the environment.
    pub(crate) world: World,
}

impl Case {
    /// The name of the case, as the rows of a proof have it.
    pub(crate) fn class(&self) -> &'static str {
        self.required.class
    }

    /// The name of the case's contract: `prove-4-approval-denied`.
    pub(crate) fn contract_id(&self, stage: Stage) -> Result<ContractId, ProveError> {
        let words: Vec<&str> = self
            .class()
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        format!("prove-{stage}-{}", words.join("-"))
            .parse()
            .map_err(|e: String| ProveError::new("name a contract", e))
    }
}

/// The condition of the environment of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum World {
    /// Nothing.
    Sound,
    /// The target has an uncommitted change before the run.
    DirtyBefore,
    /// Another process changes a file of the target, or of the repository that the run lands in, while the engine works.
    ChangedMeanwhile,
    /// The approver denies the request.
    Denied,
    /// The target belongs to another user.
    Unowned,
    /// The time for an outcome passes.
    NoOutcome,
}

const PASS: Case =
    Case { required: StageCase::PASS, script: "fix", change: |_| {}, fault: || None, world: World::Sound };

const fn scripted(required: StageCase, script: &'static str) -> Case {
    Case { required, script, ..PASS }
}

const fn around(required: StageCase, world: World) -> Case {
    Case { required, world, ..PASS }
}

const fn changed(required: StageCase, change: fn(&mut Terms)) -> Case {
    Case { required, change, ..PASS }
}

const fn faulty(required: StageCase, fault: fn() -> Option<Fault>) -> Case {
    Case { required, fault, ..PASS }
}

fn name_a_model(terms: &mut Terms) {
    terms.model = Some(ModelChoice {
        provider: "nobody".to_owned(),
        model: "none".to_owned(),
        fallback: Vec::new(),
        auxiliary: Vec::new(),
    });
}

fn name_no_command(terms: &mut Terms) {
    terms.verify = vec!["no-such-command".to_owned()];
}

/// Every case, with the way to provoke it.
const CASES: &[Case] = &[
    PASS,
    scripted(StageCase::NO_DIFF, "no-diff"),
    scripted(StageCase::DISALLOWED_FILE, "disallowed-file"),
    scripted(StageCase::FAILED_TESTS, "breaks-test"),
    scripted(StageCase::REVIEWER_REJECT, "rejected"),
    changed(StageCase::MISSING_TEST_COMMAND, name_no_command),
    changed(StageCase::PROVIDER_UNAVAILABLE, name_a_model),
    changed(StageCase::CRITICAL, |terms| terms.risk = Risk::Critical),
    faulty(StageCase::MISSING_EVENT, || Some(Fault::DropEvent(EventType::EligibilityDecided))),
    faulty(StageCase::ARTIFACT_WRITE, || Some(Fault::FailWrite("decision.json".to_owned()))),
    around(StageCase::DIRTY_SOURCE, World::DirtyBefore),
    faulty(StageCase::DIRTY_COPY, || Some(Fault::DirtyCopy)),
    around(StageCase::DIRTY_END, World::ChangedMeanwhile),
    around(StageCase::APPROVAL_DENIED, World::Denied),
    around(StageCase::UNOWNED, World::Unowned),
    around(StageCase::MISSING_OUTCOME, World::NoOutcome),
    Case {
        script: "slow-start",
        ..changed(StageCase::TIMEOUT_STARTUP, |terms| terms.limits.startup = Span(1))
    },
    Case { script: "goes-idle", ..changed(StageCase::TIMEOUT_IDLE, |terms| terms.limits.idle = Span(500)) },
    Case {
        script: "never-ends",
        ..changed(StageCase::TIMEOUT_TOTAL, |terms| terms.limits.total = Span(1_500))
    },
];

/// The names of the cases of a stage's proof, as its rows have them, the pass case first.
#[must_use]
pub fn case_names(stage: Stage) -> Vec<&'static str> {
    stage_cases(stage).iter().map(|case| case.class).collect()
}

/// The cases of a stage's proof, the pass case first. Stage 6 runs nothing. A case without a way to provoke it would be
/// left out here and missed in the proof, which then does not count.
pub(crate) fn cases(stage: Stage) -> Vec<&'static Case> {
    let provoked = |wanted: &StageCase| CASES.iter().find(|case| case.required == *wanted);
    stage_cases(stage).iter().filter_map(provoked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_of_a_stage_can_be_provoked() {
        for stage in Stage::ALL {
            let classes: Vec<_> = cases(stage).iter().map(|case| case.class()).collect();
            assert_eq!(classes, case_names(stage), "stage {stage}");
        }
    }

    #[test]
    fn every_script_is_one_of_the_fixture() {
        let fixture = herma_fixtures::find(crate::proof_site::FIXTURE).unwrap();
        for case in Stage::ALL.into_iter().flat_map(cases) {
            assert!(fixture.script(case.script).is_some(), "{}", case.script);
            assert!(fixture.model(case.script).is_some(), "no model script `{}`", case.script);
        }
    }
}
