//! The interface of the store, which every engine implements.

use std::pin::Pin;

use herma_core::approval::{Approval, ApprovalId, ApprovalRequest, Moved, Ruling};
use herma_core::budget::Leases;
use herma_core::contract::ContractId;
use herma_core::event::Event;
use herma_core::report::Report;
use herma_core::signed::Signed;
use herma_core::store::{
    ArtifactRow, EventRow, RunQuery, RunSummary, StoreCounts, StoreDescription, StoreError, UsageBy, UsageRow,
};
use herma_core::usage::UsageByModel;
use herma_core::{RunId, Timestamp};

use crate::copy::CopyReceiver;
use crate::tables::{Table, TableRow};

/// A future that any task can wait for.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The result of an operation of the store.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A database that holds the store. Several processes, and with some engines several machines, share one.
///
/// Each method is one transaction: it is done as a whole or not at all, also if its future is dropped. It works on every
/// tokio runtime that has timers.
pub trait Engine: Leases {
    /// Records a run that is about to start. A second call changes nothing.
    fn begin_run<'a>(&'a self, run: &'a RunSummary) -> StoreFuture<'a, ()>;

    /// Records the end of a run with its artifacts and all its events. A second call changes nothing.
    ///
    /// The events are those of the bundle, which are the truth: missing ones are added, others are replaced or removed.
    fn finish_run<'a>(&'a self, report: &'a Report, events: &'a [Event]) -> StoreFuture<'a, ()>;

    /// Lists runs, the last recorded first: a clock that was ahead makes no run the newest for long.
    fn runs<'a>(&'a self, query: &'a RunQuery) -> StoreFuture<'a, Vec<RunSummary>>;

    /// The runs whose name starts or ends with `part`, at most two: one is a hit, two are ambiguous.
    fn find_runs<'a>(&'a self, part: &'a str) -> StoreFuture<'a, Vec<RunSummary>>;

    /// Appends events of runs that go on. A row that is there stays as it is. The bundle is durable, these rows need not be.
    fn append_events<'a>(&'a self, events: &'a [EventRow]) -> StoreFuture<'a, ()>;

    /// The events of a run after number `after`, or from the first on, in their order and without gaps, at most `limit`.
    fn events_after(&self, run: RunId, after: Option<u64>, limit: u32) -> StoreFuture<'_, Vec<EventRow>>;

    /// Records a request for an approval, with the requester's signature if there is one. The id must be new.
    fn request_approval<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        signed: Option<&'a Signed<ApprovalRequest>>,
    ) -> StoreFuture<'a, ()>;

    /// Records an approver's ruling: from `requested` to `granted` or `denied`, unless it has expired.
    fn rule_on_approval<'a>(&'a self, ruling: &'a Signed<Ruling>, now: Timestamp) -> StoreFuture<'a, Moved>;

    /// Uses an approval for a run: from `granted` to `consumed`, unless it has expired. Durable when this returns. Of several
    /// concurrent callers, one gets [`Moved::Done`].
    fn consume_approval(&self, id: ApprovalId, run: RunId, now: Timestamp) -> StoreFuture<'_, Moved>;

    /// Moves approvals that were not used in time to the final state `expired`: a clock that is set back revives none.
    fn expire_approvals(&self, now: Timestamp) -> StoreFuture<'_, ()>;

    /// The approvals in the state `granted`.
    fn granted_approvals(&self) -> StoreFuture<'_, Vec<Approval>>;

    /// The approvals whose name starts or ends with `part`, at most two: one is a hit, two are ambiguous.
    fn find_approvals<'a>(&'a self, part: &'a str) -> StoreFuture<'a, Vec<Approval>>;

    /// The approvals of a contract, or of all, the last recorded first.
    fn approvals<'a>(
        &'a self,
        contract: Option<&'a ContractId>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Approval>>;

    /// Records the usage of a run by day and model. A second call replaces the first.
    fn record_usage<'a>(&'a self, report: &'a Report, used: &'a UsageByModel) -> StoreFuture<'a, ()>;

    /// The usage of these runs, or of all, summed by this key.
    fn usage<'a>(&'a self, by: UsageBy, runs: Option<&'a [RunId]>) -> StoreFuture<'a, Vec<UsageRow>>;

    /// The database that holds the store.
    fn describe(&self) -> StoreFuture<'_, StoreDescription>;

    /// The numbers of its rows.
    fn counts(&self) -> StoreFuture<'_, StoreCounts>;

    /// The artifacts of a run, by path.
    fn artifacts(&self, run: RunId) -> StoreFuture<'_, Vec<ArtifactRow>>;

    /// Forgets all runs with their events, artifacts and usage, and moves every approval that is not final to `expired`.
    /// Returns how many those were. Consumed approvals and budget leases stay.
    fn clear_index(&self) -> StoreFuture<'_, u64>;

    /// The rows of a table after the one with this key, in the order of their keys, at most `limit`.
    fn read_table<'a>(
        &'a self,
        table: Table,
        after: Option<&'a TableRow>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<TableRow>>;

    /// Inserts all rows of a copy in one transaction. Without its end nothing is inserted.
    fn import(&self, rows: CopyReceiver) -> StoreFuture<'_, ()>;
}
