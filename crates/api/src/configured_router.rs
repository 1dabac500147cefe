//! A router that serves a configuration file, and reloads it on request.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use herma_core::model_call::Broken;
use herma_core::store::StoreError;
use herma_files::open_regular;
use herma_harness::{SecretSource, SystemClock};
use herma_router::audit::{self, MODEL_CALLS};
use herma_router::budget::{Amount, Day};
use herma_router::config::{Address, BadConfig, CannotReload, Config, Secrets};
use herma_router::service::{AdmitError, Handle, Options, Reload, Service, Signal, StartError};
use herma_router::upstream::{BadUpstream, Upstream};
use herma_store::{BlockingStore, StoreLocation};

use crate::directories::{DirectoryError, make_own};

/// The database of the budgets that outlive a router, in its state directory.
const BUDGETS: &str = "budgets.sqlite";
/// The directory of the audit records, with one directory for each client.
const AUDIT: &str = "audit";
/// The lease holder of budgets: the state directory has one router at a time.
const HOLDER: &str = "router";

/// A router that serves a configuration file.
pub struct ConfiguredRouter {
    inner: Arc<Inner>,
    address: Address,
    admin: Option<Address>,
}

struct Inner {
    file: PathBuf,
    secrets: SecretSource,
    config: Mutex<Config>,
    /// None once it was drained.
    handle: RwLock<Option<Handle>>,
}

/// A router cannot be started or reloaded.
#[derive(Debug, thiserror::Error)]
pub enum RouterError {
    /// The configuration or a secret that it names cannot be used.
    #[error(transparent)]
    Config(#[from] BadConfig),
    /// An upstream cannot be used.
    #[error(transparent)]
    Upstream(#[from] BadUpstream),
    /// A value that only a restart can change differs.
    #[error(transparent)]
    Restart(#[from] CannotReload),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] DirectoryError),
    /// The database of the budgets cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its threads could not be started.
    #[error(transparent)]
    Start(StartError),
    /// It cannot listen.
    #[error(transparent)]
    Listen(StartError),
    /// A client cannot be admitted.
    #[error(transparent)]
    Admit(#[from] AdmitError),
    /// Signals cannot be received.
    #[error(transparent)]
    Signals(io::Error),
    /// A file or directory of the audit records cannot be used.
    #[error("{} cannot be {doing}: {source}", path.display())]
    Audit {
        /// The file or directory.
        path: PathBuf,
        /// The attempted operation.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// An audit record was changed.
    #[error("{} is not what herma wrote: {source}", path.display())]
    AuditChanged {
        /// The file.
        path: PathBuf,
        /// Where the chain breaks.
        source: Broken,
    },
    /// The router was drained.
    #[error("the router stops")]
    Stopped,
}

/// A configuration that was reloaded.
#[derive(Clone, Copy, Debug)]
pub struct Reloaded {
    upstreams: usize,
    models: usize,
    clients: usize,
}

impl fmt::Display for Reloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { upstreams, models, clients } = self;
        write!(
            f,
            "the configuration was read again: {upstreams} upstreams, {models} models, {clients} clients"
        )
    }
}

impl ConfiguredRouter {
    /// Reads a configuration and serves it.
    pub fn start(file: &Path, source: SecretSource) -> Result<Self, RouterError> {
        let UsableConfig { config, secrets, upstreams } = UsableConfig::read(file, &source)?;
        make_own("the state directory", &config.state, &[BUDGETS, AUDIT])?;
        let budgets = config.state.join(BUDGETS);
        let budgets = BlockingStore::open(&StoreLocation::file(budgets))?;
        let handle = Service::start(Options {
            limits: config.limits.clone(),
            upstreams,
            per_day: config.budgets.day,
            per_engine: config.budgets.engines.clone(),
            leases: budgets.store().leases(),
            holder: HOLDER.to_owned(),
            earlier: spent_by_former_clients(&config)?,
            clock: Arc::new(SystemClock),
        })
        .map_err(RouterError::Start)?;
        admit(&handle, &config, &secrets)?;
        // Before the router listens: a signal that arrives earlier would kill it.
        handle.listen_for_signals().map_err(RouterError::Signals)?;
        let address = handle.listen(&config.listen).map_err(RouterError::Listen)?;
        let admin_address = config.admin.clone();
        let inner = Arc::new(Inner {
            file: file.to_owned(),
            secrets: source,
            config: Mutex::new(config),
            handle: RwLock::new(Some(handle)),
        });
        let admin = admin_address.map(|admin| inner.listen_admin(&admin)).transpose()?.flatten();
        Ok(Self { inner, address, admin })
    }

    /// The address of the clients' listener.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The address of the operator's listener; none without one.
    #[must_use]
    pub fn admin(&self) -> Option<&Address> {
        self.admin.as_ref()
    }

    /// The names of the clients.
    #[must_use]
    pub fn clients(&self) -> Vec<String> {
        self.inner.config().clients.keys().cloned().collect()
    }

    /// Waits for SIGHUP, SIGINT or SIGTERM.
    pub fn wait_for_signal(&self) -> io::Result<Signal> {
        match &*self.inner.handle() {
            Some(handle) => handle.wait_for_signal(),
            None => Ok(Signal::Stop),
        }
    }

    /// Reads the configuration again. A broken one changes nothing.
    pub fn reload(&self) -> Result<Reloaded, RouterError> {
        self.inner.reload()
    }

    /// Stops, and returns the number of calls that were cut off.
    #[must_use]
    pub fn drain(&self, within: Duration) -> usize {
        let handle = self.inner.handle.write().unwrap_or_else(PoisonError::into_inner).take();
        handle.map_or(0, |handle| handle.drain(within))
    }
}

impl Inner {
    fn config(&self) -> MutexGuard<'_, Config> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self) -> RwLockReadGuard<'_, Option<Handle>> {
        self.handle.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen_admin(self: &Arc<Self>, address: &Address) -> Result<Option<Address>, RouterError> {
        let inner = Arc::downgrade(self);
        let reload = move || {
            let reloaded = inner.upgrade().ok_or(RouterError::Stopped).and_then(|inner| inner.reload());
            reloaded.map(|reloaded| reloaded.to_string()).map_err(|error| error.to_string())
        };
        let handle = self.handle();
        let listening = handle.as_ref().map(|handle| handle.listen_admin(address, reload));
        listening.transpose().map_err(RouterError::Listen)
    }

    fn reload(&self) -> Result<Reloaded, RouterError> {
        let UsableConfig { config, secrets, upstreams } = UsableConfig::read(&self.file, &self.secrets)?;
        let mut current = self.config();
        current.changes(&config)?;
        let handle = self.handle();
        let Some(handle) = &*handle else { return Err(RouterError::Stopped) };
        handle.reload(Reload {
            limits: config.limits.clone(),
            upstreams,
            per_day: config.budgets.day,
            per_engine: config.budgets.engines.clone(),
        });
        for gone in handle.runs().iter().filter(|run| !config.clients.contains_key(&***run)) {
            // Its records are written; only the last sync to disk may have failed.
            let _ = handle.revoke(gone);
        }
        admit(handle, &config, &secrets)?;
        let reloaded = Reloaded {
            upstreams: config.upstreams.len(),
            models: config.models.len(),
            clients: config.clients.len(),
        };
        *current = config;
        Ok(reloaded)
    }
}

/// A configuration with its secrets and upstreams.
pub struct UsableConfig {
    /// The configuration.
    pub config: Config,
    secrets: Secrets,
    upstreams: Vec<Upstream>,
}

impl UsableConfig {
    /// Reads a configuration with its secrets, and makes its upstreams.
    pub fn read(file: &Path, source: &SecretSource) -> Result<Self, RouterError> {
        let config = Config::read(file)?;
        let secrets = config.secrets(&*source.0)?;
        let upstreams = config.upstreams.iter();
        let upstreams =
            upstreams.map(|(name, upstream)| Upstream::new(name, upstream, &secrets, &config.limits));
        let upstreams = upstreams.collect::<Result<_, BadUpstream>>()?;
        Ok(Self { config, secrets, upstreams })
    }
}

/// The spending on each day of clients that the configuration no longer names.
fn spent_by_former_clients(config: &Config) -> Result<BTreeMap<Day, Amount>, RouterError> {
    let mut spent: BTreeMap<Day, Amount> = BTreeMap::new();
    let directory = config.state.join(AUDIT);
    let unreadable =
        |path: &Path, source: io::Error| RouterError::Audit { path: path.to_owned(), doing: "read", source };
    let Ok(entries) = std::fs::read_dir(&directory) else { return Ok(spent) };
    for entry in entries {
        let entry = entry.map_err(|e| unreadable(&directory, e))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if config.clients.contains_key(&name) {
            continue;
        }
        let file = entry.path().join(MODEL_CALLS);
        let open = match open_regular(&file) {
            Ok(open) => open,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(unreadable(&file, e)),
        };
        let read = audit::read(BufReader::new(open), &name, |_| {}).map_err(|e| unreadable(&file, e))?;
        let read = read.map_err(|source| RouterError::AuditChanged { path: file, source })?;
        for (day, amount) in read.sums.by_day {
            let sum = spent.entry(day).or_default();
            *sum = sum.plus(amount);
        }
    }
    Ok(spent)
}

/// Admits new clients, and changes the grants of the others.
fn admit(handle: &Handle, config: &Config, secrets: &Secrets) -> Result<(), RouterError> {
    let directory = |client: &str| config.state.join(AUDIT).join(client);
    for client in config.clients.keys() {
        let path = directory(client);
        std::fs::create_dir_all(&path).map_err(|source| RouterError::Audit {
            path,
            doing: "made",
            source,
        })?;
    }
    Ok(handle.admit_all(config.grants(secrets), |grant| directory(&grant.run))?)
}
