//! `herma accept` and `herma reject`: the operator's outcome for a branch that landed.

use std::process::ExitCode;

use herma_api::{OutcomeSubject, SubjectError, given_word};
use herma_core::admission::Line;
use herma_core::outcome::{Outcome, OutcomeWord};
use herma_core::signed::Signed;
use herma_core::visible::visible_line;
use herma_harness::Installation;
use herma_trust::{OutcomeError, TakenBack};

use crate::args;
use crate::commands::approvals::no_secret;
use crate::commands::{Ended, find_finished_run, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{OutcomeOutput, OutcomeRow, OutcomeWordNow};
use crate::screen::{Screen, Tone};
use crate::unlock::unlock;

pub(crate) fn accept(args: &args::Accept, environment: &Environment, screen: &Screen) -> Ended {
    let reason = args.reason.as_ref().map_or("", Line::as_str);
    no_secret(reason)?;
    let installation = open(environment, screen)?;
    let about = About::find(&installation, &args.run)?;
    about.0.must_be_open(&installation, OutcomeWord::Accepted)?;
    about.show(screen);
    let operator = unlock(&args.unlock, &installation, environment, screen)?;
    let outcome = installation.outcomes().accept(about.0.report.run_id, reason, &operator)?;
    let note = "the branch stays where it is; merging it is up to you";
    about.done(outcome, note, screen)
}

pub(crate) fn reject(args: &args::Reject, environment: &Environment, screen: &Screen) -> Ended {
    no_secret(args.reason.as_str())?;
    let installation = open(environment, screen)?;
    let about = About::find(&installation, &args.run)?;
    about.0.must_be_open(&installation, OutcomeWord::Rejected)?;
    about.show(screen);
    let operator = unlock(&args.unlock, &installation, environment, screen)?;
    let (outcome, taken) =
        installation.outcomes().reject(about.0.report.run_id, args.reason.as_str(), &operator)?;
    let note = match taken {
        TakenBack::Entirely => "the branch is deleted, and no trace is left in the target",
        TakenBack::ObjectsInUse => {
            "the branch is deleted; its objects stay, because something else in the target uses some of them"
        }
    };
    about.done(outcome, note, screen)
}

/// Prints the subject of an outcome.
struct About(OutcomeSubject);

impl About {
    fn find(installation: &Installation, run: &str) -> Result<Self, Failure> {
        let (run, _) = find_finished_run(installation, run)?;
        Ok(Self(OutcomeSubject::find(installation, &run)?))
    }

    fn show(&self, screen: &Screen) {
        if screen.is_json() {
            return;
        }
        let OutcomeSubject { report, target } = &self.0;
        screen.line(format_args!("run       {}", report.run_id));
        screen.line(format_args!("contract  {}  {}", report.contract_id, report.contract_digest));
        screen.line(format_args!("target    {}", visible_line(target)));
        if let Some(landing) = &report.landing {
            screen.line(format_args!("branch    {}", visible_line(&landing.reference)));
            screen.line(format_args!("commit    {}", visible_line(&landing.commit)));
            screen.line(format_args!("on        {}", visible_line(&landing.base)));
        }
        for change in &report.changed_files {
            let test = if report.changed_tests.contains(&change.path) {
                screen.paint(Tone::Warn, "  a test, rewritten by the engine")
            } else if report.changed_verification_files.contains(&change.path) {
                screen.paint(Tone::Warn, "  decides what verification does")
            } else {
                String::new()
            };
            screen.line(format_args!("changed   {}{test}", visible_line(&change.path.to_string())));
        }
    }

    fn done(self, outcome: Signed<Outcome>, note: &str, screen: &Screen) -> Ended {
        let OutcomeSubject { report, target } = self.0;
        if screen.is_json() {
            screen.value(&OutcomeOutput {
                schema: "herma.outcome-given/v1",
                run_id: report.run_id,
                contract_id: report.contract_id.to_string(),
                target,
                landing: report.landing,
                changed_files: report.changed_files.into_iter().map(|change| change.path).collect(),
                changed_tests: report.changed_tests,
                changed_verification_files: report.changed_verification_files,
                outcome,
                note: note.to_owned(),
            })?;
        } else {
            let word = given_word(&outcome);
            let tone = if word == OutcomeWordNow::Accepted { Tone::Good } else { Tone::Warn };
            let by = &outcome.record.operator;
            screen.line(format_args!("{} by {by}: {note}", screen.paint(tone, word.as_str())));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// An outcome as text.
pub(crate) fn in_words(outcome: &OutcomeRow) -> String {
    let word = outcome.claims.unwrap_or(outcome.state).as_str();
    let said = match (outcome.due, &outcome.operator, outcome.decided_at) {
        (Some(due), ..) if outcome.state == OutcomeWordNow::Pending => format!("{word} until {due}"),
        (Some(due), ..) => format!("{word}: it had to be given until {due}; the run proves nothing"),
        (None, Some(operator), Some(at)) => match outcome.reason.as_deref().filter(|r| !r.is_empty()) {
            Some(reason) => format!("{word} by {operator} on {at}: {}", visible_line(reason)),
            None => format!("{word} by {operator} on {at}"),
        },
        _ => word.to_owned(),
    };
    match &outcome.void {
        Some(why) if outcome.claims.is_none() => format!("{said}: {}", visible_line(why)),
        Some(why) => format!("void: {said}; this does not count: {}", visible_line(why)),
        None => said,
    }
}

impl From<SubjectError> for Failure {
    fn from(error: SubjectError) -> Self {
        match error {
            SubjectError::Report(error) => error.into(),
            SubjectError::Outcome(error) => error.into(),
        }
    }
}

impl From<OutcomeError> for Failure {
    fn from(error: OutcomeError) -> Self {
        let error = match error {
            OutcomeError::Trust(error) => return error.into(),
            error => error,
        };
        match &error {
            OutcomeError::NotRequired(_) => {
                Self::bad_input(error).hint("`herma runs` lists the runs that wait for an outcome")
            }
            OutcomeError::Final(..) => Self::blocked(error).hint("`herma show` says who gave it, and why"),
            OutcomeError::Void(run, _) => {
                let hint = format!(
                    "`herma verify {}` lists every check; an outcome.json that nobody gave can be moved out of the bundle, and what waits can be rejected",
                    run.short()
                );
                Self::blocked(error).hint(hint)
            }
            OutcomeError::TooLate(run, _) => {
                let hint = format!(
                    "take it back with `herma reject {} --reason TEXT`, then run the contract again",
                    run.short()
                );
                Self::blocked(error).hint(hint)
            }
            OutcomeError::Moved { .. } => Self::blocked(error)
                .hint("look at the branch in the target; what is there now is not herma's"),
            OutcomeError::Gone(run, _) => {
                let hint = format!(
                    "`herma reject {} --reason TEXT` closes what is left; run the contract again for a new result",
                    run.short()
                );
                Self::blocked(error).hint(hint)
            }
            OutcomeError::CheckedOut(_) => Self::blocked(error),
            OutcomeError::Broken(run, _) => {
                let hint = format!(
                    "`herma verify {}` lists every check; restore the bundle, or delete the branch in the target by hand",
                    run.short()
                );
                Self::blocked(error).hint(hint)
            }
            OutcomeError::Mismatch(run, _) => {
                let hint = format!(
                    "somebody changed `landed/{run}.json` in herma's home: restore it, or delete the branch that the report names by hand"
                );
                Self::blocked(error).hint(hint)
            }
            OutcomeError::Bundle(run, _) => {
                let hint = format!("`herma verify {}` says what is wrong with it", run.short());
                Self::internal(error).hint(hint)
            }
            OutcomeError::Unknown(..) | OutcomeError::Git(_) => Self::internal(error)
                .hint("what is left can be taken back by hand: delete the branch that the report names"),
            OutcomeError::Trust(_) => Self::internal(error),
            OutcomeError::Write(_) => Self::internal(error).hint("free space or make herma's home writable"),
        }
    }
}
