//! `herma health`: one status over everything, from evidence.

use std::process::ExitCode;

use herma_api::{HealthError, HealthOrder, HealthWatch, MatrixUseError, health as check, health_of_unopened};
use herma_core::Clock as _;
use herma_core::health::{HealthCheck, HealthOutcome, HealthReport, HealthStatus};
use herma_harness::{OpenError, SystemClock};
use herma_home::HomeError;

use crate::args;
use crate::commands::matrix::RowNotes;
use crate::commands::{Ended, try_open_to_read};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::listen;
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn health(args: &args::Health, environment: &Environment, screen: &Screen) -> Ended {
    let watch = CheckLines { screen };
    let report = match try_open_to_read(environment) {
        // Without a home there is nothing whose health could be checked.
        Err(error @ OpenError::Home(HomeError::Nowhere | HomeError::Missing { .. })) => {
            return Err(error.into());
        }
        Err(error) => health_of_unopened(&error, SystemClock.now(), &watch)?,
        Ok(installation) => {
            listen(&installation.cancellation, screen)?;
            let order = HealthOrder { fail_fast: args.fail_fast, skip_matrix: args.skip_matrix };
            check(&installation, order, &watch, &RowNotes { screen })?
        }
    };
    if screen.is_json() {
        screen.value(&report)?;
    } else {
        show(&report, screen);
    }
    Ok(ExitCode::from(match report.status {
        HealthStatus::Green => 0,
        HealthStatus::Red => 1,
        HealthStatus::Incomplete => Failure::BLOCKED,
    }))
}

/// Prints each check as it is made.
struct CheckLines<'a> {
    screen: &'a Screen,
}

impl HealthWatch for CheckLines<'_> {
    fn check(&self, check: &HealthCheck) {
        if self.screen.is_json() {
            return;
        }
        let mark = match check.outcome {
            HealthOutcome::Passed => self.screen.paint(Tone::Good, "ok"),
            HealthOutcome::Failed => self.screen.paint(Tone::Bad, "FAILED"),
            HealthOutcome::NotApplicable => self.screen.paint(Tone::Dim, "-"),
            HealthOutcome::NotRun => self.screen.paint(Tone::Warn, "NOT RUN"),
        };
        self.screen.line(format_args!("  {:38} {mark}  {}", check.name, safe_line(&check.detail)));
    }
}

fn show(report: &HealthReport, screen: &Screen) {
    let status = match report.status {
        HealthStatus::Green => screen.paint(Tone::Good, "green"),
        HealthStatus::Red => screen.paint(Tone::Bad, "red"),
        HealthStatus::Incomplete => screen.paint(Tone::Warn, "incomplete"),
    };
    screen.line(format_args!("health: {status}"));
    if !report.failing.is_empty() {
        screen.line(format_args!("failing: {}", safe_line(&report.failing.join(", "))));
    }
}

impl From<HealthError> for Failure {
    fn from(error: HealthError) -> Self {
        match error {
            HealthError::Matrix(error) => MatrixUseError::into(error),
            HealthError::Store(error) => error.into(),
            other => Self::internal(other),
        }
    }
}
