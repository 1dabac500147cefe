//! Starts the proxy, and holds it.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use herma_core::Clock;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};

use super::connect::{Connect, Direct};
use super::counts::Counts;
use super::limits::Limits;
use super::listener::{self, Listen, Role};
use super::metrics;
use super::shared::Shared;
use crate::decision::DecisionRecorder;
use crate::resolver::{Resolve, System};
use crate::rules::Allowlist;

/// Connections that have no tunnel yet, beside those that have.
const WAITING: usize = 64;
/// Operators' connections at once.
const MAX_OPERATORS: usize = 8;
/// How long a shutdown waits for tasks that cannot be cancelled: the system's resolver.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(200);

/// The treatment of hosts that are not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// They are denied.
    #[default]
    Strict,
    /// They pass and are noted. Every other check holds.
    Learn,
}

/// The configuration of a proxy.
pub struct Options {
    /// The hosts that may be reached.
    pub allowlist: Allowlist,
    /// The treatment of hosts that are not listed.
    pub mode: Mode,
    /// The limits.
    pub limits: Limits,
    /// Resolves names.
    pub resolver: Arc<dyn Resolve>,
    /// Connects to checked addresses.
    pub connector: Arc<dyn Connect>,
    /// The time, by which grants end.
    pub clock: Arc<dyn Clock>,
    /// Records every decision.
    pub recorder: Arc<dyn DecisionRecorder>,
    /// Whether listed hosts may be in a private network of the operator. Never for a run: only where the operator alone
    /// chooses the requests.
    pub own_network: bool,
}

impl Options {
    /// Strict, with the usual limits, the system's resolver and the system's network.
    #[must_use]
    pub fn new(allowlist: Allowlist, clock: Arc<dyn Clock>, recorder: Arc<dyn DecisionRecorder>) -> Self {
        Self {
            allowlist,
            mode: Mode::Strict,
            limits: Limits::default(),
            resolver: Arc::new(System::default()),
            connector: Arc::new(Direct),
            clock,
            recorder,
            own_network: false,
        }
    }
}

/// The proxy as a service.
#[derive(Debug)]
pub struct Service;

/// A proxy that runs. Dropping it ends it and every tunnel.
pub struct Handle {
    runtime: Option<Runtime>,
    shared: Arc<Shared>,
    permits: Arc<Semaphore>,
    ending: watch::Sender<bool>,
}

/// The totals of a proxy that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyTotals {
    /// Its counters.
    pub counts: Counts,
    /// The rules that would have allowed what the mode `learn` let through.
    pub learned: BTreeSet<String>,
}

/// The proxy cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its threads could not be started.
    #[error("the threads of the egress proxy could not be started: {0}")]
    Threads(io::Error),
    /// It cannot listen.
    #[error("the egress proxy cannot listen on {listen}: {source}; stop what listens there")]
    Listen {
        /// Where.
        listen: Listen,
        /// The error of the system.
        source: io::Error,
    },
}

impl Service {
    /// Starts a proxy. It listens nowhere until [`Handle::listen`].
    pub fn start(options: Options) -> Result<Handle, StartError> {
        let limits = &options.limits;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(limits.threads.max(1))
            .thread_name("herma-egress")
            .enable_all()
            .build()
            .map_err(StartError::Threads)?;
        let connections = limits.tunnels.saturating_add(WAITING).min(Semaphore::MAX_PERMITS);
        Ok(Handle {
            runtime: Some(runtime),
            shared: Arc::new(Shared::new(options)),
            permits: Arc::new(Semaphore::new(connections)),
            ending: watch::Sender::new(false),
        })
    }
}

impl Handle {
    /// Listens. Gives where, with the port that the system chose. Not to be called from an asynchronous task.
    pub fn listen(&self, listen: &Listen) -> Result<Listen, StartError> {
        self.listen_for(listen, Role::Client, self.permits.clone())
    }

    /// Listens for the operator, who reads the metrics there (`GET /metrics`). Apart from the clients: a run has no business
    /// with the counters. Not to be called from an asynchronous task.
    pub fn listen_for_operator(&self, listen: &Listen) -> Result<Listen, StartError> {
        // Permits of their own: operators are served also when clients hold all of theirs.
        self.listen_for(listen, Role::Operator, Arc::new(Semaphore::new(MAX_OPERATORS)))
    }

    fn listen_for(&self, listen: &Listen, role: Role, permits: Arc<Semaphore>) -> Result<Listen, StartError> {
        let failed = |source| StartError::Listen { listen: listen.clone(), source };
        let Some(runtime) = &self.runtime else {
            return Err(failed(io::Error::other("the proxy has ended")));
        };
        let (listener, bound) = runtime.block_on(listener::bind(listen)).map_err(failed)?;
        runtime.spawn(listener::serve(listener, self.shared.clone(), permits, self.ending.subscribe(), role));
        Ok(bound)
    }

    /// Takes another list. Tunnels that are open stay so.
    pub fn replace(&self, allowlist: Allowlist) {
        self.shared.replace(allowlist);
    }

    /// The counters so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.counts()
    }

    /// The same as text for Prometheus.
    #[must_use]
    pub fn metrics(&self) -> String {
        metrics::text(&self.shared.counts())
    }

    /// The rules that would have allowed what the mode `learn` let through. A proposal: nothing here takes it over.
    #[must_use]
    pub fn learned(&self) -> BTreeSet<String> {
        self.shared.learned()
    }

    /// Ends every tunnel and the proxy. After it nothing passes and no decision is recorded. Not to be called from an
    /// asynchronous task.
    #[must_use]
    pub fn end(mut self) -> ProxyTotals {
        self.stop(SHUTDOWN_TIMEOUT);
        ProxyTotals { counts: self.shared.counts(), learned: self.shared.learned() }
    }

    fn stop(&mut self, within: Duration) {
        self.shared.close();
        self.ending.send_replace(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(within);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.ending.send_replace(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
