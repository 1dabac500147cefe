//! The engine on one SQLite file. SQL that only SQLite understands stays in the modules below this one.

mod admin;
mod approvals;
mod connection;
mod error;
mod events;
mod leases;
mod migrations;
mod rows;
mod runs;
mod usage;

use std::path::{Path, PathBuf};

use herma_core::approval::{Approval, ApprovalId, ApprovalRequest, Moved, Ruling};
use herma_core::contract::ContractId;
use herma_core::event::Event;
use herma_core::report::Report;
use herma_core::signed::Signed;
use herma_core::store::{
    ArtifactRow, EventRow, RunQuery, RunSummary, StoreCounts, StoreDescription, StoreError, UsageBy, UsageRow,
};
use herma_core::usage::UsageByModel;
use herma_core::{RunId, Timestamp};
use sqlx::migrate::Migrator;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use crate::copy::CopyReceiver;
use crate::engine::{Engine, StoreFuture};
use crate::tables::{Table, TableRow};
use connection::{Durability, connect, connect_to_read};

/// The store on one SQLite file, in write-ahead log mode.
pub(crate) struct SqliteEngine {
    file: PathBuf,
    /// Makes all changes but the events of runs that go on, one at a time.
    writer: Mutex<SqliteConnection>,
    /// Appends events. Opened by the first.
    events: OnceCell<Mutex<SqliteConnection>>,
    /// Reads while the writer is busy. Opened by the first such read.
    reader: OnceCell<Mutex<SqliteConnection>>,
}

impl SqliteEngine {
    /// Opens the store, and creates the file and its tables where they are missing.
    pub(crate) async fn open(file: &Path) -> Result<Self, StoreError> {
        Self::open_with(file, &migrations::migrator()).await
    }

    /// Opens the file to read it. No connection of it writes, not even when it is closed.
    pub(crate) async fn open_to_read(file: &Path) -> Result<Self, StoreError> {
        let only = || async { connect_to_read(file).await.map(Mutex::new) };
        Ok(Self {
            file: file.to_owned(),
            writer: only().await?,
            events: OnceCell::new_with(Some(only().await?)),
            reader: OnceCell::new_with(Some(only().await?)),
        })
    }

    async fn open_with(file: &Path, migrator: &Migrator) -> Result<Self, StoreError> {
        let mut writer = connect(file, Durability::Commit).await?;
        migrations::migrate(&mut writer, migrator).await?;
        Ok(Self {
            file: file.to_owned(),
            writer: Mutex::new(writer),
            events: OnceCell::new(),
            reader: OnceCell::new(),
        })
    }

    async fn writer(&self) -> MutexGuard<'_, SqliteConnection> {
        self.writer.lock().await
    }

    async fn event_writer(&self) -> Result<MutexGuard<'_, SqliteConnection>, StoreError> {
        self.opened(&self.events, Durability::Checkpoint).await
    }

    /// A connection to read with: the writer if it is free, because that is open already.
    async fn reader(&self) -> Result<MutexGuard<'_, SqliteConnection>, StoreError> {
        match self.writer.try_lock() {
            Ok(writer) => Ok(writer),
            Err(_) => self.opened(&self.reader, Durability::Commit).await,
        }
    }

    async fn opened<'a>(
        &self,
        cell: &'a OnceCell<Mutex<SqliteConnection>>,
        durability: Durability,
    ) -> Result<MutexGuard<'a, SqliteConnection>, StoreError> {
        let open = || async { connect(&self.file, durability).await.map(Mutex::new) };
        Ok(cell.get_or_try_init(open).await?.lock().await)
    }
}

impl Engine for SqliteEngine {
    fn begin_run<'a>(&'a self, run: &'a RunSummary) -> StoreFuture<'a, ()> {
        Box::pin(runs::begin(self, run))
    }

    fn finish_run<'a>(&'a self, report: &'a Report, events: &'a [Event]) -> StoreFuture<'a, ()> {
        Box::pin(runs::finish(self, report, events))
    }

    fn runs<'a>(&'a self, query: &'a RunQuery) -> StoreFuture<'a, Vec<RunSummary>> {
        Box::pin(runs::list(self, query))
    }

    fn find_runs<'a>(&'a self, part: &'a str) -> StoreFuture<'a, Vec<RunSummary>> {
        Box::pin(runs::find(self, part))
    }

    fn append_events<'a>(&'a self, events: &'a [EventRow]) -> StoreFuture<'a, ()> {
        Box::pin(events::append(self, events))
    }

    fn events_after(&self, run: RunId, after: Option<u64>, limit: u32) -> StoreFuture<'_, Vec<EventRow>> {
        Box::pin(events::after(self, run, after, limit))
    }

    fn request_approval<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        signed: Option<&'a Signed<ApprovalRequest>>,
    ) -> StoreFuture<'a, ()> {
        Box::pin(approvals::request(self, request, signed))
    }

    fn rule_on_approval<'a>(&'a self, ruling: &'a Signed<Ruling>, now: Timestamp) -> StoreFuture<'a, Moved> {
        Box::pin(approvals::rule(self, ruling, now))
    }

    fn consume_approval(&self, id: ApprovalId, run: RunId, now: Timestamp) -> StoreFuture<'_, Moved> {
        Box::pin(approvals::consume(self, id, run, now))
    }

    fn expire_approvals(&self, now: Timestamp) -> StoreFuture<'_, ()> {
        Box::pin(approvals::expire(self, now))
    }

    fn granted_approvals(&self) -> StoreFuture<'_, Vec<Approval>> {
        Box::pin(approvals::granted(self))
    }

    fn find_approvals<'a>(&'a self, part: &'a str) -> StoreFuture<'a, Vec<Approval>> {
        Box::pin(approvals::find(self, part))
    }

    fn approvals<'a>(
        &'a self,
        contract: Option<&'a ContractId>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Approval>> {
        Box::pin(approvals::list(self, contract, limit))
    }

    fn record_usage<'a>(&'a self, report: &'a Report, used: &'a UsageByModel) -> StoreFuture<'a, ()> {
        Box::pin(usage::record(self, report, used))
    }

    fn usage<'a>(&'a self, by: UsageBy, runs: Option<&'a [RunId]>) -> StoreFuture<'a, Vec<UsageRow>> {
        Box::pin(usage::sum(self, by, runs))
    }

    fn describe(&self) -> StoreFuture<'_, StoreDescription> {
        Box::pin(admin::describe(self))
    }

    fn counts(&self) -> StoreFuture<'_, StoreCounts> {
        Box::pin(admin::counts(self))
    }

    fn artifacts(&self, run: RunId) -> StoreFuture<'_, Vec<ArtifactRow>> {
        Box::pin(admin::artifacts(self, run))
    }

    fn clear_index(&self) -> StoreFuture<'_, u64> {
        Box::pin(admin::clear_index(self))
    }

    fn read_table<'a>(
        &'a self,
        table: Table,
        after: Option<&'a TableRow>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<TableRow>> {
        Box::pin(admin::read_table(self, table, after, limit))
    }

    fn import(&self, rows: CopyReceiver) -> StoreFuture<'_, ()> {
        Box::pin(admin::import(self, rows))
    }
}

#[cfg(test)]
mod tests;
