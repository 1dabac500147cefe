//! The state that all connections of a proxy share.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use herma_core::{Clock, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connect::Connect;
use super::counts::{Counts, Cut};
use super::limits::Limits;
use super::service::{Mode, Options};
use crate::decision::{DecisionRecorder, EgressVerdict, ProxyDecision};
use crate::reason::{Fault, Reason};
use crate::resolver::Resolve;
use crate::rules::{Allowlist, EgressRequest, Listing, Rule};

pub(super) struct Shared {
    pub(super) limits: Limits,
    /// Whether addresses of a network of the operator's own are let through.
    pub(super) own_network: bool,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) connector: Arc<dyn Connect>,
    mode: Mode,
    clock: Arc<dyn Clock>,
    recorder: Arc<dyn DecisionRecorder>,
    /// Whether decisions are still taken. It is held while one is recorded.
    is_open: RwLock<bool>,
    allowlist: Mutex<Arc<Allowlist>>,
    learned: Mutex<BTreeSet<String>>,
    counts: Mutex<Counts>,
    tunnels: Arc<Semaphore>,
    requests: AtomicU64,
    bytes_left: AtomicU64,
    /// Whether the run asked for more bytes than were left.
    is_quota_spent: AtomicBool,
    pub(super) bytes_out: AtomicU64,
    pub(super) bytes_in: AtomicU64,
}

/// The rule by which a request is allowed.
pub(super) struct Listed {
    /// The rule, or nothing where the mode `learn` lets it through.
    pub(super) rule: Option<String>,
    /// How long it holds, where it ends.
    pub(super) until: Option<Timestamp>,
}

/// Why a request does not pass.
#[derive(Debug)]
pub(super) struct Denial {
    pub(super) verdict: EgressVerdict,
    pub(super) detail: String,
    /// The address of the denial. Recorded, and not sent to the client.
    pub(super) address: Option<SocketAddr>,
}

impl Denial {
    pub(super) fn denied(reason: Reason) -> Self {
        Self { verdict: EgressVerdict::Denied(reason), detail: String::new(), address: None }
    }

    pub(super) fn failed(fault: Fault) -> Self {
        Self { verdict: EgressVerdict::Failed(fault), detail: String::new(), address: None }
    }

    pub(super) fn because(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    pub(super) fn at(self, address: SocketAddr) -> Self {
        Self { address: Some(address), ..self }
    }
}

impl Shared {
    pub(super) fn new(options: Options) -> Self {
        let Options { allowlist, mode, limits, resolver, connector, clock, recorder, own_network } = options;
        Self {
            tunnels: Arc::new(Semaphore::new(limits.tunnels.min(Semaphore::MAX_PERMITS))),
            bytes_left: AtomicU64::new(limits.bytes),
            is_quota_spent: AtomicBool::new(false),
            limits,
            own_network,
            resolver,
            connector,
            mode,
            clock,
            recorder,
            is_open: RwLock::new(true),
            allowlist: Mutex::new(Arc::new(allowlist)),
            learned: Mutex::default(),
            counts: Mutex::default(),
            requests: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn replace(&self, allowlist: Allowlist) {
        *lock(&self.allowlist) = Arc::new(allowlist);
    }

    /// The number of the next request.
    pub(super) fn number(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Applies the list and the mode.
    pub(super) fn listed(&self, asked: &EgressRequest) -> Result<Listed, Denial> {
        let allowlist = lock(&self.allowlist).clone();
        match allowlist.decide(asked, self.now()).listing {
            Listing::Allowed { rule, until } => Ok(Listed { rule: Some(rule), until }),
            Listing::Denied(reason) if self.mode == Mode::Learn && reason.is_of_the_list() => {
                let learned = lock(&self.learned);
                let is_new = !learned.contains(&Rule::for_request(asked).to_string());
                if is_new && learned.len() >= self.limits.learned {
                    return Err(Denial::denied(Reason::LearnedQuota));
                }
                Ok(Listed { rule: None, until: None })
            }
            Listing::Denied(reason) => Err(Denial::denied(reason)),
        }
    }

    /// A permit for one tunnel.
    pub(super) fn tunnel_permit(&self) -> Result<OwnedSemaphorePermit, Denial> {
        self.tunnels.clone().try_acquire_owned().map_err(|_| {
            Denial::denied(Reason::TunnelQuota).because(format!("{} are open at once", self.limits.tunnels))
        })
    }

    /// Takes bytes from the quota of the run. Once they do not suffice, the quota is spent.
    pub(super) fn take_bytes(&self, count: usize) -> Result<(), Cut> {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let taken = self
            .bytes_left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(count))
            .is_ok();
        if taken && !self.is_quota_spent.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.is_quota_spent.store(true, Ordering::Relaxed);
        Err(Cut::Bytes)
    }

    /// Gives back bytes that were taken and did not move.
    pub(super) fn give_back_bytes(&self, count: usize) {
        self.bytes_left.fetch_add(u64::try_from(count).unwrap_or(0), Ordering::Relaxed);
    }

    pub(super) fn has_bytes(&self) -> bool {
        !self.is_quota_spent.load(Ordering::Relaxed) && self.bytes_left.load(Ordering::Relaxed) > 0
    }

    /// Records a decision before it takes effect. A request that cannot be recorded does not pass.
    pub(super) fn record(&self, decided: &ProxyDecision) -> Result<(), Denial> {
        // Bounds the record: requests past the quota are counted, and only the first of them is recorded.
        if decided.request > self.limits.requests.saturating_add(1) {
            lock(&self.counts).count(decided.verdict);
            return Ok(());
        }
        let is_open = self.is_open.read().unwrap_or_else(PoisonError::into_inner);
        if !*is_open {
            return Err(Denial::denied(Reason::Unrecorded).because("the proxy has ended"));
        }
        match self.recorder.decided(decided) {
            Ok(()) => {
                lock(&self.counts).count(decided.verdict);
                Ok(())
            }
            Err(unrecorded) => {
                lock(&self.counts).count(EgressVerdict::Denied(Reason::Unrecorded));
                Err(Denial::denied(Reason::Unrecorded).because(unrecorded.to_string()))
            }
        }
    }

    /// Whether the proxy still runs.
    pub(super) fn is_open(&self) -> bool {
        *self.is_open.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops decisions. None is recorded after it, and so no new request passes.
    pub(super) fn close(&self) {
        *self.is_open.write().unwrap_or_else(PoisonError::into_inner) = false;
    }

    /// Notes a request that the mode `learn` let through.
    pub(super) fn learn(&self, asked: &EgressRequest) {
        let mut learned = lock(&self.learned);
        if learned.len() < self.limits.learned {
            learned.insert(Rule::for_request(asked).to_string());
        }
    }

    pub(super) fn learned(&self) -> BTreeSet<String> {
        lock(&self.learned).clone()
    }

    pub(super) fn count_cut(&self, cut: Cut) {
        *lock(&self.counts).cut.entry(cut).or_default() += 1;
    }

    pub(super) fn counts(&self) -> Counts {
        // Before the counts: how a tunnel ended is counted before it gives back its place.
        let open = self.limits.tunnels.saturating_sub(self.tunnels.available_permits());
        let counts = lock(&self.counts).clone();
        Counts {
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
            open,
            ..counts
        }
    }
}

/// Locks. No update here is left half done, so a poisoned lock is as good as another.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
