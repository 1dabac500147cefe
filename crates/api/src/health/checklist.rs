//! The checks so far, in their order.

use herma_core::health::{HealthCheck, HealthOutcome};
use herma_core::reference::Reference;
use herma_core::visible::visible_line;

/// Observes the checks.
pub trait HealthWatch {
    /// A check was made, or left out.
    fn check(&self, check: &HealthCheck);
}

/// The checks so far. After a failure nothing more is checked, where that was asked for.
pub(super) struct Checklist<'a> {
    checks: Vec<HealthCheck>,
    fail_fast: bool,
    watch: &'a dyn HealthWatch,
}

impl<'a> Checklist<'a> {
    pub(super) fn new(fail_fast: bool, watch: &'a dyn HealthWatch) -> Self {
        Self { checks: Vec::new(), fail_fast, watch }
    }

    /// Makes the checks of a group, unless an earlier failure ends them.
    pub(super) fn group(&mut self, name: &str, checks: impl FnOnce(&mut Self)) {
        let made: Result<(), std::convert::Infallible> = self.try_group(name, |list| {
            checks(list);
            Ok(())
        });
        let _ = made;
    }

    /// The same for checks that can be interrupted.
    pub(super) fn try_group<E>(
        &mut self,
        name: &str,
        checks: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.has_ended() {
            self.add(name, HealthOutcome::NotRun, "an earlier check failed", Vec::new());
            return Ok(());
        }
        checks(self)
    }

    /// Whether an earlier failure ends the checks.
    pub(super) fn has_ended(&self) -> bool {
        self.fail_fast && self.checks.iter().any(|check| check.outcome == HealthOutcome::Failed)
    }

    /// Whether the first failure ends the checks.
    pub(super) fn fails_fast(&self) -> bool {
        self.fail_fast
    }

    pub(super) fn passed(&mut self, name: impl Into<String>, detail: impl Into<String>) {
        self.add(name, HealthOutcome::Passed, detail, Vec::new());
    }

    pub(super) fn passed_by(
        &mut self,
        name: impl Into<String>,
        detail: impl Into<String>,
        evidence: Vec<Reference>,
    ) {
        self.add(name, HealthOutcome::Passed, detail, evidence);
    }

    pub(super) fn failed(&mut self, name: impl Into<String>, detail: impl Into<String>) {
        self.add(name, HealthOutcome::Failed, detail, Vec::new());
    }

    pub(super) fn not_applicable(&mut self, name: impl Into<String>, detail: impl Into<String>) {
        self.add(name, HealthOutcome::NotApplicable, detail, Vec::new());
    }

    pub(super) fn not_run(&mut self, name: impl Into<String>, detail: impl Into<String>) {
        self.add(name, HealthOutcome::NotRun, detail, Vec::new());
    }

    /// Passes where there is no problem, else fails with all of them.
    pub(super) fn judged(&mut self, name: &str, problems: &[String], good: String) {
        const SHOWN: usize = 5;
        if problems.is_empty() {
            return self.passed(name, good);
        }
        let shown: Vec<&str> = problems.iter().take(SHOWN).map(String::as_str).collect();
        let more = match problems.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        self.failed(name, format!("{}{more}", shown.join("; ")));
    }

    fn add(
        &mut self,
        name: impl Into<String>,
        outcome: HealthOutcome,
        detail: impl Into<String>,
        evidence_paths: Vec<Reference>,
    ) {
        let check =
            HealthCheck { name: name.into(), outcome, detail: visible_line(&detail.into()), evidence_paths };
        self.watch.check(&check);
        self.checks.push(check);
    }

    pub(super) fn into_checks(self) -> Vec<HealthCheck> {
        self.checks
    }
}
