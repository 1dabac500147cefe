//! The cases of each stage's proof: what must pass, and every way in which it must fail.

use herma_core::capability::{Capabilities, Capability};
use herma_core::contract::{ContractId, ModelChoice, Risk, Terms};
use herma_core::units::Span;
use herma_core::{Blocker, EventType, Fault, Stage};

use super::prove::ProveError;

/// One case: a run, and how it must end.
pub(crate) struct Case {
    /// The failure class in the words of the ladder, or `pass`.
    pub(crate) class: &'static str,
    /// The blocker that the run must end with; none for the pass case.
    pub(crate) blocker: Option<Blocker>,
    /// What the engine does: one of the fixture's scripts.
    pub(crate) script: &'static str,
    /// How the contract differs from the pass case's.
    pub(crate) change: fn(&mut Terms),
    /// The fault that the run meets.
    pub(crate) fault: fn() -> Option<Fault>,
    /// What is wrong around it.
    pub(crate) world: World,
    /// The capability without which an engine cannot fail in this way.
    pub(crate) needs: Option<Capability>,
}

impl Case {
    /// The capability that keeps this case from applying to an engine, which declares it as unsupported.
    pub(crate) fn lacks(&self, declared: Capabilities) -> Option<Capability> {
        self.needs.filter(|capability| !declared.of(*capability).is_there())
    }

    /// The name of the case's contract: `prove-4-approval-denied`.
    pub(crate) fn contract_id(&self, stage: Stage) -> Result<ContractId, ProveError> {
        let words: Vec<&str> =
            self.class.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        format!("prove-{stage}-{}", words.join("-"))
            .parse()
            .map_err(|e: String| ProveError::new("name a contract", e))
    }
}

/// What is wrong around a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum World {
    /// Nothing.
    Sound,
    /// The target has an uncommitted change before the run.
    DirtyBefore,
    /// Somebody changes a file of the target, or of the repository that the run lands in, while the engine works.
    ChangedMeanwhile,
    /// The person who was asked says no.
    Denied,
    /// The target belongs to another user.
    Unowned,
    /// Nobody accepts or rejects in time.
    NoOutcome,
}

const PASS: Case = Case {
    class: "pass",
    blocker: None,
    script: "fix",
    change: |_| {},
    fault: || None,
    world: World::Sound,
    needs: None,
};

const fn scripted(class: &'static str, blocker: Blocker, script: &'static str) -> Case {
    Case { class, blocker: Some(blocker), script, ..PASS }
}

const fn around(class: &'static str, blocker: Blocker, world: World) -> Case {
    Case { class, blocker: Some(blocker), world, ..PASS }
}

const fn changed(class: &'static str, blocker: Blocker, change: fn(&mut Terms)) -> Case {
    Case { class, blocker: Some(blocker), change, ..PASS }
}

const fn faulty(class: &'static str, blocker: Blocker, fault: fn() -> Option<Fault>) -> Case {
    Case { class, blocker: Some(blocker), fault, ..PASS }
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

const NO_DIFF: Case = scripted("no diff", Blocker::NoDiff, "no-diff");
const DISALLOWED_FILE: Case = scripted("disallowed file", Blocker::DisallowedFile, "disallowed-file");
const FAILED_TESTS: Case = scripted("failed tests", Blocker::VerificationFailed, "breaks-test");
const REVIEWER_REJECT: Case = Case {
    needs: Some(Capability::Reviewer),
    ..scripted("reviewer reject", Blocker::ReviewerRejected, "rejected")
};
const MISSING_TEST_COMMAND: Case =
    changed("missing test command", Blocker::MissingTestCommand, name_no_command);
const PROVIDER_UNAVAILABLE: Case =
    changed("provider unavailable", Blocker::ProviderUnavailable, name_a_model);
const CRITICAL: Case = changed("critical", Blocker::CriticalRepository, |terms| terms.risk = Risk::Critical);
const MISSING_EVENT: Case = faulty("missing event", Blocker::MissingRequiredEvent, || {
    Some(Fault::DropEvent(EventType::EligibilityDecided))
});
const ARTIFACT_WRITE: Case = faulty("artifact write", Blocker::ArtifactWriteFailure, || {
    Some(Fault::FailWrite("decision.json".to_owned()))
});
const DIRTY_SOURCE: Case = around("dirty start (source)", Blocker::DirtyStartingTree, World::DirtyBefore);
const DIRTY_COPY: Case = faulty("dirty start (copy)", Blocker::DirtyStartingTree, || Some(Fault::DirtyCopy));
const DIRTY_END: Case = around("dirty end", Blocker::DirtyEndingTree, World::ChangedMeanwhile);
const APPROVAL_DENIED: Case = around("approval denied", Blocker::ApprovalDenied, World::Denied);
const UNOWNED: Case = around("unowned", Blocker::UnownedRepository, World::Unowned);
const MISSING_OUTCOME: Case = around("missing outcome", Blocker::MissingOutcome, World::NoOutcome);
const TIMEOUT_STARTUP: Case = Case {
    script: "slow-start",
    ..changed("timeout (startup)", Blocker::TimeoutStartup, |terms| terms.limits.startup = Span(1))
};
const TIMEOUT_IDLE: Case = Case {
    script: "goes-idle",
    ..changed("timeout (idle)", Blocker::TimeoutIdle, |terms| terms.limits.idle = Span(500))
};
const TIMEOUT_TOTAL: Case = Case {
    script: "never-ends",
    ..changed("timeout (total)", Blocker::TimeoutTotal, |terms| terms.limits.total = Span(1_500))
};

/// The names of the cases of a stage's proof, as its rows have them, the pass case first.
#[must_use]
pub fn case_names(stage: Stage) -> Vec<&'static str> {
    cases(stage).iter().map(|case| case.class).collect()
}

/// The cases of a stage's proof, the pass case first. Stage 6 runs nothing.
pub(crate) fn cases(stage: Stage) -> &'static [Case] {
    match stage {
        Stage::Gated => &[PASS, PROVIDER_UNAVAILABLE, MISSING_EVENT, ARTIFACT_WRITE],
        Stage::Fixture => &[
            PASS,
            NO_DIFF,
            DISALLOWED_FILE,
            FAILED_TESTS,
            MISSING_TEST_COMMAND,
            MISSING_EVENT,
            PROVIDER_UNAVAILABLE,
        ],
        Stage::CopiedRepo => &[
            PASS,
            DIRTY_SOURCE,
            DIRTY_COPY,
            DIRTY_END,
            TIMEOUT_STARTUP,
            TIMEOUT_IDLE,
            TIMEOUT_TOTAL,
            ARTIFACT_WRITE,
            DISALLOWED_FILE,
            FAILED_TESTS,
            MISSING_EVENT,
        ],
        Stage::DisposableRepo => &[
            PASS,
            APPROVAL_DENIED,
            REVIEWER_REJECT,
            TIMEOUT_IDLE,
            PROVIDER_UNAVAILABLE,
            DIRTY_END,
            DISALLOWED_FILE,
        ],
        Stage::OwnedRepo => &[
            PASS,
            APPROVAL_DENIED,
            UNOWNED,
            CRITICAL,
            DISALLOWED_FILE,
            DIRTY_SOURCE,
            DIRTY_END,
            FAILED_TESTS,
            TIMEOUT_IDLE,
            PROVIDER_UNAVAILABLE,
            MISSING_OUTCOME,
        ],
        Stage::CandidateDefault => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_that_runs_has_its_pass_case_first_and_no_class_twice() {
        for stage in Stage::ALL.into_iter().filter(|stage| *stage != Stage::CandidateDefault) {
            let cases = cases(stage);
            assert!(cases[0].blocker.is_none(), "stage {stage}");
            for case in &cases[1..] {
                assert!(case.blocker.is_some(), "stage {stage}: {}", case.class);
                let same = cases.iter().filter(|other| other.class == case.class).count();
                assert_eq!(same, 1, "stage {stage}: {}", case.class);
            }
        }
    }

    #[test]
    fn every_script_is_one_of_the_fixture() {
        let fixture = herma_fixtures::find(super::super::ground::FIXTURE).unwrap();
        for case in Stage::ALL.into_iter().flat_map(cases) {
            assert!(fixture.script(case.script).is_some(), "{}", case.script);
            assert!(fixture.model(case.script).is_some(), "no model script `{}`", case.script);
        }
    }

    #[test]
    fn only_the_reviewers_rejection_depends_on_what_an_engine_declares() {
        let conditional = |case: &&Case| case.needs.is_some();
        let found: Vec<_> = Stage::ALL.into_iter().flat_map(cases).filter(conditional).collect();
        assert_eq!(
            found.iter().map(|case| (case.class, case.needs)).collect::<Vec<_>>(),
            [("reviewer reject", Some(Capability::Reviewer))]
        );
    }
}
