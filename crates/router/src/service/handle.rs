//! Starts the service, and holds it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use herma_core::Clock;
use herma_core::secret::Secret;
use tokio::runtime::Runtime;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::{Mutex, Semaphore, watch};

use super::admin::{self, State};
use super::kin::{Kin, RunAbove};
use super::listener::Listener;
use super::runs::{Refusals, Run, new_token};
use super::scribe;
use super::shared::{Settings, Shared, Upstreams};
use super::threads::Threads;
use crate::audit::{Audit, AuditError, Sums};
use crate::budget::{Above, Amount, Budgets, Day, Leases, Limits, Scope};
use crate::config::{Address, RequestLimits};
use crate::grant::Grant;
use crate::upstream::Upstream;

/// How often what was recorded is brought to the disk.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// What a router serves.
pub struct Options {
    /// The limits of every request.
    pub limits: RequestLimits,
    /// Who answers.
    pub upstreams: Vec<Upstream>,
    /// The budget of each day.
    pub per_day: Limits,
    /// The budgets of engines. One that is not named has no limit of its own.
    pub per_engine: BTreeMap<String, Limits>,
    /// Where budgets that several processes share are leased from.
    pub leases: Arc<dyn Leases>,
    /// In whose name: no two routers that run at the same time have the same, and one that goes on with the records of
    /// one that died has its name.
    pub holder: String,
    /// What the holder spent on each day, beyond what the records of the runs that it lets in say.
    pub earlier: BTreeMap<Day, Amount>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// The router as a service.
#[derive(Debug)]
pub struct Service;

/// A router that runs. Dropping it stops it at once; [`Handle::drain`] lets calls end first.
pub struct Handle {
    threads: Option<Threads>,
    shared: Arc<Shared>,
    room: Arc<Semaphore>,
    draining: watch::Sender<bool>,
    signals: Mutex<Option<Signals>>,
}

/// What the system says. Listened to once and then kept, so that nothing is lost between two waits.
struct Signals {
    term: unix::Signal,
    interrupt: unix::Signal,
    hang_up: unix::Signal,
}

/// What a reload brings.
pub struct Reload {
    /// The limits of every request.
    pub limits: RequestLimits,
    /// Who answers from now on.
    pub upstreams: Vec<Upstream>,
    /// The budget of each day.
    pub per_day: Limits,
    /// The budgets of engines.
    pub per_engine: BTreeMap<String, Limits>,
}

/// What the system tells the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Drain and stop.
    Stop,
    /// Read the configuration again.
    Reload,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Revoked {
    /// What it used.
    pub sums: Sums,
    /// What was refused to it.
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
        /// Where.
        address: Address,
        /// What the system said.
        source: io::Error,
    },
}

/// A run cannot be let in.
#[derive(Debug, thiserror::Error)]
pub enum AdmitError {
    /// Its calls could not be recorded.
    #[error("the record of calls cannot be opened: {0}")]
    Audit(#[from] AuditError),
    /// There is no randomness for its token.
    #[error("the system gives no random bytes for the run's token: {0}")]
    Random(getrandom::Error),
    /// It is there already.
    #[error("the run `{0}` was let in before")]
    Twice(Arc<str>),
    /// Another holds its token.
    #[error("two runs would hold the same token; give each one of its own")]
    SameToken,
    /// A model has nobody who answers.
    #[error("the model `{0}` has an empty chain: nobody would answer")]
    EmptyChain(String),
}

impl Service {
    /// Starts the router. It listens nowhere until it is told to.
    pub fn start(options: Options) -> Result<Handle, StartError> {
        Self::start_below(options, None)
    }

    /// The same for a run below another one: every call counts against the budgets of all runs above it too.
    pub fn start_below(options: Options, above: Option<&RunAbove>) -> Result<Handle, StartError> {
        let Options { limits, upstreams, per_day, per_engine, leases, holder, earlier, clock } = options;
        let threads = Threads::start(limits.threads).map_err(StartError::Threads)?;
        let room = Arc::new(Semaphore::new(limits.max_connections));
        let settings = Settings { limits, per_day, per_engine };
        let budgets = Budgets::below(above.map(|above| above.budget.clone()), leases, &holder);
        let kin = above.map_or_else(Kin::default, |above| above.kin.clone());
        let shared = Arc::new(Shared::new(settings, by_name(upstreams), budgets, kin, earlier, clock));
        shared.kin.join(&shared);
        threads.runtime().spawn(keep_synced(shared.clone()));
        threads.runtime().spawn(scribe::write_on(shared.clone()));
        let draining = watch::Sender::new(false);
        Ok(Handle { threads: Some(threads), shared, room, draining, signals: Mutex::default() })
    }
}

impl Signals {
    /// The ones that are listened to, from now on at the latest.
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

    /// Listens for agents. Gives the address, with the port that the system chose where none was named.
    pub fn listen(&self, address: &Address) -> Result<Address, StartError> {
        self.bind(address, |listener| {
            listener.serve(self.shared.clone(), self.room.clone(), self.draining.subscribe());
        })
    }

    /// Listens for the operator. `reload` reads the configuration again and says what came of it.
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
        let listener = runtime.block_on(Listener::bind(address)).map_err(failed)?;
        let bound = listener.address().map_err(failed)?;
        serve(listener);
        Ok(bound)
    }

    /// Lets a run in, with a new token. Its calls are recorded in `directory`.
    pub fn admit(&self, grant: Grant, directory: &Path) -> Result<Secret<String>, AdmitError> {
        let token = new_token().map_err(AdmitError::Random)?;
        self.admit_with(&token, grant, directory)?;
        Ok(token)
    }

    /// Lets the holder of a token in that was agreed on before.
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

    /// Lets the holders of tokens in, and changes what those may do who are in. Where a token changed, the old one is dead;
    /// tokens change all in one go, so that two runs can swap theirs. Each run's calls are recorded in `directory` of it.
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

    /// Changes what a run may do. Gives whether there is such a run.
    pub fn change(&self, grant: Grant) -> bool {
        let Some(run) = self.shared.runs.named(&grant.run) else { return false };
        self.shared.budgets.open(Scope::Run(grant.run.clone()), grant.limits, Amount::default());
        run.change(grant);
        true
    }

    /// Ends a run: its token is dead, its calls are ended and recorded, and the record is on disk.
    pub fn revoke(&self, run: &str) -> Option<Result<Revoked, AuditError>> {
        let run = self.shared.runs.remove(run)?;
        // Nobody waits for what has ended already.
        scribe::write(&self.shared);
        if let Some(runtime) = self.runtime() {
            runtime.block_on(run.hang_up());
        }
        self.shared.budgets.retire(&Scope::Run(run.name.clone()));
        let refusals = run.refusals();
        Some(run.audit.finish().map(|sums| Revoked { sums, refusals }))
    }

    /// A run that is let in, for the routers of runs below it; none if there is no such run.
    #[must_use]
    pub fn above(&self, run: &str) -> Option<RunAbove> {
        let scope = Scope::Run(self.shared.runs.named(run)?.name.clone());
        let budget = Above::new(self.shared.budgets.clone(), scope);
        Some(RunAbove { budget, kin: self.shared.kin.clone() })
    }

    /// Listens for what the system tells the process, from now on. What comes before the first wait is kept for it.
    pub fn listen_for_signals(&self) -> io::Result<()> {
        let Some(runtime) = self.runtime() else { return Ok(()) };
        runtime.block_on(async { Signals::listened_to(&mut *self.signals.lock().await).map(drop) })
    }

    /// Waits until the system tells the process to stop or to reload.
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

    /// What was refused to a run so far.
    #[must_use]
    pub fn refusals(&self, run: &str) -> Option<Refusals> {
        self.shared.runs.named(run).map(|run| run.refusals())
    }

    /// How many calls of a run have begun so far: those that begin later have this number or a higher one.
    #[must_use]
    pub fn calls_begun(&self, run: &str) -> Option<u64> {
        self.shared.runs.named(run).map(|run| run.audit.calls_begun())
    }

    /// The names of all runs that are let in.
    #[must_use]
    pub fn runs(&self) -> Vec<Arc<str>> {
        self.shared.runs.all().iter().map(|run| run.name.clone()).collect()
    }

    /// Takes another configuration. Calls under way go on with the one that they began with.
    pub fn reload(&self, reload: Reload) {
        let Reload { limits, upstreams, per_day, per_engine } = reload;
        self.shared.change(Settings { limits, per_day, per_engine }, by_name(upstreams));
    }

    /// What it is at.
    #[must_use]
    pub fn state(&self) -> Option<State> {
        self.runtime().map(|runtime| admin::state(&self.shared, runtime.handle()))
    }

    /// Takes no more connections, lets calls under way end, and stops. Gives how many calls did not end in time; they
    /// are broken off and recorded as such.
    #[must_use]
    pub fn drain(mut self, within: Duration) -> usize {
        self.draining.send_replace(true);
        let Some(threads) = self.threads.take() else { return 0 };
        let runtime = threads.runtime();
        let shared = self.shared.clone();
        let left = runtime.block_on(async move {
            let deadline = tokio::time::Instant::now() + within;
            loop {
                scribe::write(&shared);
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
            // What cannot be given back stays charged until the next start.
            let _ = self.shared.budgets.close().await;
        });
        for run in runs {
            // What cannot be brought to the disk now was at least written.
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
            scribe::write(&self.shared);
        }
    }
}

fn by_name(upstreams: Vec<Upstream>) -> Upstreams {
    upstreams.into_iter().map(|upstream| (Arc::from(upstream.name()), Arc::new(upstream))).collect()
}

async fn keep_synced(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(SYNC_EVERY).await;
        // What one process does not spend others may.
        let _ = shared.budgets.tidy().await;
        for upstream in shared.upstreams().values() {
            upstream.tidy();
        }
        let runs = shared.runs.all();
        let synced = tokio::task::spawn_blocking(move || {
            for run in runs {
                // One that fails has refused further calls already.
                let _ = run.audit.sync();
            }
        });
        let _ = synced.await;
    }
}
