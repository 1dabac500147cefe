//! The engine on a database of a PostgreSQL server. SQL that only PostgreSQL understands stays in the modules below this one.
//!
//! Its sockets belong to a runtime of its own, because a future of the interface may be polled by any.

mod admin;
mod approvals;
mod call;
mod connection;
mod error;
mod events;
mod leases;
mod migrations;
mod rows;
mod runs;
mod usage;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use herma_core::approval::{Approval, ApprovalId, ApprovalRequest, Moved, Ruling};
use herma_core::contract::ContractId;
use herma_core::event::Event;
use herma_core::report::Report;
use herma_core::signed::Signed;
use herma_core::store::{
    ArtifactRow, EventRow, RunQuery, RunSummary, StoreCounts, StoreDescription, StoreError, StoreErrorKind,
    UsageBy, UsageRow,
};
use herma_core::usage::UsageByModel;
use herma_core::{RunId, Timestamp};
use sqlx::Connection as _;
use sqlx::migrate::Migrator;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::copy::CopyReceiver;
use crate::engine::{Engine, StoreFuture};
use crate::location::PostgresLocation;
use crate::tables::{Table, TableRow};
use call::Caller;
use connection::{Access, Server};

/// The store in a database of a PostgreSQL server.
pub(crate) struct PostgresEngine {
    caller: Caller,
    server: Server,
    /// Tells the sessions of this process from those of others.
    instance: i32,
    _runtime: OwnRuntime,
}

/// A runtime that may be dropped inside of another one: it does not wait for its tasks.
struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
    fn start() -> Result<(Self, Handle), StoreError> {
        let built =
            Builder::new_multi_thread().worker_threads(1).thread_name("postgres").enable_all().build();
        let runtime =
            built.map_err(|e| StoreError::new(StoreErrorKind::Unavailable, "start a runtime", e))?;
        let handle = runtime.handle().clone();
        Ok((Self(Some(runtime)), handle))
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl PostgresEngine {
    /// Connects, and creates the tables or brings them up to date.
    pub(crate) async fn open(location: &PostgresLocation) -> Result<Self, StoreError> {
        Self::open_with(location, Some(migrations::migrator())).await
    }

    /// Connects to read. The tables must be there, and none is changed.
    pub(crate) async fn open_to_read(location: &PostgresLocation) -> Result<Self, StoreError> {
        Self::open_with(location, None).await
    }

    /// With no migrations, only to read.
    async fn open_with(location: &PostgresLocation, migrator: Option<Migrator>) -> Result<Self, StoreError> {
        let access = if migrator.is_some() { Access::Change } else { Access::Read };
        let (options, place, instance) = (connection::options(location), location.to_string(), instance());
        let (runtime, handle) = OwnRuntime::start()?;
        let opening = {
            let (options, place) = (options.clone(), place.clone());
            handle.spawn(async move {
                let (mut connection, server) = connection::connect(&options, &place).await?;
                if let Some(migrator) = migrator {
                    migrations::migrate(&mut connection, &migrator, &place).await?;
                }
                // It is closed either way.
                let _ = connection.close().await;
                Ok((connection::pool(options, instance, access), server))
            })
        };
        let panicked = |error| StoreError::new(StoreErrorKind::Internal, "open", error);
        let (pool, server) = opening.await.map_err(panicked)??;
        Ok(Self { caller: Caller::new(handle, pool, options, place), server, instance, _runtime: runtime })
    }
}

/// A number that no other process is likely to have.
fn instance() -> i32 {
    let bytes = RandomState::new().build_hasher().finish().to_le_bytes();
    i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

impl Engine for PostgresEngine {
    fn begin_run<'a>(&'a self, run: &'a RunSummary) -> StoreFuture<'a, ()> {
        Box::pin(runs::begin(&self.caller, run))
    }

    fn finish_run<'a>(&'a self, report: &'a Report, events: &'a [Event]) -> StoreFuture<'a, ()> {
        Box::pin(runs::finish(&self.caller, report, events))
    }

    fn runs<'a>(&'a self, query: &'a RunQuery) -> StoreFuture<'a, Vec<RunSummary>> {
        Box::pin(runs::list(&self.caller, query))
    }

    fn find_runs<'a>(&'a self, part: &'a str) -> StoreFuture<'a, Vec<RunSummary>> {
        Box::pin(runs::find(&self.caller, part))
    }

    fn append_events<'a>(&'a self, events: &'a [EventRow]) -> StoreFuture<'a, ()> {
        Box::pin(events::append(&self.caller, events))
    }

    fn events_after(&self, run: RunId, after: Option<u64>, limit: u32) -> StoreFuture<'_, Vec<EventRow>> {
        Box::pin(events::after(&self.caller, run, after, limit))
    }

    fn request_approval<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        signed: Option<&'a Signed<ApprovalRequest>>,
    ) -> StoreFuture<'a, ()> {
        Box::pin(approvals::request(&self.caller, request, signed))
    }

    fn rule_on_approval<'a>(&'a self, ruling: &'a Signed<Ruling>, now: Timestamp) -> StoreFuture<'a, Moved> {
        Box::pin(approvals::rule(&self.caller, ruling, now))
    }

    fn consume_approval(&self, id: ApprovalId, run: RunId, now: Timestamp) -> StoreFuture<'_, Moved> {
        Box::pin(approvals::consume(&self.caller, id, run, now))
    }

    fn expire_approvals(&self, now: Timestamp) -> StoreFuture<'_, ()> {
        Box::pin(approvals::expire(&self.caller, now))
    }

    fn granted_approvals(&self) -> StoreFuture<'_, Vec<Approval>> {
        Box::pin(approvals::granted(&self.caller))
    }

    fn find_approvals<'a>(&'a self, part: &'a str) -> StoreFuture<'a, Vec<Approval>> {
        Box::pin(approvals::find(&self.caller, part))
    }

    fn approvals<'a>(
        &'a self,
        contract: Option<&'a ContractId>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Approval>> {
        Box::pin(approvals::list(&self.caller, contract, limit))
    }

    fn record_usage<'a>(&'a self, report: &'a Report, used: &'a UsageByModel) -> StoreFuture<'a, ()> {
        Box::pin(usage::record(&self.caller, report, used))
    }

    fn usage<'a>(&'a self, by: UsageBy, runs: Option<&'a [RunId]>) -> StoreFuture<'a, Vec<UsageRow>> {
        Box::pin(usage::sum(&self.caller, by, runs))
    }

    fn describe(&self) -> StoreFuture<'_, StoreDescription> {
        Box::pin(admin::describe(self))
    }

    fn counts(&self) -> StoreFuture<'_, StoreCounts> {
        Box::pin(admin::counts(&self.caller))
    }

    fn artifacts(&self, run: RunId) -> StoreFuture<'_, Vec<ArtifactRow>> {
        Box::pin(admin::artifacts(&self.caller, run))
    }

    fn clear_index(&self) -> StoreFuture<'_, u64> {
        Box::pin(admin::clear_index(&self.caller))
    }

    fn read_table<'a>(
        &'a self,
        table: Table,
        after: Option<&'a TableRow>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<TableRow>> {
        Box::pin(admin::read_table(&self.caller, table, after, limit))
    }

    fn import(&self, rows: CopyReceiver) -> StoreFuture<'_, ()> {
        Box::pin(admin::import(&self.caller, rows))
    }
}
