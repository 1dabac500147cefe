//! `herma matrix`: brings every row of the failure matrix about on `fake`.

use std::process::ExitCode;

use herma_api::{MatrixUseError, matrix as run};
use herma_core::matrix::MatrixReport;
use herma_ladder::{MatrixError, MatrixWatch};

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::listen;
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn matrix(args: &args::Matrix, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    listen(&installation.cancellation, screen)?;
    let report = run(&installation, &args.rows, args.output.as_deref(), &RowNotes { screen })?;
    if screen.is_json() {
        screen.value(&report)?;
    } else {
        show(&report, screen);
    }
    Ok(ExitCode::from(u8::from(!report.held)))
}

/// Notes each row as it ends.
pub(crate) struct RowNotes<'a> {
    pub(crate) screen: &'a Screen,
}

impl MatrixWatch for RowNotes<'_> {
    fn row(&self, done: usize, total: usize, name: &str, problems: &[String]) {
        if self.screen.is_json() {
            return;
        }
        let (tone, mark) = if problems.is_empty() { (Tone::Good, "ok") } else { (Tone::Bad, "BROKEN") };
        let mark = self.screen.paint(tone, mark);
        self.screen.note(format_args!("  {done:2}/{total}  {name:28} {mark}"));
    }
}

fn show(report: &MatrixReport, screen: &Screen) {
    let rows = report.rows.iter().map(|row| (row.blocker.as_str(), &row.problems));
    let cases = report.cases.iter().map(|case| (case.name.as_str(), &case.problems));
    for (name, problems) in rows.chain(cases) {
        for problem in problems {
            let mark = screen.paint(Tone::Bad, "BROKEN");
            screen.line(format_args!("{mark}  {name}: {}", safe_line(problem)));
        }
    }
    let held = report.rows.iter().filter(|row| row.held).count();
    let passed = report.cases.iter().filter(|case| case.held).count();
    screen.line(format_args!(
        "{held} of {} rows ended as the table has them; {passed} of {} cases passed that must pass.",
        report.rows.len(),
        report.cases.len()
    ));
    if report.partial {
        screen.line("Only some rows were run, so nothing was recorded.");
    } else {
        screen.line(format_args!("record: record:matrix/{}", report.id));
    }
}

impl From<MatrixUseError> for Failure {
    fn from(error: MatrixUseError) -> Self {
        match error {
            MatrixUseError::Run(error @ MatrixError::Interrupted(_)) => {
                Self::blocked(error).hint("run it again; a matrix that was not completed is not recorded")
            }
            MatrixUseError::Directory(error) => error.into(),
            other => Self::internal(other),
        }
    }
}
