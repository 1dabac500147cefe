//! A store with fixed approvals, whose next state change has a fixed result.

use std::sync::{Arc, Mutex};

use herma_core::approval::{Approval, ApprovalId, ApprovalRequest, Moved, Ruling};
use herma_core::budget::{Amount, Later, LeaseError, Leases, Limits, Scope};
use herma_core::contract::ContractId;
use herma_core::signed::Signed;
use herma_core::store::{
    ArtifactRow, EventRow, RunQuery, RunSummary, StoreCounts, StoreDescription, StoreError, UsageBy, UsageRow,
};
use herma_core::usage::UsageByModel;
use herma_core::{Event, Report, RunId, Timestamp};
use herma_store::{BlockingStore, CopyReceiver, Engine, Store, StoreFuture, Table, TableRow};

/// The approvals, newest first.
#[derive(Clone, Default)]
pub(super) struct FixedStore {
    approvals: Vec<Approval>,
    pub(super) next: Arc<Mutex<Option<Result<Moved, StoreError>>>>,
    pub(super) consumed: Arc<Mutex<Vec<(ApprovalId, RunId)>>>,
}

impl FixedStore {
    pub(super) fn with(approvals: Vec<Approval>) -> Self {
        Self { approvals, ..Self::default() }
    }

    pub(super) fn open(&self) -> BlockingStore {
        BlockingStore::over(Store::over(self.clone())).unwrap()
    }

    fn those(&self, wanted: impl Fn(&&Approval) -> bool) -> StoreFuture<'_, Vec<Approval>> {
        let found = self.approvals.iter().filter(wanted).cloned().collect();
        Box::pin(async { Ok(found) })
    }
}

/// A store with these approvals.
pub(super) fn holds(approvals: Vec<Approval>) -> BlockingStore {
    FixedStore::with(approvals).open()
}

impl Engine for FixedStore {
    fn consume_approval(&self, id: ApprovalId, run: RunId, _: Timestamp) -> StoreFuture<'_, Moved> {
        self.consumed.lock().unwrap().push((id, run));
        let next = self.next.lock().unwrap().take().unwrap();
        Box::pin(async { next })
    }

    fn expire_approvals(&self, _: Timestamp) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn find_approvals<'a>(&'a self, part: &'a str) -> StoreFuture<'a, Vec<Approval>> {
        self.those(|approval| approval.request.id.to_string() == part)
    }

    fn approvals<'a>(&'a self, contract: Option<&'a ContractId>, _: u32) -> StoreFuture<'a, Vec<Approval>> {
        self.those(|approval| {
            contract.is_none_or(|contract| approval.request.binding.contract_id == *contract)
        })
    }

    fn begin_run<'a>(&'a self, _: &'a RunSummary) -> StoreFuture<'a, ()> {
        unreachable!()
    }

    fn finish_run<'a>(&'a self, _: &'a Report, _: &'a [Event]) -> StoreFuture<'a, ()> {
        unreachable!()
    }

    fn runs<'a>(&'a self, _: &'a RunQuery) -> StoreFuture<'a, Vec<RunSummary>> {
        unreachable!()
    }

    fn find_runs<'a>(&'a self, _: &'a str) -> StoreFuture<'a, Vec<RunSummary>> {
        unreachable!()
    }

    fn append_events<'a>(&'a self, _: &'a [EventRow]) -> StoreFuture<'a, ()> {
        unreachable!()
    }

    fn events_after(&self, _: RunId, _: Option<u64>, _: u32) -> StoreFuture<'_, Vec<EventRow>> {
        unreachable!()
    }

    fn request_approval<'a>(
        &'a self,
        _: &'a ApprovalRequest,
        _: Option<&'a Signed<ApprovalRequest>>,
    ) -> StoreFuture<'a, ()> {
        unreachable!()
    }

    fn rule_on_approval<'a>(&'a self, _: &'a Signed<Ruling>, _: Timestamp) -> StoreFuture<'a, Moved> {
        unreachable!()
    }

    fn granted_approvals(&self) -> StoreFuture<'_, Vec<Approval>> {
        unreachable!()
    }

    fn record_usage<'a>(&'a self, _: &'a Report, _: &'a UsageByModel) -> StoreFuture<'a, ()> {
        unreachable!()
    }

    fn usage<'a>(&'a self, _: UsageBy, _: Option<&'a [RunId]>) -> StoreFuture<'a, Vec<UsageRow>> {
        unreachable!()
    }

    fn describe(&self) -> StoreFuture<'_, StoreDescription> {
        unreachable!()
    }

    fn counts(&self) -> StoreFuture<'_, StoreCounts> {
        unreachable!()
    }

    fn artifacts(&self, _: RunId) -> StoreFuture<'_, Vec<ArtifactRow>> {
        unreachable!()
    }

    fn clear_index(&self) -> StoreFuture<'_, u64> {
        unreachable!()
    }

    fn read_table<'a>(&'a self, _: Table, _: Option<&'a TableRow>, _: u32) -> StoreFuture<'a, Vec<TableRow>> {
        unreachable!()
    }

    fn import(&self, _: CopyReceiver) -> StoreFuture<'_, ()> {
        unreachable!()
    }
}

impl Leases for FixedStore {
    fn lease<'a>(
        &'a self,
        _: &'a Scope,
        _: &'a str,
        _: Amount,
        _: Limits,
    ) -> Later<'a, Result<Amount, LeaseError>> {
        unreachable!()
    }

    fn settle<'a>(
        &'a self,
        _: &'a Scope,
        _: &'a str,
        _: Amount,
        _: Amount,
    ) -> Later<'a, Result<(), LeaseError>> {
        unreachable!()
    }

    fn reconcile<'a>(&'a self, _: &'a Scope, _: &'a str, _: Amount) -> Later<'a, Result<(), LeaseError>> {
        unreachable!()
    }

    fn taken<'a>(&'a self, _: &'a Scope) -> Later<'a, Result<Amount, LeaseError>> {
        unreachable!()
    }
}
