//! The verdict of a run, derived from the harness's observations. Every rule is here and nowhere else.

use herma_core::blocker::{Blocker, BlockerRecord};
use herma_core::contract::Action;
use herma_core::engine::{EndedBy, EngineExit, EngineResult};
use herma_core::report::{PathRule, PathViolation, Verification, VerificationStatus};
use herma_core::{EventType, RepoPath, Verdict};

/// The harness's observations of a run.
#[derive(Clone, Debug, Default)]
pub struct RunFacts<'a> {
    /// Whether the run ends at the gates, because its stage starts no engine.
    pub gates_only: bool,
    /// Whether the contract requires a change.
    pub require_diff: bool,
    /// The gates that do not hold, as blockers. Where there is one, the engine was not started.
    pub gate_blockers: Vec<BlockerRecord>,
    /// The step at which herma was stopped, if it was.
    pub interrupted: Option<String>,
    /// The next step after that, where the work can be continued.
    pub interrupted_next_step: Option<String>,
    /// The engine's exit; `None` if it was not started.
    pub engine_exit: Option<EngineExit>,
    /// Details of an end that was not the engine's own: the exceeded limit, or the cause.
    pub engine_ended: Option<String>,
    /// The problem with the engine's messages, if any.
    pub protocol_error: Option<String>,
    /// The number of changed paths.
    pub changed: usize,
    /// Changed files that decide what the environment contains, where the contract does not allow that.
    pub changed_inputs: &'a [RepoPath],
    /// Why the environment was not built again for the patch.
    pub rebuild_refused: Option<String>,
    /// The paths that broke a rule.
    pub violations: &'a [PathViolation],
    /// The forbidden actions that the engine attempted.
    pub forbidden_actions: &'a [Action],
    /// The place and kind of a secret in the result, in words; never the secret itself.
    pub secret: Option<String>,
    /// The results of the verification commands.
    pub verification: &'a [Verification],
    /// Their results with the baseline's tests, if that was required.
    pub verification_with_baseline_tests: &'a [Verification],
    /// Changed files that decide what verification does, and are no tests.
    pub changed_verification_files: &'a [RepoPath],
    /// The number of verification commands of the contract.
    pub verify_declared: usize,
    /// The target after the run; none if the run has no target that could change.
    pub source: Option<SourceFacts>,
    /// Why what passed every check did not become a branch, where it did not.
    pub landing_refused: Option<BlockerRecord>,
    /// The router's refusals with which the run cannot pass, as blockers.
    pub model_refusals: Vec<BlockerRecord>,
    /// The denied hosts, in words, if any.
    pub egress_denied: Option<String>,
    /// The first event that is not there, or not in its place.
    pub missing_event: Option<EventType>,
    /// Why herma's own verification refuses the bundle, where it does.
    pub evidence_refused: Option<String>,
    /// The files of the bundle that could not be written, each with the reason.
    pub write_failures: Vec<String>,
}

/// The observation of the target after the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFacts {
    /// Whether it is as clean at the end as at the start.
    pub clean_end: bool,
    /// Whether HEAD, refs, index or work tree differ from before.
    pub mutated: bool,
    /// The differences.
    pub what: String,
}

/// The classification of the engine's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EngineEnding {
    /// It was not started.
    NotStarted,
    /// It ended in its own time.
    InTime,
    /// A limit stopped it after it had left a patch that holds.
    StoppedAfterPatch(Limit),
    /// A limit stopped it before.
    Stopped(Limit),
    /// herma was interrupted.
    Interrupted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Startup,
    Idle,
    Total,
}

/// The verdict that the facts lead to: a pass only if there is nothing at all against it.
#[must_use]
pub fn judge(facts: &RunFacts<'_>) -> Verdict {
    let interrupted = interruption(facts);
    let mut blockers = Vec::new();
    if facts.gate_blockers.is_empty() {
        let ending = ending(facts);
        blockers.extend(interrupted);
        judge_engine(facts, ending, &mut blockers);
        blockers.extend(facts.model_refusals.iter().cloned());
        judge_changes(facts, ending, &mut blockers);
        judge_verification(facts, ending, &mut blockers);
        judge_source(facts, &mut blockers);
        if !(facts.gates_only && ending == EngineEnding::NotStarted) {
            judge_absences(facts, ending, &mut blockers);
        }
        judge_egress(facts, &mut blockers);
        blockers.extend(facts.landing_refused.iter().cloned());
    } else {
        blockers.extend(facts.gate_blockers.iter().cloned());
        blockers.extend(interrupted);
    }
    judge_evidence(facts, &mut blockers);
    Verdict::new(blockers)
}

/// The interruption, with the step by which its work is continued, where that is possible.
fn interruption(facts: &RunFacts<'_>) -> Option<BlockerRecord> {
    let record = Blocker::Interrupted.because(facts.interrupted.as_ref()?);
    let next_step = facts.interrupted_next_step.clone();
    Some(BlockerRecord { next_step: next_step.unwrap_or_else(|| record.next_step.clone()), ..record })
}

fn ending(facts: &RunFacts<'_>) -> EngineEnding {
    let Some(exit) = &facts.engine_exit else { return EngineEnding::NotStarted };
    let limit = match exit.ended_by {
        EndedBy::Exited | EndedBy::EarlyStop => return EngineEnding::InTime,
        EndedBy::StartupLimit => Limit::Startup,
        EndedBy::IdleLimit => Limit::Idle,
        EndedBy::TotalLimit => Limit::Total,
        EndedBy::Interrupted => return EngineEnding::Interrupted,
    };
    if patch_holds(facts) { EngineEnding::StoppedAfterPatch(limit) } else { EngineEnding::Stopped(limit) }
}

/// Whether there is a patch with which every check passed.
fn patch_holds(facts: &RunFacts<'_>) -> bool {
    facts.changed > 0
        && facts.violations.is_empty()
        && facts.changed_inputs.is_empty()
        && facts.forbidden_actions.is_empty()
        && facts.secret.is_none()
        && facts.verification.len() == facts.verify_declared
        && facts
            .verification
            .iter()
            .chain(facts.verification_with_baseline_tests)
            .all(|v| outcome(v).is_none() && v.changed_files.is_none())
}

fn judge_engine(facts: &RunFacts<'_>, ending: EngineEnding, blockers: &mut Vec<BlockerRecord>) {
    let Some(exit) = &facts.engine_exit else { return };
    let said = |blockers: &[BlockerRecord]| blockers.iter().any(|b| b.blocker == Blocker::EngineFailed);
    match ending {
        EngineEnding::NotStarted => {}
        EngineEnding::InTime => {
            let told = |how| with_reason(how, facts.engine_ended.as_deref());
            blockers.extend(exit_error(exit).map(|how| Blocker::EngineFailed.because(told(how))));
            blockers.extend(protocol_error(facts, exit));
        }
        EngineEnding::StoppedAfterPatch(limit) => {
            let detail =
                format!("timed out: {}; the patch that it left passes verification", limit.exceeded());
            blockers.push(Blocker::LifecycleTimeout.because(detail));
            blockers.extend(facts.protocol_error.iter().map(|e| Blocker::AgentProtocolError.because(e)));
        }
        EngineEnding::Stopped(limit) => {
            blockers.push(limit.blocker().because(format!("timed out: {}", limit.exceeded())));
        }
        // Its reaction, and its messages until then, tell nothing about its work.
        EngineEnding::Interrupted => {
            let said = facts.interrupted.is_some();
            blockers.extend((!said).then(|| Blocker::Interrupted.because("herma was cancelled")));
            return;
        }
    }
    match exit.result {
        // A limit, or the exit code, says already that the work was not done.
        Some(EngineResult::Failed) if !said(blockers) && !matches!(ending, EngineEnding::Stopped(_)) => {
            blockers.push(Blocker::EngineFailed.because("the engine said that it failed"));
        }
        Some(EngineResult::Rejected) => {
            blockers.push(
                Blocker::ReviewerRejected.because("the engine said that its reviewer rejected the work"),
            );
        }
        Some(EngineResult::Failed | EngineResult::Completed) | None => {}
    }
}

/// The failure of an engine that no limit stopped.
fn exit_error(exit: &EngineExit) -> Option<String> {
    match (exit.ended_by, exit.code, exit.signal) {
        // herma stopped it because its result was in: how it then ended says nothing.
        (EndedBy::EarlyStop, _, _) | (_, Some(0), None) => None,
        (_, _, Some(signal)) => Some(format!("the engine was ended by signal {signal}")),
        (_, Some(code), None) => Some(format!("the engine exited with {code}")),
        (_, None, None) => Some("the exit status of the engine is unknown".to_owned()),
    }
}

fn protocol_error(facts: &RunFacts<'_>, exit: &EngineExit) -> Option<BlockerRecord> {
    let detail = match (&facts.protocol_error, exit.result) {
        (Some(error), _) => error.clone(),
        // An engine that exited with an error owes no result.
        (None, None) if exit_error(exit).is_none() => "the engine ended without a result".to_owned(),
        (None, _) => return None,
    };
    Some(Blocker::AgentProtocolError.because(detail))
}

fn judge_changes(facts: &RunFacts<'_>, ending: EngineEnding, blockers: &mut Vec<BlockerRecord>) {
    // After an interruption it is unknown whether a change would have followed.
    let ran_to_its_end = ending == EngineEnding::InTime && facts.interrupted.is_none();
    if facts.require_diff && facts.changed == 0 && ran_to_its_end {
        blockers.push(Blocker::NoDiff.because("the contract requires a change and no path changed"));
    }
    let (unsupported, disallowed): (Vec<_>, Vec<_>) =
        facts.violations.iter().partition(|violation| violation.rule == PathRule::UnsupportedPath);
    for (blocker, violations) in
        [(Blocker::DisallowedFile, disallowed), (Blocker::UnsupportedPath, unsupported)]
    {
        if let Some(first) = violations.first() {
            let more = match violations.len() - 1 {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            blockers.push(blocker.because(format!("{}: {}{more}", first.path.shortened(), first.detail)));
        }
    }
    if let Some(first) = facts.changed_inputs.first() {
        let more = match facts.changed_inputs.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let why = facts.rebuild_refused.as_deref().unwrap_or("it was not built again");
        blockers.push(Blocker::EnvironmentChanged.because(format!(
            "the engine changed {}{more}, which decides what the environment contains: {why}",
            first.shortened()
        )));
    }
    if !facts.forbidden_actions.is_empty() {
        let names: Vec<&str> = facts.forbidden_actions.iter().map(|action| action.as_str()).collect();
        blockers
            .push(Blocker::ForbiddenAction.because(format!("the engine attempted: {}", names.join(", "))));
    }
    blockers.extend(facts.secret.iter().map(|where_it_is| Blocker::SecretInOutput.because(where_it_is)));
}

fn judge_verification(facts: &RunFacts<'_>, ending: EngineEnding, blockers: &mut Vec<BlockerRecord>) {
    let stopped = matches!(ending, EngineEnding::Stopped(_));
    for verification in facts.verification {
        blockers.extend(changed_files(verification, ""));
        match outcome(verification) {
            // A limit says already that the work was not done.
            Some(Blocker::VerificationFailed) if stopped => {}
            Some(Blocker::VerificationChangedFiles) if verification.changed_files.is_some() => {}
            Some(blocker) => blockers.push(blocker.because(describe(verification))),
            None => {}
        }
    }
    let second = facts.verification_with_baseline_tests;
    blockers.extend(second.iter().filter_map(|v| changed_files(v, "with the tests as they were ")));
    let fails = |v: &&Verification| {
        outcome(v).is_some_and(|b| b != Blocker::VerificationChangedFiles || v.changed_files.is_none())
    };
    let leaning = second.iter().find(fails);
    if let Some(verification) = leaning.filter(|_| !stopped) {
        let detail = format!(
            "{} as they were {}; `tests_may_change: true` in the contract would allow it",
            reverted(facts.changed_verification_files),
            describe(verification)
        );
        blockers.push(Blocker::VerificationFailed.because(detail));
    }
}

/// The reason for the second verification.
fn reverted(deciding: &[RepoPath]) -> String {
    match deciding {
        [] => "the engine changed or added tests, and with the tests".to_owned(),
        [first, more @ ..] => {
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            format!(
                "the engine changed what decides what verification does ({first}{more}), and with tests and these"
            )
        }
    }
}

/// The blocker that a verification command leads to.
fn outcome(verification: &Verification) -> Option<Blocker> {
    match verification.status {
        VerificationStatus::Passed if verification.changed_files.is_some() => {
            Some(Blocker::VerificationChangedFiles)
        }
        VerificationStatus::Passed if verification.exit_code == Some(0) => None,
        VerificationStatus::Passed | VerificationStatus::Failed => Some(Blocker::VerificationFailed),
        VerificationStatus::CommandMissing => Some(Blocker::MissingTestCommand),
        VerificationStatus::TimedOut => Some(Blocker::TimeoutTotal),
        VerificationStatus::ChangedFiles => Some(Blocker::VerificationChangedFiles),
    }
}

/// The blocker for tracked files that a command changed, whatever its exit status.
fn changed_files(verification: &Verification, when: &str) -> Option<BlockerRecord> {
    let changed = verification.changed_files.as_ref()?;
    let detail = format!("{when}the verification command `{}` changed {changed}", verification.command);
    Some(Blocker::VerificationChangedFiles.because(detail))
}

fn describe(verification: &Verification) -> String {
    let how = match (verification.status, verification.exit_code) {
        (VerificationStatus::CommandMissing, _) => "was not found or could not be run".to_owned(),
        (VerificationStatus::TimedOut, _) => "took longer than the total limit".to_owned(),
        (VerificationStatus::ChangedFiles, _) => "changed tracked files".to_owned(),
        (VerificationStatus::Passed | VerificationStatus::Failed, Some(code)) => {
            format!("exited with {code}")
        }
        (VerificationStatus::Passed | VerificationStatus::Failed, None) => {
            "did not exit by itself".to_owned()
        }
    };
    with_reason(
        format!("the verification command `{}` {how}", verification.command),
        verification.reason.as_deref(),
    )
}

fn with_reason(how: String, why: Option<&str>) -> String {
    match why {
        Some(why) => format!("{how}: {why}"),
        None => how,
    }
}

fn judge_source(facts: &RunFacts<'_>, blockers: &mut Vec<BlockerRecord>) {
    let Some(source) = &facts.source else { return };
    if source.mutated {
        blockers.push(Blocker::SourceMutated.because(format!("the target changed: {}", source.what)));
    }
    if !source.clean_end {
        blockers.push(Blocker::DirtyEndingTree.because(format!("the target is not clean: {}", source.what)));
    }
}

/// The blockers for missing results, if no other blocker explains them.
fn judge_absences(facts: &RunFacts<'_>, ending: EngineEnding, blockers: &mut Vec<BlockerRecord>) {
    let explained =
        |b: &BlockerRecord| !matches!(b.blocker, Blocker::SourceMutated | Blocker::DirtyEndingTree);
    if blockers.iter().any(explained) || !facts.write_failures.is_empty() {
        return;
    }
    let (ran, declared) = (facts.verification.len(), facts.verify_declared);
    if ending == EngineEnding::NotStarted {
        blockers.push(Blocker::EngineFailed.because("the engine was not started, and no gate says why"));
    } else if ran != declared {
        let detail = format!("not run: {ran} of {declared} verification commands have a result");
        blockers.push(Blocker::VerificationFailed.because(detail));
    }
}

/// A host that was denied is a reason only where the work was not done: an engine that does without it has lost nothing.
fn judge_egress(facts: &RunFacts<'_>, blockers: &mut Vec<BlockerRecord>) {
    let undone = |b: &BlockerRecord| {
        matches!(b.blocker, Blocker::EngineFailed | Blocker::NoDiff | Blocker::VerificationFailed)
    };
    if let Some(hosts) = &facts.egress_denied
        && blockers.iter().any(undone)
    {
        blockers.push(Blocker::EgressDenied.because(format!("the engine was denied {hosts}")));
    }
}

fn judge_evidence(facts: &RunFacts<'_>, blockers: &mut Vec<BlockerRecord>) {
    if let Some(event) = facts.missing_event {
        let detail = format!("the event {event} is not there, or not in its place");
        blockers.push(Blocker::MissingRequiredEvent.because(detail));
    }
    blockers.extend(facts.write_failures.iter().map(|what| Blocker::ArtifactWriteFailure.because(what)));
    blockers.extend(facts.evidence_refused.iter().map(|why| Blocker::EvidenceRefused.because(why)));
}

impl Limit {
    fn exceeded(self) -> &'static str {
        match self {
            Self::Startup => "the engine printed nothing within `limits.startup`",
            Self::Idle => "the engine printed nothing for as long as `limits.idle`",
            Self::Total => "the engine worked longer than `limits.total`",
        }
    }

    fn blocker(self) -> Blocker {
        match self {
            Self::Startup => Blocker::TimeoutStartup,
            Self::Idle => Blocker::TimeoutIdle,
            Self::Total => Blocker::TimeoutTotal,
        }
    }
}
