//! The state of a set-up under way.

use std::sync::Arc;

use herma_api::output::{QuickstartState, QuickstartStep, QuickstartStepName};
use herma_core::CancellationToken;
use herma_core::engine::EngineName;
use herma_engines::Engine;
use herma_harness::{Installation, Settings, SystemClock};
use herma_trust::Approver;

use crate::choices::Choices;
use crate::error::QuickstartError;
use crate::person::Person;
use crate::watch::Watch;

/// A set-up under way.
pub(crate) struct Session<'a> {
    pub(crate) choices: &'a Choices,
    pub(crate) person: &'a dyn Person,
    pub(crate) watch: &'a dyn Watch,
    pub(crate) installation: Installation,
    pub(crate) engine: EngineName,
    /// The approver whose key is open, once it is.
    pub(crate) approver: Option<Approver>,
    pub(crate) steps: Vec<QuickstartStep>,
    cancellation: CancellationToken,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        choices: &'a Choices,
        (person, watch): (&'a dyn Person, &'a dyn Watch),
        installation: Installation,
        engine: EngineName,
    ) -> Self {
        let cancellation = installation.cancellation.clone();
        Self { choices, person, watch, installation, engine, approver: None, steps: Vec::new(), cancellation }
    }

    /// Opens the installation again: engines and settings are read when it is opened.
    pub(crate) fn reopen(&mut self) -> Result<(), QuickstartError> {
        let settings: Settings = self.installation.settings().clone();
        self.installation = Installation::open(settings, Arc::new(SystemClock))?;
        self.installation.cancellation = self.cancellation.clone();
        Ok(())
    }

    /// The engine that is set up.
    pub(crate) fn adapter(&self) -> Result<&dyn Engine, QuickstartError> {
        Ok(herma_api::find_engine(&self.installation, &self.engine)?)
    }

    /// Stops between two steps once a signal came.
    pub(crate) fn check_cancelled(&self) -> Result<(), QuickstartError> {
        self.cancellation.reason().map_or(Ok(()), |reason| Err(QuickstartError::Cancelled(reason)))
    }

    /// Reports a step.
    pub(crate) fn done(
        &mut self,
        step: QuickstartStepName,
        state: QuickstartState,
        detail: Vec<String>,
        command: Option<String>,
    ) {
        let step = QuickstartStep { step, state, detail, command };
        self.watch.step_done(&step);
        self.steps.push(step);
    }

    /// The flag of the approver, if one was named.
    pub(crate) fn approver_flag(&self) -> String {
        self.choices.approver.as_ref().map(|name| format!(" --approver {name}")).unwrap_or_default()
    }
}
