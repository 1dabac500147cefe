//! The verdict: a table with a case for each rule, and what holds for all facts.

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::contract::Action;
use herma_core::engine::{EndedBy, EngineExit, EngineResult};
use herma_core::report::{ChangedByCommand, PathRule, PathViolation, Verification, VerificationStatus};
use herma_core::{EventType, RepoPath, Status};
use herma_rules::verdict::judge;
use herma_rules::{RunFacts, SourceFacts};
use proptest::prelude::*;

use crate::facts::path;

/// The facts of a run, owned.
#[derive(Clone, Debug)]
struct Seen {
    gates_only: bool,
    landing_refused: Option<BlockerRecord>,
    model_refusals: Vec<BlockerRecord>,
    require_diff: bool,
    gate_blockers: Vec<BlockerRecord>,
    interrupted: Option<String>,
    engine_exit: Option<EngineExit>,
    engine_ended: Option<String>,
    protocol_error: Option<String>,
    changed: usize,
    violations: Vec<PathViolation>,
    forbidden_actions: Vec<Action>,
    secret: Option<String>,
    verification: Vec<Verification>,
    with_baseline_tests: Vec<Verification>,
    changed_verification_files: Vec<RepoPath>,
    verify_declared: usize,
    source: Option<SourceFacts>,
    egress_denied: Option<String>,
    missing_event: Option<EventType>,
    write_failures: Vec<String>,
}

fn exit(ended_by: EndedBy, code: Option<i32>, result: Option<EngineResult>) -> EngineExit {
    let signal = if code.is_none() { Some(9) } else { None };
    EngineExit { code, signal, ended_by, result, unread_lines: 0 }
}

fn one_file() -> ChangedByCommand {
    ChangedByCommand::of(&[&path("a.py")]).unwrap()
}

fn verification(status: VerificationStatus) -> Verification {
    let exit_code = match status {
        VerificationStatus::Passed | VerificationStatus::ChangedFiles => Some(0),
        VerificationStatus::Failed => Some(1),
        VerificationStatus::CommandMissing => Some(127),
        VerificationStatus::TimedOut => None,
    };
    Verification {
        command: "sh test.sh".to_owned(),
        status,
        exit_code,
        reason: None,
        changed_files: None,
        duration_ms: 1,
    }
}

fn violation() -> PathViolation {
    PathViolation { path: path(".env"), rule: PathRule::Forbidden, detail: "`.env` is forbidden".to_owned() }
}

impl Seen {
    /// A run with nothing against it.
    fn good() -> Self {
        Self {
            gates_only: false,
            landing_refused: None,
            model_refusals: Vec::new(),
            require_diff: true,
            gate_blockers: Vec::new(),
            interrupted: None,
            engine_exit: Some(exit(EndedBy::Exited, Some(0), Some(EngineResult::Completed))),
            engine_ended: None,
            protocol_error: None,
            changed: 1,
            violations: Vec::new(),
            forbidden_actions: Vec::new(),
            secret: None,
            verification: vec![verification(VerificationStatus::Passed)],
            with_baseline_tests: Vec::new(),
            changed_verification_files: Vec::new(),
            verify_declared: 1,
            source: Some(SourceFacts { clean_end: true, mutated: false, what: String::new() }),
            egress_denied: None,
            missing_event: None,
            write_failures: Vec::new(),
        }
    }

    fn facts(&self) -> RunFacts<'_> {
        RunFacts {
            gates_only: self.gates_only,
            landing_refused: self.landing_refused.clone(),
            model_refusals: self.model_refusals.clone(),
            require_diff: self.require_diff,
            gate_blockers: self.gate_blockers.clone(),
            interrupted: self.interrupted.clone(),
            interrupted_next_step: None,
            engine_exit: self.engine_exit.clone(),
            engine_ended: self.engine_ended.clone(),
            protocol_error: self.protocol_error.clone(),
            changed: self.changed,
            violations: &self.violations,
            forbidden_actions: &self.forbidden_actions,
            secret: self.secret.clone(),
            changed_inputs: &[],
            rebuild_refused: None,
            verification: &self.verification,
            verification_with_baseline_tests: &self.with_baseline_tests,
            changed_verification_files: &self.changed_verification_files,
            verify_declared: self.verify_declared,
            source: self.source.clone(),
            egress_denied: self.egress_denied.clone(),
            missing_event: self.missing_event,
            write_failures: self.write_failures.clone(),
            evidence_refused: None,
        }
    }

    fn ended(&mut self, ended_by: EndedBy, code: Option<i32>, result: Option<EngineResult>) {
        self.engine_exit = Some(exit(ended_by, code, result));
    }
}

/// The verdict on the good run after something was done to it.
#[track_caller]
fn case(change: impl FnOnce(&mut Seen), status: Status, blockers: &[Blocker]) {
    let mut seen = Seen::good();
    change(&mut seen);
    let verdict = judge(&seen.facts());
    let found: Vec<Blocker> = verdict.blockers().iter().map(|b| b.blocker).collect();
    assert_eq!((verdict.status(), found.as_slice()), (status, blockers), "{:?}", verdict.blockers());
    assert!(verdict.blockers().iter().all(|b| !b.detail.is_empty() && !b.next_step.is_empty()));
}

#[test]
fn nothing_against_it_is_a_pass() {
    case(|_| {}, Status::Pass, &[]);
    case(|s| s.source = None, Status::Pass, &[]);
    case(|s| (s.require_diff, s.changed) = (false, 0), Status::Pass, &[]);
    case(|s| s.ended(EndedBy::EarlyStop, None, Some(EngineResult::Completed)), Status::Pass, &[]);
}

#[test]
fn changes() {
    case(|s| s.changed = 0, Status::Fail, &[Blocker::NoDiff]);
    case(|s| s.violations = vec![violation(), violation()], Status::Fail, &[Blocker::DisallowedFile]);
    let unsupported = || PathViolation { rule: PathRule::UnsupportedPath, ..violation() };
    case(|s| s.violations = vec![unsupported()], Status::Fail, &[Blocker::UnsupportedPath]);
    case(
        |s| s.violations = vec![unsupported(), violation()],
        Status::Fail,
        &[Blocker::DisallowedFile, Blocker::UnsupportedPath],
    );
    case(|s| s.forbidden_actions = vec![Action::Push], Status::Fail, &[Blocker::ForbiddenAction]);
    case(|s| s.secret = Some("a.py".into()), Status::Fail, &[Blocker::SecretInOutput]);
}

#[test]
fn a_denied_host_counts_only_where_the_work_was_not_done() {
    let denied = |change: fn(&mut Seen)| {
        move |s: &mut Seen| {
            s.egress_denied = Some("example.org:443 (not_listed)".into());
            change(s);
        }
    };
    case(denied(|_| {}), Status::Pass, &[]);
    let failed = denied(|s| s.ended(EndedBy::Exited, Some(1), Some(EngineResult::Failed)));
    case(failed, Status::Fail, &[Blocker::EngineFailed, Blocker::EgressDenied]);
    case(denied(|s| s.changed = 0), Status::Fail, &[Blocker::NoDiff, Blocker::EgressDenied]);
    let wrong = denied(|s| s.verification = vec![verification(VerificationStatus::Failed)]);
    case(wrong, Status::Fail, &[Blocker::VerificationFailed, Blocker::EgressDenied]);
    // A path that broke a rule has nothing to do with it, and what no gate let start was denied nothing.
    case(denied(|s| s.violations = vec![violation()]), Status::Fail, &[Blocker::DisallowedFile]);
    let gate = denied(|s| s.gate_blockers = vec![Blocker::DestinationUnready.because("none")]);
    case(gate, Status::Blocked, &[Blocker::DestinationUnready]);
}

#[test]
fn verifications() {
    let set = |status| move |s: &mut Seen| s.verification = vec![verification(status)];
    case(set(VerificationStatus::Failed), Status::Fail, &[Blocker::VerificationFailed]);
    case(set(VerificationStatus::CommandMissing), Status::Blocked, &[Blocker::MissingTestCommand]);
    case(set(VerificationStatus::TimedOut), Status::Blocked, &[Blocker::TimeoutTotal]);
    case(|s| s.verification[0].exit_code = Some(1), Status::Fail, &[Blocker::VerificationFailed]);
    case(|s| s.verification.clear(), Status::Fail, &[Blocker::VerificationFailed]);
    case(|s| s.verify_declared = 2, Status::Fail, &[Blocker::VerificationFailed]);
    case(|s| s.verify_declared = 0, Status::Fail, &[Blocker::VerificationFailed]);
    // A command that changed tracked files fails the run whatever its exit status, in either verification.
    let changed = |status| Verification { changed_files: Some(one_file()), ..verification(status) };
    let only = [Blocker::VerificationChangedFiles];
    case(set(VerificationStatus::ChangedFiles), Status::Fail, &only);
    case(|s| s.verification = vec![changed(VerificationStatus::ChangedFiles)], Status::Fail, &only);
    case(|s| s.verification = vec![changed(VerificationStatus::Passed)], Status::Fail, &only);
    case(|s| s.with_baseline_tests = vec![changed(VerificationStatus::ChangedFiles)], Status::Fail, &only);
    let both = [Blocker::VerificationChangedFiles, Blocker::VerificationFailed];
    case(|s| s.verification = vec![changed(VerificationStatus::Failed)], Status::Fail, &both);
    case(|s| s.with_baseline_tests = vec![changed(VerificationStatus::Failed)], Status::Fail, &both);
    let mut seen = Seen::good();
    seen.verification = vec![changed(VerificationStatus::ChangedFiles)];
    assert_eq!(
        judge(&seen.facts()).blockers()[0].detail,
        "the verification command `sh test.sh` changed 1 tracked file: a.py"
    );
    let mut seen = Seen::good();
    seen.with_baseline_tests = vec![verification(VerificationStatus::Failed)];
    seen.changed_verification_files = vec![path("Makefile"), path("tox.toml")];
    assert_eq!(
        judge(&seen.facts()).blockers()[0].detail,
        "the engine changed what decides what verification does (Makefile and 1 more), and with tests and these as they were \
         the verification command `sh test.sh` exited with 1; `tests_may_change: true` in the contract would allow it"
    );
    // The commands after it are not run.
    let stopped = |s: &mut Seen| {
        s.verification = vec![changed(VerificationStatus::ChangedFiles)];
        s.verify_declared = 2;
    };
    case(stopped, Status::Fail, &only);
    // An earlier blocker explains why they were not run.
    let not_run = |s: &mut Seen| {
        s.verification.clear();
        s.violations = vec![violation()];
    };
    case(not_run, Status::Fail, &[Blocker::DisallowedFile]);
    // A later one does not.
    let not_run = |s: &mut Seen| {
        s.verification.clear();
        s.source = Some(SourceFacts { clean_end: true, mutated: true, what: "HEAD".into() });
    };
    case(not_run, Status::Fail, &[Blocker::SourceMutated, Blocker::VerificationFailed]);
}

#[test]
fn engines() {
    use EngineResult as R;
    let ended = |code, result| move |s: &mut Seen| s.ended(EndedBy::Exited, code, result);
    case(ended(Some(1), Some(R::Completed)), Status::Fail, &[Blocker::EngineFailed]);
    case(ended(Some(1), Some(R::Failed)), Status::Fail, &[Blocker::EngineFailed]);
    case(
        ended(Some(1), Some(R::Rejected)),
        Status::Fail,
        &[Blocker::EngineFailed, Blocker::ReviewerRejected],
    );
    case(ended(None, None), Status::Fail, &[Blocker::EngineFailed]);
    case(ended(Some(0), Some(R::Failed)), Status::Fail, &[Blocker::EngineFailed]);
    case(ended(Some(0), Some(R::Rejected)), Status::Blocked, &[Blocker::ReviewerRejected]);
    case(ended(Some(0), None), Status::Fail, &[Blocker::AgentProtocolError]);
    case(|s| s.ended(EndedBy::EarlyStop, None, None), Status::Fail, &[Blocker::AgentProtocolError]);
    case(|s| s.ended(EndedBy::EarlyStop, None, Some(R::Failed)), Status::Fail, &[Blocker::EngineFailed]);
    case(|s| s.protocol_error = Some("no JSON".into()), Status::Fail, &[Blocker::AgentProtocolError]);
    case(|s| s.engine_exit = None, Status::Fail, &[Blocker::EngineFailed]);
    let unknown = |s: &mut Seen| {
        s.engine_exit = Some(EngineExit { signal: None, ..exit(EndedBy::Exited, None, Some(R::Completed)) });
    };
    case(unknown, Status::Fail, &[Blocker::EngineFailed]);
}

#[test]
fn the_cause_of_an_end_is_reported_with_the_end() {
    let mut seen = Seen::good();
    seen.engine_ended = Some("it met the limit `disk`".to_owned());
    assert_eq!(judge(&seen.facts()).status(), Status::Pass, "what was met and did no harm");
    seen.ended(EndedBy::Exited, None, Some(EngineResult::Completed));
    let detail = |seen: &Seen| judge(&seen.facts()).blockers()[0].detail.clone();
    assert_eq!(detail(&seen), "the engine was ended by signal 9: it met the limit `disk`");
    let mut seen = Seen::good();
    let failed = verification(VerificationStatus::Failed);
    seen.verification = vec![Verification { reason: Some("it was lost".to_owned()), ..failed }];
    assert_eq!(detail(&seen), "the verification command `sh test.sh` exited with 1: it was lost");
}

#[test]
fn a_limit_after_a_patch_that_holds_is_a_fail() {
    for limit in [EndedBy::StartupLimit, EndedBy::IdleLimit, EndedBy::TotalLimit] {
        for result in [None, Some(EngineResult::Completed)] {
            case(|s| s.ended(limit, None, result), Status::Fail, &[Blocker::LifecycleTimeout]);
        }
    }
}

#[test]
fn a_limit_before_is_blocked_and_hides_nothing_that_was_found() {
    let limits = [
        (EndedBy::StartupLimit, Blocker::TimeoutStartup),
        (EndedBy::IdleLimit, Blocker::TimeoutIdle),
        (EndedBy::TotalLimit, Blocker::TimeoutTotal),
    ];
    for (limit, blocker) in limits {
        let stopped = |change: fn(&mut Seen)| {
            move |s: &mut Seen| {
                s.ended(limit, None, None);
                change(s);
            }
        };
        case(stopped(|s| s.changed = 0), Status::Blocked, &[blocker]);
        case(stopped(|s| s.verification.clear()), Status::Blocked, &[blocker]);
        let failed = |s: &mut Seen| s.verification = vec![verification(VerificationStatus::Failed)];
        case(stopped(failed), Status::Blocked, &[blocker]);
        let everything = |s: &mut Seen| {
            s.protocol_error = Some("no JSON".into());
            s.violations = vec![violation()];
            s.forbidden_actions = vec![Action::Push];
            s.secret = Some("a.py".into());
        };
        let found = [blocker, Blocker::DisallowedFile, Blocker::ForbiddenAction, Blocker::SecretInOutput];
        case(stopped(everything), Status::Fail, &found);
    }
}

#[test]
fn targets_and_evidence() {
    let source = |clean_end, mutated| Some(SourceFacts { clean_end, mutated, what: "HEAD".into() });
    case(|s| s.source = source(true, true), Status::Fail, &[Blocker::SourceMutated]);
    case(|s| s.source = source(false, false), Status::Fail, &[Blocker::DirtyEndingTree]);
    case(|s| s.missing_event = Some(EventType::DiffChecked), Status::Fail, &[Blocker::MissingRequiredEvent]);
    case(|s| s.write_failures = vec!["patch.diff".into()], Status::Fail, &[Blocker::ArtifactWriteFailure]);
}

#[test]
fn gates_alone_decide_with_the_evidence() {
    let blocked = |s: &mut Seen| {
        *s = Seen { engine_exit: None, changed: 0, verification: Vec::new(), ..Seen::good() };
        s.gate_blockers = vec![Blocker::EngineDisabled.because("gate engine_enabled: off")];
    };
    case(blocked, Status::Blocked, &[Blocker::EngineDisabled]);
    let unwritten = |s: &mut Seen| {
        blocked(s);
        s.write_failures = vec!["decision.json".into()];
        s.missing_event = Some(EventType::EligibilityDecided);
    };
    let found = [Blocker::EngineDisabled, Blocker::MissingRequiredEvent, Blocker::ArtifactWriteFailure];
    case(unwritten, Status::Fail, &found);
}

#[test]
fn an_interrupted_run_is_blocked_and_lists_what_was_found() {
    let interrupted = |s: &mut Seen| {
        *s = Seen { engine_exit: None, changed: 0, verification: Vec::new(), source: None, ..Seen::good() };
        s.interrupted = Some("stopped at step engine".into());
    };
    case(interrupted, Status::Blocked, &[Blocker::Interrupted]);
    let with_finding = |s: &mut Seen| {
        interrupted(s);
        s.violations = vec![violation()];
    };
    case(with_finding, Status::Blocked, &[Blocker::Interrupted, Blocker::DisallowedFile]);
}

/// Possible findings against a run.
const FINDINGS: &[fn(&mut Seen)] = &[
    |s| s.gate_blockers.push(Blocker::EngineDisabled.because("off")),
    |s| s.interrupted = Some("at step verify".into()),
    |s| s.protocol_error = Some("no JSON".into()),
    |s| s.engine_exit = None,
    |s| s.model_refusals.push(Blocker::ModelMismatch.because("another")),
    |s| s.model_refusals.push(Blocker::BudgetExhausted.because("tokens")),
    |s| s.violations.push(violation()),
    |s| s.forbidden_actions.push(Action::Push),
    |s| s.secret = Some("a.py".into()),
    |s| s.verification.push(verification(VerificationStatus::Failed)),
    |s| s.verification.push(verification(VerificationStatus::CommandMissing)),
    |s| s.verification.push(verification(VerificationStatus::TimedOut)),
    |s| s.verification.push(verification(VerificationStatus::ChangedFiles)),
    |s| s.with_baseline_tests.push(verification(VerificationStatus::ChangedFiles)),
    |s| s.verify_declared = s.verification.len() + 1,
    |s| s.source = Some(SourceFacts { clean_end: true, mutated: true, what: "HEAD".into() }),
    |s| s.source = Some(SourceFacts { clean_end: false, mutated: false, what: "x".into() }),
    |s| s.missing_event = Some(EventType::DiffChecked),
    |s| s.write_failures.push("patch.diff".into()),
    |s| s.ended(EndedBy::Exited, Some(1), Some(EngineResult::Completed)),
    |s| s.ended(EndedBy::Exited, Some(0), None),
    |s| s.ended(EndedBy::Exited, Some(0), Some(EngineResult::Rejected)),
    |s| s.ended(EndedBy::EarlyStop, None, Some(EngineResult::Failed)),
    |s| s.ended(EndedBy::StartupLimit, None, None),
    |s| s.ended(EndedBy::IdleLimit, None, Some(EngineResult::Completed)),
    |s| s.ended(EndedBy::TotalLimit, Some(0), Some(EngineResult::Completed)),
    |s| s.ended(EndedBy::Interrupted, Some(0), Some(EngineResult::Completed)),
    |s| (s.require_diff, s.changed) = (true, 0),
];

/// Findings that say nothing against a run by themselves.
const NEUTRAL: &[fn(&mut Seen)] = &[
    |s| s.source = None,
    |s| s.require_diff = false,
    |s| s.changed += 1,
    |s| s.verify_declared = s.verification.len(),
];

fn apply(indices: &[usize]) -> Seen {
    let all: Vec<_> = NEUTRAL.iter().chain(FINDINGS).collect();
    let mut seen = Seen::good();
    for index in indices {
        all[index % all.len()](&mut seen);
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_pass_has_no_blocker_and_a_blocker_is_no_pass(indices in prop::collection::vec(any::<usize>(), 0..8)) {
        let verdict = judge(&apply(&indices).facts());
        prop_assert_eq!(verdict.status() == Status::Pass, verdict.blockers().is_empty());
    }

    #[test]
    fn a_finding_is_never_a_pass_and_never_improves_one(
        indices in prop::collection::vec(any::<usize>(), 0..8),
        finding in prop::sample::select(FINDINGS),
    ) {
        let mut seen = apply(&indices);
        finding(&mut seen);
        prop_assert_ne!(judge(&seen.facts()).status(), Status::Pass, "{:?}", seen);
    }

    #[test]
    fn a_finding_against_the_patch_is_always_listed(indices in prop::collection::vec(any::<usize>(), 0..8)) {
        let mut seen = apply(&indices);
        seen.gate_blockers.clear();
        let found: Vec<Blocker> = judge(&seen.facts()).blockers().iter().map(|b| b.blocker).collect();
        prop_assert_eq!(found.contains(&Blocker::DisallowedFile), !seen.violations.is_empty());
        prop_assert_eq!(found.contains(&Blocker::ForbiddenAction), !seen.forbidden_actions.is_empty());
        prop_assert_eq!(found.contains(&Blocker::SecretInOutput), seen.secret.is_some());
        prop_assert_eq!(found.contains(&Blocker::ArtifactWriteFailure), !seen.write_failures.is_empty());
    }
}

#[test]
fn the_reaction_of_an_interrupted_engine_does_not_count() {
    use EngineResult as R;
    for (code, result) in
        [(Some(0), Some(R::Completed)), (None, None), (Some(1), Some(R::Failed)), (None, Some(R::Rejected))]
    {
        for said in [Some("by SIGINT".to_owned()), None] {
            let interrupted = |seen: &mut Seen| {
                seen.ended(EndedBy::Interrupted, code, result);
                seen.interrupted.clone_from(&said);
                seen.protocol_error = Some("half a line".to_owned());
                (seen.changed, seen.verification) = (0, Vec::new());
            };
            case(interrupted, Status::Blocked, &[Blocker::Interrupted]);
        }
    }
}

#[test]
fn a_stage_without_an_engine_passes_at_its_gates() {
    let at_the_gates = |seen: &mut Seen| {
        seen.gates_only = true;
        seen.engine_exit = None;
        (seen.changed, seen.verification) = (0, Vec::new());
    };
    case(at_the_gates, Status::Pass, &[]);
    case(
        |seen| {
            at_the_gates(seen);
            seen.gates_only = false;
        },
        Status::Fail,
        &[Blocker::EngineFailed],
    );
}

#[test]
fn a_failed_landing_is_no_pass() {
    let refused = |seen: &mut Seen| seen.landing_refused = Some(Blocker::SourceMutated.because("moved"));
    case(refused, Status::Fail, &[Blocker::SourceMutated]);
}

#[test]
fn a_router_refusal_is_no_pass_though_the_work_is_done() {
    for blocker in [Blocker::ModelMismatch, Blocker::BudgetExhausted] {
        case(|seen| seen.model_refusals = vec![blocker.because("refused")], Status::Blocked, &[blocker]);
    }
    let and_nothing_done = |seen: &mut Seen| {
        seen.model_refusals = vec![Blocker::BudgetExhausted.because("tokens")];
        seen.changed = 0;
    };
    case(and_nothing_done, Status::Fail, &[Blocker::BudgetExhausted, Blocker::NoDiff]);
}
