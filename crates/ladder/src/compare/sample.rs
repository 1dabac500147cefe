//! Evidence to compare, for tests: of a run that passed, after a change.

use herma_core::blocker::Blocker;
use herma_core::engine::{DestinationKind, EndedBy, EngineExit, EngineName, EngineResult};
use herma_core::report::{
    Admission, ApprovalStatus, Artifact, ChangedFile, Freshness, NeverActivated, OutcomeState, ReportSchema,
    Usage, Verification, VerificationStatus,
};
use herma_core::{Contract, Digest, RepoPath, Report, RunId, Status, Timestamp};
use herma_evidence::layout;
use herma_evidence::verify::{Check, CheckList, CheckName, CheckOutcome};

use super::evidence::Evidence;

/// The evidence of a run that passed, after a change to its report and to the checks of its bundle.
pub(super) fn run(change: impl FnOnce(&mut Report, &mut CheckList)) -> Evidence {
    let (mut report, mut checks) = (report(), checks());
    change(&mut report, &mut checks);
    Evidence::of(Ok(report), &checks, Some(Digest::of(b"attestation")))
}

/// The same without a change.
pub(super) fn good() -> Evidence {
    run(|_, _| ())
}

/// The same, and the run failed with this blocker.
pub(super) fn failed(blocker: Blocker) -> Evidence {
    run(|report, _| {
        report.status = blocker.status();
        report.blockers = vec![blocker.because("it was so")];
    })
}

/// Lets a check of the bundle end like that.
pub(super) fn end(checks: &mut CheckList, name: CheckName, outcome: CheckOutcome) {
    for check in checks.checks.iter_mut().filter(|check| check.name == name) {
        check.outcome = outcome;
        check.detail = "a reason".to_owned();
    }
}

fn checks() -> CheckList {
    use CheckName as N;
    let names = [
        N::Files,
        N::Envelope,
        N::Signature,
        N::Subjects,
        N::ReportSchema,
        N::Artifacts,
        N::Chain,
        N::Order,
        N::Freshness,
        N::Contract,
        N::Decision,
        N::Patch,
        N::Paths,
        N::Agreement,
        N::Secrets,
    ];
    let passed = |name| Check { name, outcome: CheckOutcome::Passed, detail: String::new() };
    CheckList { checks: names.map(passed).into() }
}

fn passed_command() -> Verification {
    Verification {
        command: "sh test.sh".to_owned(),
        status: VerificationStatus::Passed,
        exit_code: Some(0),
        reason: None,
        changed_files: None,
        duration_ms: 12,
    }
}

/// The report of a run that passed.
pub(super) fn report() -> Report {
    let at = |ms: i64| Timestamp::from_millisecond(1_700_000_000_000 + ms).unwrap();
    let fixture = herma_fixtures::find("string-slugify").unwrap();
    let contract = Contract::parse(fixture.contract.as_bytes()).unwrap();
    let artifact = || Artifact { sha256: Digest::of(b""), size: 0, written_at: at(5) };
    let there = layout::EXPECTED.into_iter().filter(|name| *name != layout::MODEL_CALLS);
    Report {
        schema: ReportSchema::V1,
        herma_version: herma_core::VERSION.to_owned(),
        run_id: RunId::new(at(0), [7; 10]),
        parent_run: None,
        contract_id: contract.terms.id.clone(),
        contract_digest: contract.digest().unwrap(),
        status: Status::Pass,
        engine: EngineName::fake(),
        engine_version: "1".to_owned(),
        engine_digest: Some(Digest::of(b"fake")),
        engine_started: true,
        engine_exit: Some(EngineExit {
            code: Some(0),
            signal: None,
            ended_by: EndedBy::Exited,
            result: Some(EngineResult::Completed),
            unread_lines: 0,
        }),
        needs: std::collections::BTreeMap::new(),
        stage: contract.terms.stage,
        mutation_scope: contract.terms.mutation_scope(),
        destination: DestinationKind::Sandbox,
        walls: vec!["no network".to_owned()],
        model_provider: None,
        model: None,
        model_runtime_provider: None,
        model_admission: Admission::NotApplicable,
        engine_admission: Admission::BuiltIn,
        target_admission: Admission::BuiltIn,
        approval_status: ApprovalStatus::NotRequired,
        approval_id: None,
        run_started_at: at(0),
        run_finished_at: at(400),
        baseline_commit: Some("3".repeat(40)),
        result_tree: Some("4".repeat(40)),
        result_commit: Some("5".repeat(40)),
        changed_files: vec![ChangedFile { path: RepoPath::new("slugify.sh").unwrap(), old: None, new: None }],
        changed_tests: Vec::new(),
        changed_verification_files: Vec::new(),
        ignored_files: Vec::new(),
        allowed_paths_passed: Some(true),
        forbidden_paths_passed: Some(true),
        path_violations: Vec::new(),
        forbidden_actions_attempted: Vec::new(),
        required_events_passed: true,
        missing_content: None,
        environment: None,
        verify_before: Vec::new(),
        verification: vec![passed_command()],
        verification_with_baseline_tests: Vec::new(),
        target_clean_start: None,
        target_clean_end: None,
        source_mutated: None,
        landing: None,
        outcome: OutcomeState::NotRequired,
        outcome_due: None,
        usage: Usage::NONE,
        children: None,
        egress: None,
        tools: None,
        blockers: Vec::new(),
        not_applicable: [(layout::MODEL_CALLS.to_owned(), "the contract names no model".to_owned())].into(),
        artifacts: there.map(|name| (name.to_owned(), artifact())).collect(),
        freshness: Freshness { oldest: at(5), newest: at(5), passed: true },
        trust_head: None,
        runtime_default_activation: NeverActivated,
    }
}
