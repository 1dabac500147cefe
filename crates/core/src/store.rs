//! Rows, queries and errors of the store. The interface itself is `herma_store::Store`.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocker::Blocker;
use crate::contract::ContractId;
use crate::digest::Digest;
use crate::engine::{DestinationKind, EngineName};
use crate::event::Event;
use crate::id::RunId;
use crate::stage::Stage;
use crate::usage::Usage;
use crate::verdict::Status;

pub use crate::store_error::{StoreError, StoreErrorKind};

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
    /// The destination.
    pub destination: DestinationKind,
    /// The contract's stage.
    pub stage: Stage,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended; none while it is in progress.
    pub finished_at: Option<Timestamp>,
    /// Its verdict; none while it is in progress.
    pub status: Option<Status>,
    /// The reasons against a pass.
    pub blockers: Vec<Blocker>,
}

/// The runs to list, the last recorded first.
#[derive(Clone, Debug)]
pub struct RunQuery {
    /// At most this many.
    pub limit: u32,
    /// Only those that were recorded before this one; no run if the store does not have it.
    pub before: Option<RunId>,
    /// Only those with this verdict.
    pub status: Option<Status>,
}

/// One event in the store: the line of `events.jsonl` and its place in the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventRow {
    /// The run.
    pub run_id: RunId,
    /// 0 for the run's first event, then one more for each.
    pub seq: u64,
    /// The type of the event. Another version may have types that this one does not know.
    #[serde(rename = "type")]
    pub kind: String,
    /// The line, byte for byte, without its newline.
    pub line: String,
}

impl EventRow {
    /// The row of an event. The line is canonical, as in the file.
    pub fn of(event: &Event) -> serde_json::Result<Self> {
        let line = serde_json_canonicalizer::to_string(event)?;
        Ok(Self { run_id: event.run_id, seq: event.seq, kind: event.kind.as_str().to_owned(), line })
    }

    /// The event that the line is.
    pub fn event(&self) -> serde_json::Result<Event> {
        serde_json::from_str(&self.line)
    }
}

/// The database that holds a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreDescription {
    /// `sqlite` or `postgresql`.
    pub engine: String,
    /// The version of the engine.
    pub version: String,
    /// The number of the last migration of its tables.
    pub schema_version: u64,
    /// Where it is, as a URL without a password.
    pub location: String,
    /// How many other processes are connected to it, as far as the engine knows; SQLite does not.
    pub other_processes: u64,
}

/// The numbers of rows in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreCounts {
    /// Runs.
    pub runs: u64,
    /// Events of runs.
    pub events: u64,
    /// Artifacts of runs.
    pub artifacts: u64,
    /// Approvals in every state.
    pub approvals: u64,
    /// Rows of the usage of models.
    pub usage: u64,
    /// Holders of budget leases.
    pub leases: u64,
}

/// The digest of one artifact of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactRow {
    /// The file in the bundle.
    pub path: String,
    /// The digest of its content.
    pub sha256: Digest,
}

/// The key by which usage is summed.
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

/// The usage of one run, engine, model or day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageRow {
    /// The run, engine, model or day.
    pub key: String,
    /// The sum of the agents' calls.
    pub usage: Usage,
    /// The sum of herma's own calls, by which it asks before a run how the model answers.
    pub probes: Usage,
    /// How many of all these calls were charged tokens and no money: the cost of them is unknown.
    pub unpriced: u64,
}
