//! Starts the service, and the handle that controls it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use herma_core::Clock;
use herma_core::secret::Secret;
use herma_net::Listener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::{Mutex, Semaphore, watch};

use super::admin::{self, State};
use super::audit_writer;
use super::budget_group::{BudgetGroup, ParentBudget};
use super::connection;
use super::runs::{Refusals, Run, new_token};
use super::shared::{Settings, Shared, Upstreams};
use super::threads::Threads;
use crate::audit::{Audit, AuditError, Sums};
use crate::budget::{Amount, Budgets, Day, Leases, Limits, ParentLedger, Scope};
use crate::config::{Address, RequestLimits};
use crate::grant::Grant;
use crate::upstream::Upstream;

/// How often the audit logs are synced to disk.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// The configuration of a router.
pub struct Options {
    /// The limits of every request.
    pub limits: RequestLimits,
    /// The upstreams.
    pub upstreams: Vec<Upstream>,
    /// The budget of each day.
    pub per_day: Limits,
    /// The budgets of engines. One that is not named has no limit of its own.
    pub per_engine: BTreeMap<String, Limits>,
    /// Leases the budgets that several processes share.
    pub leases: Arc<dyn Leases>,
    /// Unique id of the lease holder. A router that resumes a dead router's audit log reuses its id.
    pub holder: String,
    /// The holder's spending on each day, beyond the records of the admitted runs.
    pub earlier: BTreeMap<Day, Amount>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// The router as a service.
#[derive(Debug)]
pub struct Service;

/// A running router. Dropping it stops it at once; [`Handle::drain`] lets calls end first.
pub struct Handle {
    threads: Option<Threads>,
    shared: Arc<Shared>,
    room: Arc<Semaphore>,
    draining: watch::Sender<bool>,
    signals: Mutex<Option<Signals>>,
}

/// Signal streams. Opened once and kept, so that no signal is lost between two waits.
struct Signals {
    term: unix::Signal,
    interrupt: unix::Signal,
    hang_up: unix::Signal,
}

/// A reloaded configuration.
pub struct Reload {
    /// The limits of every request.
    pub limits: RequestLimits,
    /// The upstreams from now on.
    pub upstreams: Vec<Upstream>,
    /// The budget of each day.
    pub per_day: Limits,
    /// The budgets of engines.
    pub per_engine: BTreeMap<String, Limits>,
}

/// A signal to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Drain and stop.
    Stop,
    /// Read the configuration again.
    Reload,
}

/// A revoked run.
#[derive(Clone, Debug)]
pub struct Revoked {
    /// Its usage.
    pub sums: Sums,
    /// Its refused requests.
    pub refusals: Refusals,
}

/// The router cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its threads could not be started.
    #[error("the router's threads could not be started: {0}")]
    Threads(io::Error),
    /// It cannot listen.
    #[error(
        "the router cannot listen on {address}: {source}; stop what listens there, or choose another address"
    )]
    Listen {
        /// The address.
        address: Address,
        /// The error.
        source: io::Error,
    },
}

/// A run cannot be admitted.
#[derive(Debug, thiserror::Error)]
pub enum AdmitError {
    /// Its calls could not be recorded.
    #[error("the record of calls cannot be opened: {0}")]
    Audit(#[from] AuditError),
    /// There are no random bytes for its token.
    #[error("the system gives no random bytes for the run's token: {0}")]
    Random(getrandom::Error),
    /// It is admitted already.
    #[error("the run `{0}` is admitted already")]
    Twice(Arc<str>),
    /// Another holds its token.
    #[error("two runs would hold the same token; give each one of its own")]
    SameToken,
    /// A model has no upstream.
    #[error("the model `{0}` has an empty chain of upstreams")]
    EmptyChain(String),
}

impl Service {
    /// Starts the router, without a listener.
    pub fn start(options: Options) -> Result<Handle, StartError> {
        Self::start_below(options, None)
    }

    /// Starts the router of a child run: every call counts against the budgets of all its parents too.
    pub fn start_below(options: Options, above: Option<&ParentBudget>) -> Result<Handle, StartError> {
        let Options { limits, upstreams, per_day, per_engine, leases, holder, earlier, clock } = options;
        let threads = Threads::start(limits.threads).map_err(StartError::Threads)?;
        let room = Arc::new(Semaphore::new(limits.max_connections));
        let settings = Settings { limits, per_day, per_engine };
        let budgets = Budgets::below(above.map(|above| above.budget.clone()), leases, &holder);
        let budget_group = above.map_or_else(BudgetGroup::default, |above| above.budget_group.clone());
        let shared =
            Arc::new(Shared::new(settings, by_name(upstreams), budgets, budget_group, earlier, clock));
        shared.budget_group.join(&shared);
        threads.runtime().spawn(keep_synced(shared.clone()));
        threads.runtime().spawn(audit_writer::write_on(shared.clone()));
        let draining = watch::Sender::new(false);
        Ok(Handle { threads: Some(threads), shared, room, draining, signals: Mutex::default() })
    }
}

impl Signals {
    /// The signal streams, opened on the first call.
    fn listened_to(held: &mut Option<Self>) -> io::Result<&mut Self> {
        Ok(match held {
            Some(signals) => signals,
            None => held.insert(Self {
                term: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
                hang_up: signal(SignalKind::hangup())?,
            }),
        })
    }
}

impl Handle {
    fn runtime(&self) -> Option<&Runtime> {
        self.threads.as_ref().map(Threads::runtime)
    }

    /// Listens for agents. Gives the address, with the port that the kernel chose.
    pub fn listen(&self, address: &Address) -> Result<Address, StartError> {
        self.bind(address, |listener| {
            let (shared, draining) = (self.shared.clone(), self.draining.subscribe());
            let stop = draining.clone();
            tokio::spawn(listener.serve(self.room.clone(), stop, move |stream| {
                connection::serve(shared.clone(), stream, draining.clone())
            }));
        })
    }

    /// Listens for operators. `reload` reads the configuration again and describes the result.
    pub fn listen_admin(
        &self,
        address: &Address,
        reload: impl Fn() -> Result<String, String> + Send + Sync + 'static,
    ) -> Result<Address, StartError> {
        self.bind(address, |listener| {
            admin::serve(listener, self.shared.clone(), self.draining.subscribe(), Arc::new(reload));
        })
    }

    fn bind(&self, address: &Address, serve: impl FnOnce(Listener)) -> Result<Address, StartError> {
        let failed = |source| StartError::Listen { address: address.clone(), source };
        let Some(runtime) = self.runtime() else {
            return Err(failed(io::Error::other("the router has ended")));
        };
        let _inside = runtime.enter();
        let listener = runtime.block_on(Listener::bind(&to_net(address))).map_err(failed)?;
        let bound = listener.address().map_err(failed)?;
        serve(listener);
        Ok(from_net(bound))
    }

    /// Admits a run, with a new token. Its calls are recorded in `directory`.
    pub fn admit(&self, grant: Grant, directory: &Path) -> Result<Secret<String>, AdmitError> {
        let token = new_token().map_err(AdmitError::Random)?;
        self.admit_with(&token, grant, directory)?;
        Ok(token)
    }

    /// Admits a run with a given token.
    pub fn admit_with(
        &self,
        token: &Secret<String>,
        grant: Grant,
        directory: &Path,
    ) -> Result<(), AdmitError> {
        if let Some((name, _)) = grant.models.iter().find(|(_, model)| model.chain.is_empty()) {
            return Err(AdmitError::EmptyChain(name.clone()));
        }
        if let Some(known) = self.shared.runs.named(&grant.run) {
            return Err(AdmitError::Twice(known.name.clone()));
        }
        let (audit, opened) = Audit::open(directory, &grant.run)?;
        let scope = Scope::Run(grant.run.clone());
        self.shared.budgets.open(scope.clone(), grant.limits, opened.charged);
        if !self.shared.runs.insert(token, Arc::new(Run::new(grant, audit))) {
            self.shared.budgets.retire(&scope);
            return Err(AdmitError::SameToken);
        }
        Ok(())
    }

    /// Admits new clients and changes the grants of known ones. A replaced token is revoked; tokens change atomically, so
    /// that two clients can swap theirs. Each client's calls are recorded in its `directory`.
    pub fn admit_all(
        &self,
        admitted: Vec<(Secret<String>, Grant)>,
        directory: impl Fn(&Grant) -> PathBuf,
    ) -> Result<(), AdmitError> {
        if !self.shared.runs.give_tokens(admitted.iter().map(|(token, grant)| (&grant.run, token))) {
            return Err(AdmitError::SameToken);
        }
        for (token, grant) in admitted {
            if self.shared.runs.named(&grant.run).is_some() {
                self.change(grant);
            } else {
                let directory = directory(&grant);
                self.admit_with(&token, grant, &directory)?;
            }
        }
        Ok(())
    }

    /// Changes the grant of a run. Gives whether there is such a run.
    pub fn change(&self, grant: Grant) -> bool {
        let Some(run) = self.shared.runs.named(&grant.run) else { return false };
        self.shared.budgets.open(Scope::Run(grant.run.clone()), grant.limits, Amount::default());
        run.change(grant);
        true
    }

    /// Revokes a run: its token is invalid, its calls are ended and recorded, and the record is on disk.
    pub fn revoke(&self, run: &str) -> Option<Result<Revoked, AuditError>> {
        let run = self.shared.runs.remove(run)?;
        // Record ended calls first: the wait below is for in-flight ones.
        audit_writer::write(&self.shared);
        if let Some(runtime) = self.runtime() {
            runtime.block_on(run.hang_up());
        }
        self.shared.budgets.retire(&Scope::Run(run.name.clone()));
        let refusals = run.refusals();
        Some(run.audit.finish().map(|sums| Revoked { sums, refusals }))
    }

    /// The budget of an admitted run, for the routers of its child runs.
    #[must_use]
    pub fn above(&self, run: &str) -> Option<ParentBudget> {
        let scope = Scope::Run(self.shared.runs.named(run)?.name.clone());
        let budget = ParentLedger::new(self.shared.budgets.clone(), scope);
        Some(ParentBudget { budget, budget_group: self.shared.budget_group.clone() })
    }

    /// Listens for signals from now on. One that comes before the first wait is kept for it.
    pub fn listen_for_signals(&self) -> io::Result<()> {
        let Some(runtime) = self.runtime() else { return Ok(()) };
        runtime.block_on(async { Signals::listened_to(&mut *self.signals.lock().await).map(drop) })
    }

    /// Waits for a signal to stop or to reload.
    pub fn wait_for_signal(&self) -> io::Result<Signal> {
        let Some(runtime) = self.runtime() else { return Ok(Signal::Stop) };
        runtime.block_on(async {
            let mut held = self.signals.lock().await;
            let signals = Signals::listened_to(&mut held)?;
            Ok(tokio::select! {
                _ = signals.term.recv() => Signal::Stop,
                _ = signals.interrupt.recv() => Signal::Stop,
                _ = signals.hang_up.recv() => Signal::Reload,
            })
        })
    }

    /// The refused requests of a run so far.
    #[must_use]
    pub fn refusals(&self, run: &str) -> Option<Refusals> {
        self.shared.runs.named(run).map(|run| run.refusals())
    }

    /// How many calls of a run have begun: later ones have this number or a higher one.
    #[must_use]
    pub fn calls_begun(&self, run: &str) -> Option<u64> {
        self.shared.runs.named(run).map(|run| run.audit.calls_begun())
    }

    /// The names of all admitted runs.
    #[must_use]
    pub fn runs(&self) -> Vec<Arc<str>> {
        self.shared.runs.all().iter().map(|run| run.name.clone()).collect()
    }

    /// Applies another configuration. In-flight calls keep the one that they began with.
    pub fn reload(&self, reload: Reload) {
        let Reload { limits, upstreams, per_day, per_engine } = reload;
        self.shared.change(Settings { limits, per_day, per_engine }, by_name(upstreams));
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> Option<State> {
        self.runtime().map(|runtime| admin::state(&self.shared, runtime.handle()))
    }

    /// Drains: accepts no more connections, waits for in-flight calls, and stops. Gives how many calls did not end in time;
    /// they are cut off and recorded as such.
    #[must_use]
    pub fn drain(mut self, within: Duration) -> usize {
        self.draining.send_replace(true);
        let Some(threads) = self.threads.take() else { return 0 };
        let runtime = threads.runtime();
        let shared = self.shared.clone();
        let left = runtime.block_on(async move {
            let deadline = tokio::time::Instant::now() + within;
            loop {
                audit_writer::write(&shared);
                let left = shared.metrics.calls_under_way();
                if left == 0 || tokio::time::Instant::now() >= deadline {
                    return left;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let runs = self.shared.runs.all();
        runtime.block_on(async {
            for run in &runs {
                run.hang_up().await;
            }
            // A lease that cannot be returned stays charged until the next start.
            let _ = self.shared.budgets.close().await;
        });
        for run in runs {
            // The records are written, even where they cannot be synced.
            let _ = run.audit.sync();
        }
        threads.stop(Duration::from_secs(1));
        left
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.stop(Duration::ZERO);
            audit_writer::write(&self.shared);
        }
    }
}

fn by_name(upstreams: Vec<Upstream>) -> Upstreams {
    upstreams.into_iter().map(|upstream| (Arc::from(upstream.name()), Arc::new(upstream))).collect()
}

fn to_net(address: &Address) -> herma_net::Address {
    match address {
        Address::Tcp(address) => herma_net::Address::Tcp(*address),
        Address::Unix(path) => herma_net::Address::Unix(path.clone()),
    }
}

fn from_net(address: herma_net::Address) -> Address {
    match address {
        herma_net::Address::Tcp(address) => Address::Tcp(address),
        herma_net::Address::Unix(path) => Address::Unix(path),
    }
}

async fn keep_synced(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(SYNC_EVERY).await;
        // Return unused leases to other processes.
        let _ = shared.budgets.tidy().await;
        let runs = shared.runs.all();
        let synced = tokio::task::spawn_blocking(move || {
            for run in runs {
                // After a failed sync the audit log refuses further calls by itself.
                let _ = run.audit.sync();
            }
        });
        let _ = synced.await;
    }
}
