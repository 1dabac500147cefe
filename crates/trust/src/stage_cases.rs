//! The cases that a proof of each stage must cover: one pass, and the failure classes of the stage.

use herma_core::capability::{Capabilities, Capability};
use herma_core::{Blocker, Stage};

/// One case of a stage's proof, without the way to provoke it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageCase {
    /// The name of the case, as the rows of a proof have it.
    pub class: &'static str,
    /// The blocker that the run must end with; none for the pass case.
    pub blocker: Option<Blocker>,
    /// The capability without which an engine cannot fail in this way.
    pub needs: Option<Capability>,
}

impl StageCase {
    /// The capability that keeps this case from applying to an engine that declares it as unsupported.
    #[must_use]
    pub fn lacks(&self, declared: Capabilities) -> Option<Capability> {
        self.needs.filter(|capability| !declared.of(*capability).is_there())
    }

    const fn failing(class: &'static str, blocker: Blocker) -> Self {
        Self { class, blocker: Some(blocker), needs: None }
    }

    /// The engine does the task.
    pub const PASS: Self = Self { class: "pass", blocker: None, needs: None };
    /// The engine changes nothing.
    pub const NO_DIFF: Self = Self::failing("no diff", Blocker::NoDiff);
    /// The engine changes a file outside of the allowed paths.
    pub const DISALLOWED_FILE: Self = Self::failing("disallowed file", Blocker::DisallowedFile);
    /// The verification fails.
    pub const FAILED_TESTS: Self = Self::failing("failed tests", Blocker::VerificationFailed);
    /// The engine's reviewer rejects the change.
    pub const REVIEWER_REJECT: Self = Self {
        needs: Some(Capability::Reviewer),
        ..Self::failing("reviewer reject", Blocker::ReviewerRejected)
    };
    /// A verification command does not exist.
    pub const MISSING_TEST_COMMAND: Self = Self::failing("missing test command", Blocker::MissingTestCommand);
    /// The model's provider is not configured.
    pub const PROVIDER_UNAVAILABLE: Self =
        Self::failing("provider unavailable", Blocker::ProviderUnavailable);
    /// The contract's risk is critical.
    pub const CRITICAL: Self = Self::failing("critical", Blocker::CriticalRepository);
    /// An event that every run must have is not recorded.
    pub const MISSING_EVENT: Self = Self::failing("missing event", Blocker::MissingRequiredEvent);
    /// An artifact cannot be written.
    pub const ARTIFACT_WRITE: Self = Self::failing("artifact write", Blocker::ArtifactWriteFailure);
    /// The target has uncommitted changes before the run.
    pub const DIRTY_SOURCE: Self = Self::failing("dirty start (source)", Blocker::DirtyStartingTree);
    /// The workspace differs from the baseline before the engine starts.
    pub const DIRTY_COPY: Self = Self::failing("dirty start (copy)", Blocker::DirtyStartingTree);
    /// The target changes during the run.
    pub const DIRTY_END: Self = Self::failing("dirty end", Blocker::DirtyEndingTree);
    /// The approver denies the approval.
    pub const APPROVAL_DENIED: Self = Self::failing("approval denied", Blocker::ApprovalDenied);
    /// The target belongs to another user.
    pub const UNOWNED: Self = Self::failing("unowned", Blocker::UnownedRepository);
    /// The operator gives no outcome in time.
    pub const MISSING_OUTCOME: Self = Self::failing("missing outcome", Blocker::MissingOutcome);
    /// The engine does not start in time.
    pub const TIMEOUT_STARTUP: Self = Self::failing("timeout (startup)", Blocker::TimeoutStartup);
    /// The engine makes no output for too long.
    pub const TIMEOUT_IDLE: Self = Self::failing("timeout (idle)", Blocker::TimeoutIdle);
    /// The engine does not end in time.
    pub const TIMEOUT_TOTAL: Self = Self::failing("timeout (total)", Blocker::TimeoutTotal);
}

/// The cases of a stage's proof, the pass case first. Stage 6 runs nothing.
#[must_use]
pub fn stage_cases(stage: Stage) -> &'static [StageCase] {
    match stage {
        Stage::Gated => &[
            StageCase::PASS,
            StageCase::PROVIDER_UNAVAILABLE,
            StageCase::MISSING_EVENT,
            StageCase::ARTIFACT_WRITE,
        ],
        Stage::Fixture => &[
            StageCase::PASS,
            StageCase::NO_DIFF,
            StageCase::DISALLOWED_FILE,
            StageCase::FAILED_TESTS,
            StageCase::MISSING_TEST_COMMAND,
            StageCase::MISSING_EVENT,
            StageCase::PROVIDER_UNAVAILABLE,
        ],
        Stage::CopiedRepo => &[
            StageCase::PASS,
            StageCase::DIRTY_SOURCE,
            StageCase::DIRTY_COPY,
            StageCase::DIRTY_END,
            StageCase::TIMEOUT_STARTUP,
            StageCase::TIMEOUT_IDLE,
            StageCase::TIMEOUT_TOTAL,
            StageCase::ARTIFACT_WRITE,
            StageCase::DISALLOWED_FILE,
            StageCase::FAILED_TESTS,
            StageCase::MISSING_EVENT,
        ],
        Stage::DisposableRepo => &[
            StageCase::PASS,
            StageCase::APPROVAL_DENIED,
            StageCase::REVIEWER_REJECT,
            StageCase::TIMEOUT_IDLE,
            StageCase::PROVIDER_UNAVAILABLE,
            StageCase::DIRTY_END,
            StageCase::DISALLOWED_FILE,
        ],
        Stage::OwnedRepo => &[
            StageCase::PASS,
            StageCase::APPROVAL_DENIED,
            StageCase::UNOWNED,
            StageCase::CRITICAL,
            StageCase::DISALLOWED_FILE,
            StageCase::DIRTY_SOURCE,
            StageCase::DIRTY_END,
            StageCase::FAILED_TESTS,
            StageCase::TIMEOUT_IDLE,
            StageCase::PROVIDER_UNAVAILABLE,
            StageCase::MISSING_OUTCOME,
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
            let cases = stage_cases(stage);
            assert!(cases[0].blocker.is_none(), "stage {stage}");
            for case in &cases[1..] {
                assert!(case.blocker.is_some(), "stage {stage}: {}", case.class);
                let same = cases.iter().filter(|other| other.class == case.class).count();
                assert_eq!(same, 1, "stage {stage}: {}", case.class);
            }
        }
    }

    #[test]
    fn only_the_reviewers_rejection_depends_on_what_an_engine_declares() {
        let conditional = |case: &&StageCase| case.needs.is_some();
        let found: Vec<_> = Stage::ALL.into_iter().flat_map(stage_cases).filter(conditional).collect();
        assert_eq!(
            found.iter().map(|case| (case.class, case.needs)).collect::<Vec<_>>(),
            [("reviewer reject", Some(Capability::Reviewer))]
        );
    }
}
