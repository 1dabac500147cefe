//! The rows that the proof of each stage has, as the specification lists them.

use herma_core::capability::Capability;
use herma_core::proof::{CoverageState, NotApplicable, Proof};
use herma_core::{Blocker, Stage};

/// The row that only an engine with a reviewer of its own can have.
const REVIEWER_REJECT: &str = "reviewer reject";

/// The failure classes of a stage, in order, and what each is closed as.
fn classes(stage: Stage) -> &'static [(&'static str, Blocker)] {
    match stage {
        Stage::Gated => &[
            ("provider unavailable", Blocker::ProviderUnavailable),
            ("missing event", Blocker::MissingRequiredEvent),
            ("artifact write", Blocker::ArtifactWriteFailure),
        ],
        Stage::Fixture => &[
            ("no diff", Blocker::NoDiff),
            ("disallowed file", Blocker::DisallowedFile),
            ("failed tests", Blocker::VerificationFailed),
            ("missing test command", Blocker::MissingTestCommand),
            ("missing event", Blocker::MissingRequiredEvent),
            ("provider unavailable", Blocker::ProviderUnavailable),
        ],
        Stage::CopiedRepo => &[
            ("dirty start (source)", Blocker::DirtyStartingTree),
            ("dirty start (copy)", Blocker::DirtyStartingTree),
            ("dirty end", Blocker::DirtyEndingTree),
            ("timeout (startup)", Blocker::TimeoutStartup),
            ("timeout (idle)", Blocker::TimeoutIdle),
            ("timeout (total)", Blocker::TimeoutTotal),
            ("artifact write", Blocker::ArtifactWriteFailure),
            ("disallowed file", Blocker::DisallowedFile),
            ("failed tests", Blocker::VerificationFailed),
            ("missing event", Blocker::MissingRequiredEvent),
        ],
        Stage::DisposableRepo => &[
            ("approval denied", Blocker::ApprovalDenied),
            (REVIEWER_REJECT, Blocker::ReviewerRejected),
            ("timeout (idle)", Blocker::TimeoutIdle),
            ("provider unavailable", Blocker::ProviderUnavailable),
            ("dirty end", Blocker::DirtyEndingTree),
            ("disallowed file", Blocker::DisallowedFile),
        ],
        Stage::OwnedRepo => &[
            ("approval denied", Blocker::ApprovalDenied),
            ("unowned", Blocker::UnownedRepository),
            ("critical", Blocker::CriticalRepository),
            ("disallowed file", Blocker::DisallowedFile),
            ("dirty start (source)", Blocker::DirtyStartingTree),
            ("dirty end", Blocker::DirtyEndingTree),
            ("failed tests", Blocker::VerificationFailed),
            ("timeout (idle)", Blocker::TimeoutIdle),
            ("provider unavailable", Blocker::ProviderUnavailable),
            ("missing outcome", Blocker::MissingOutcome),
        ],
        Stage::CandidateDefault => &[],
    }
}

/// The proof passed and has a run for every row of its stage. Only the rejection by a reviewer may be not applicable, and
/// only where the engine declares none.
pub(crate) fn assert_complete(proof: &Proof, has_reviewer: bool) {
    let engine = &proof.engine;
    let runs = |(class, _): &&(&str, Blocker)| has_reviewer || *class != REVIEWER_REJECT;
    let mut expected = vec![("pass", None, true, true)];
    expected.extend(
        classes(proof.stage).iter().filter(runs).map(|(class, blocker)| (*class, Some(*blocker), true, true)),
    );
    let rows: Vec<_> = proof
        .rows
        .iter()
        .map(|row| (row.case.as_str(), row.expected_blocker, row.held, row.run_id.is_some()))
        .collect();
    assert_eq!(rows, expected, "stage {} of {engine}: {:#?}", proof.stage, proof.rows);

    let left_out: Vec<NotApplicable> = if has_reviewer || proof.stage != Stage::DisposableRepo {
        Vec::new()
    } else {
        vec![NotApplicable {
            case: REVIEWER_REJECT.to_owned(),
            expected_blocker: Blocker::ReviewerRejected,
            lacks: Capability::Reviewer,
            reason: format!("`{engine}` declares no `reviewer`"),
        }]
    };
    assert_eq!(proof.not_applicable, left_out, "stage {} of {engine}", proof.stage);
    let not_applicable = proof.coverage.iter().filter(|row| row.state == CoverageState::NotApplicable);
    let blockers: Vec<Blocker> = not_applicable.map(|row| row.blocker).collect();
    assert_eq!(blockers, left_out.iter().map(|row| row.expected_blocker).collect::<Vec<_>>());
}
