//! The check of what was done when: the steps of the trace, and the ends of the verification commands.

use herma_core::blocker::Blocker;
use herma_core::report::{Verification, VerificationStatus};
use herma_core::step::TraceLine;
use herma_core::{EventType, Report, Status, Step};

use super::check::Good;
use super::pass::BundleContents;
use crate::layout;

/// The shell's exit codes for a command that is not there or cannot be run.
const NOT_FOUND: [i32; 2] = [126, 127];

/// The steps are those of such a run, in order, and the log shows the commands that the report lists.
pub(super) fn steps(seen: &BundleContents) -> Result<Good, String> {
    let report = seen.report()?;
    commands(report)?;
    if let Some(missing) = seen.test_log.as_ref().and_then(|log| log.missing()) {
        return Err(format!("{} does not show `{missing}`, which the report says", layout::TEST_LOG));
    }
    if seen.test_log.is_none() && !report.verification.is_empty() && report.status == Status::Pass {
        return Err(format!("commands were verified, and {} is not there", layout::TEST_LOG));
    }
    // Whether its absence is excused is what the check of the order says.
    let Some(Ok(steps)) = &seen.trace else {
        return Ok(Good::NotApplicable(format!("{} is not there", layout::TRACE)));
    };
    let cut_short = [Blocker::Interrupted, Blocker::ArtifactWriteFailure];
    if report.blockers.iter().any(|record| cut_short.contains(&record.blocker)) {
        return Ok(Good::Passed(format!("{} steps of a run that was cut short", steps.len())));
    }
    in_order(seen, report, steps)?;
    Ok(Good::Passed(format!("{} steps", steps.len())))
}

fn in_order(seen: &BundleContents, report: &Report, steps: &[TraceLine]) -> Result<(), String> {
    if steps.first().is_none_or(|first| first.step != Step::Start) {
        return Err("the first step is not `start`".to_owned());
    }
    if let Some([_, later]) =
        steps.windows(2).find(|pair| pair[0].step >= pair[1].step || pair[0].ts > pair[1].ts)
    {
        return Err(format!("the step `{}` is not in its place", later.step));
    }
    let at = |wanted: Step| steps.iter().find(|line| line.step == wanted).map(|line| line.ts);
    let mut needed = vec![Step::Gates, Step::Report];
    if report.engine_started {
        needed.extend([Step::Probe, Step::Workspace, Step::Engine]);
    }
    if report.status == Status::Pass && report.stage.starts_engine() {
        needed.extend([Step::Collect, Step::Check, Step::Verify, Step::Witness]);
        needed.extend(report.stage.lands().then_some(Step::Land));
    }
    if let Some(missing) = needed.into_iter().find(|step| at(*step).is_none()) {
        return Err(format!("the step `{missing}` is not there"));
    }
    // The effects of a step follow it.
    for (step, event) in [
        (Step::Engine, EventType::EngineStarted),
        (Step::Collect, EventType::PatchApplied),
        (Step::Check, EventType::DiffChecked),
        (Step::Verify, EventType::VerificationCompleted),
    ] {
        let happened = seen.events.as_ref().and_then(|events| events.first_at(event));
        if happened.is_some_and(|happened| at(step).is_none_or(|taken| taken > happened)) {
            return Err(format!("{event} happened before the step `{step}`"));
        }
    }
    Ok(())
}

/// The status of each command agrees with its exit code.
fn commands(report: &Report) -> Result<(), String> {
    let ended_so = |v: &Verification| match v.status {
        VerificationStatus::Passed | VerificationStatus::ChangedFiles => v.exit_code == Some(0),
        VerificationStatus::CommandMissing => v.exit_code.is_some_and(|code| NOT_FOUND.contains(&code)),
        VerificationStatus::TimedOut => v.exit_code.is_none(),
        VerificationStatus::Failed => v.exit_code != Some(0) || v.reason.is_some(),
    };
    let all = report.verification.iter().chain(&report.verification_with_baseline_tests);
    match all.into_iter().find(|v| !ended_so(v)) {
        Some(v) => Err(format!("the exit code of `{}` is not that of its status", v.command)),
        None => Ok(()),
    }
}
