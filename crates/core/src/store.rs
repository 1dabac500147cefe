//! What the store of runs can do. One implementation now, on SQLite; what it holds can be rebuilt from the bundles.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocker::Blocker;
use crate::contract::ContractId;
use crate::digest::Digest;
use crate::engine::{DestinationKind, EngineName};
use crate::event::Event;
use crate::id::RunId;
use crate::report::Report;
use crate::stage::Stage;
use crate::usage::{Usage, UsageByModel};
use crate::verdict::Status;

/// The store could not do it.
#[derive(Debug, thiserror::Error)]
#[error("the store could not {doing}: {cause}")]
pub struct StoreError {
    /// What was tried.
    pub doing: &'static str,
    /// What went wrong.
    pub cause: String,
}

/// A run as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSummary {
    /// The run's name.
    pub run_id: RunId,
    /// The contract's name.
    pub contract_id: ContractId,
    /// The contract's digest.
    pub contract_digest: Digest,
    /// The engine.
    pub engine: EngineName,
    /// Where it ran.
    pub destination: DestinationKind,
    /// The contract's stage.
    pub stage: Stage,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended; none while it is under way.
    pub finished_at: Option<Timestamp>,
    /// Its verdict; none while it is under way.
    pub status: Option<Status>,
    /// Why it is not a pass.
    pub blockers: Vec<Blocker>,
}

/// Which runs to list, those first that were recorded last.
#[derive(Clone, Debug)]
pub struct RunQuery {
    /// At most this many.
    pub limit: u32,
    /// Only those that were recorded before this one; none where it is not known.
    pub before: Option<RunId>,
    /// Only those with this verdict.
    pub status: Option<Status>,
}

/// The store of runs.
pub trait Store: Send + Sync {
    /// Records a run that is about to start.
    fn begin(&self, run: &RunSummary) -> Result<(), StoreError>;

    /// Records how a run ended, with its events and artifacts, in one transaction. Doing it twice changes nothing.
    fn finish(&self, report: &Report, events: &[Event]) -> Result<(), StoreError>;

    /// Lists runs, those first that were recorded last: a clock that was ahead makes no run the newest for long.
    fn runs(&self, query: &RunQuery) -> Result<Vec<RunSummary>, StoreError>;

    /// The runs whose name starts or ends with `part`, at most two: one is a hit, two are ambiguous.
    fn find(&self, part: &str) -> Result<Vec<RunSummary>, StoreError>;
}

/// What to add usage up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageBy {
    /// Each run, newest first.
    Run,
    /// Each engine.
    Engine,
    /// Each model, as `upstream/model`.
    Model,
    /// Each day in UTC, newest first.
    Day,
}

/// What was used by one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageRow {
    /// Which run, engine, model or day.
    pub key: String,
    /// What was used.
    pub usage: Usage,
}

/// What runs used of models. It can be rebuilt from the bundles.
pub trait UsageStore: Send + Sync {
    /// Records what a run used. Doing it twice changes nothing.
    fn record_usage(&self, report: &Report, used: &UsageByModel) -> Result<(), StoreError>;

    /// What all runs used, added up.
    fn usage(&self, by: UsageBy) -> Result<Vec<UsageRow>, StoreError>;
}
