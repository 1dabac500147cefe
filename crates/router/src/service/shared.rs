//! The state that all requests of a router share.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use herma_core::Clock;

use super::audit_writer::AuditWriter;
use super::budget_group::BudgetGroup;
use super::metrics::Metrics;
use super::runs::{Run, Runs};
use crate::budget::{Amount, Ask, Budgets, Day, Exhausted, LeaseError, Limits, Reserved, Scope};
use crate::config::RequestLimits;
use crate::grant::Grant;
use crate::upstream::Upstream;

/// The upstreams by name.
pub(super) type Upstreams = HashMap<Arc<str>, Arc<Upstream>>;

/// The state that all requests of a router share.
pub(super) struct Shared {
    pub(super) runs: Runs,
    pub(super) budgets: Budgets,
    pub(super) budget_group: BudgetGroup,
    pub(super) metrics: Metrics,
    pub(super) audit_writer: AuditWriter,
    pub(super) clock: Arc<dyn Clock>,
    settings: RwLock<Arc<Settings>>,
    upstreams: RwLock<Arc<Upstreams>>,
    day: RwLock<Option<(Day, Scope)>>,
    /// The spending of former clients.
    earlier: BTreeMap<Day, Amount>,
    /// Held while a shared budget is opened.
    opening: tokio::sync::Mutex<()>,
}

/// The settings that a reload can change, besides the upstreams.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) limits: RequestLimits,
    pub(super) per_day: Limits,
    pub(super) per_engine: BTreeMap<String, Limits>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(
        settings: Settings,
        upstreams: Upstreams,
        budgets: Budgets,
        budget_group: BudgetGroup,
        earlier: BTreeMap<Day, Amount>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            runs: Runs::default(),
            budgets,
            budget_group,
            metrics: Metrics::default(),
            audit_writer: AuditWriter::default(),
            clock,
            settings: RwLock::new(Arc::new(settings)),
            upstreams: RwLock::new(Arc::new(upstreams)),
            day: RwLock::default(),
            earlier,
            opening: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn settings(&self) -> Arc<Settings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn upstreams(&self) -> Arc<Upstreams> {
        self.upstreams.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Applies other settings and upstreams. In-flight calls keep theirs.
    pub(super) fn change(&self, settings: Settings, upstreams: Upstreams) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        *self.upstreams.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(upstreams);
        self.change_limits();
    }

    /// The budgets that a run's calls count against. Shared ones are opened when first needed, with their recorded
    /// spending.
    pub(super) async fn scopes(&self, run: &Run, grant: &Grant) -> Result<[Option<Scope>; 3], LeaseError> {
        let day = self.day().await?;
        let engine = grant.engine.clone().map(Scope::Engine);
        if let Some(engine) = engine.as_ref().filter(|_| !run.is_engine_open()) {
            self.open_engine(engine);
            run.set_engine_open();
        }
        Ok([Some(Scope::Run(run.name.clone())), engine, Some(day)])
    }

    /// Reserves the most that a call can cost. Ended calls are settled before one is refused or lowered.
    pub(super) async fn reserve(&self, scopes: &[Scope], ask: Ask) -> Result<Reserved, Exhausted> {
        match self.budgets.reserve(scopes, ask).await {
            Ok(reserved) if reserved.output == ask.output => return Ok(reserved),
            Ok(lowered) => self.budgets.release(lowered.reservation),
            Err(_) => {}
        }
        self.budget_group.settle_ended();
        self.budgets.reserve(scopes, ask).await
    }

    async fn day(&self) -> Result<Scope, LeaseError> {
        let today = Day::of(self.clock.now());
        let known =
            |day: &Option<(Day, Scope)>| day.clone().filter(|(day, _)| *day == today).map(|(_, scope)| scope);
        if let Some(scope) = known(&self.day.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(scope);
        }
        let _one_at_a_time = self.opening.lock().await;
        if let Some(scope) = known(&self.day.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(scope);
        }
        let scope = Scope::from(today);
        let before = self.earlier.get(&today).copied().unwrap_or_default();
        let spent = self.runs.all().iter().fold(before, |spent, run| {
            spent.plus(run.audit.sums().by_day.get(&today).copied().unwrap_or_default())
        });
        self.budgets.recover(scope.clone(), self.settings().per_day, spent).await?;
        let yesterday =
            self.day.write().unwrap_or_else(PoisonError::into_inner).replace((today, scope.clone()));
        if let Some((_, yesterday)) = yesterday {
            self.budgets.retire(&yesterday);
        }
        Ok(scope)
    }

    /// Opens the budget of an engine. A lease that an earlier process of this router did not return stays charged: the runs
    /// of that engine are unknown, and too much is safer than too little.
    fn open_engine(&self, engine: &Scope) {
        let Scope::Engine(name) = engine else { return };
        let limits = self.settings().per_engine.get(&**name).copied().unwrap_or_default();
        self.budgets.open(engine.clone(), limits, Amount::default());
    }

    /// Applies the new limits to open shared budgets.
    fn change_limits(&self) {
        let settings = self.settings();
        for budget in self.budgets.snapshot() {
            let limits = match &budget.scope {
                Scope::Run(_) => continue,
                Scope::Engine(name) => settings.per_engine.get(&**name).copied().unwrap_or_default(),
                Scope::Day(_) => settings.per_day,
            };
            self.budgets.open(budget.scope, limits, Amount::default());
        }
    }
}
