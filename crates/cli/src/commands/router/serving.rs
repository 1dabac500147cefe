//! A router that serves a configuration.

use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use herma_evidence::file_reading::open_regular;
use herma_harness::SystemClock;
use herma_router::audit::{self, MODEL_CALLS};
use herma_router::budget::{Amount, Day};
use herma_router::config::{Address, Config, Secrets};
use herma_router::service::{Handle, Options, Reload, Service, Signal};
use herma_router::upstream::Upstream;
use herma_store::SqliteStore;

use super::EnvironmentLookup;
use crate::directories::make_own;
use crate::failure::Failure;

/// Where the budgets that outlive a router lie, in its state directory.
const BUDGETS: &str = "budgets.sqlite";
/// Where the records of calls lie, in a directory for each client.
const AUDIT: &str = "audit";

/// In whose name budgets are leased: the state directory has one router at a time.
const HOLDER: &str = "router";

/// A router that serves a configuration.
pub(crate) struct Serving {
    inner: Arc<Inner>,
    address: Address,
    admin: Option<Address>,
}

struct Inner {
    file: PathBuf,
    config: Mutex<Config>,
    /// None once it was drained.
    handle: RwLock<Option<Handle>>,
}

impl Serving {
    /// Reads a configuration and serves it.
    pub(crate) fn start(file: &Path) -> Result<Self, Failure> {
        let (config, secrets, upstreams) = read(file)?;
        make_own("the state directory", &config.state, &[BUDGETS, AUDIT])?;
        let budgets = config.state.join(BUDGETS);
        let leases = SqliteStore::open(&budgets).and_then(|store| store.leases(&budgets));
        let leases = leases.map_err(Failure::internal)?;
        let handle = Service::start(Options {
            limits: config.limits.clone(),
            upstreams,
            per_day: config.budgets.day,
            per_engine: config.budgets.engines.clone(),
            leases: Arc::new(leases),
            holder: HOLDER.to_owned(),
            earlier: earlier(&config).map_err(Failure::internal)?,
            clock: Arc::new(SystemClock),
        })
        .map_err(Failure::internal)?;
        admit(&handle, &config, &secrets).map_err(Failure::internal)?;
        // Before anybody can know that it is there, so that no signal meets a router that would die of it.
        handle.listen_for_signals().map_err(Failure::internal)?;
        let listening = |e| Failure::internal(e).hint("choose another address in the configuration");
        let address = handle.listen(&config.listen).map_err(listening)?;
        let wanted_admin = config.admin.clone();
        let inner = Arc::new(Inner {
            file: file.to_owned(),
            config: Mutex::new(config),
            handle: RwLock::new(Some(handle)),
        });
        let admin = match wanted_admin {
            None => None,
            Some(admin) => {
                let reloaded = Arc::downgrade(&inner);
                let reload = move || match reloaded.upgrade() {
                    Some(inner) => inner.reload(),
                    None => Err("the router stops".to_owned()),
                };
                let handle = inner.handle.read().unwrap_or_else(PoisonError::into_inner);
                handle
                    .as_ref()
                    .map(|handle| handle.listen_admin(&admin, reload))
                    .transpose()
                    .map_err(listening)?
            }
        };
        Ok(Self { inner, address, admin })
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn admin(&self) -> Option<&Address> {
        self.admin.as_ref()
    }

    pub(crate) fn clients(&self) -> Vec<String> {
        self.inner.config.lock().unwrap_or_else(PoisonError::into_inner).clients.keys().cloned().collect()
    }

    pub(crate) fn wait_for_signal(&self) -> io::Result<Signal> {
        match &*self.inner.handle.read().unwrap_or_else(PoisonError::into_inner) {
            Some(handle) => handle.wait_for_signal(),
            None => Ok(Signal::Stop),
        }
    }

    /// Reads the configuration again. A broken one changes nothing.
    pub(crate) fn reload(&self) -> Result<String, String> {
        self.inner.reload()
    }

    /// Stops. Gives how many calls were broken off.
    pub(crate) fn drain(&self, within: Duration) -> usize {
        let handle = self.inner.handle.write().unwrap_or_else(PoisonError::into_inner).take();
        handle.map_or(0, |handle| handle.drain(within))
    }
}

impl Inner {
    fn reload(&self) -> Result<String, String> {
        let (config, secrets, upstreams) = read(&self.file).map_err(|failure| failure.what)?;
        let mut current = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        current.changes(&config).map_err(|e| e.to_string())?;
        let handle = self.handle.read().unwrap_or_else(PoisonError::into_inner);
        let Some(handle) = &*handle else { return Err("the router stops".to_owned()) };
        handle.reload(Reload {
            limits: config.limits.clone(),
            upstreams,
            per_day: config.budgets.day,
            per_engine: config.budgets.engines.clone(),
        });
        for gone in handle.runs().iter().filter(|run| !config.clients.contains_key(&***run)) {
            // What could not be brought to the disk was at least written.
            let _ = handle.revoke(gone);
        }
        admit(handle, &config, &secrets)?;
        let said = format!(
            "the configuration was read again: {} upstreams, {} models, {} clients",
            config.upstreams.len(),
            config.models.len(),
            config.clients.len()
        );
        *current = config;
        Ok(said)
    }
}

/// Reads a configuration with its secrets, and makes its upstreams.
pub(crate) fn read(file: &Path) -> Result<(Config, Secrets, Vec<Upstream>), Failure> {
    let bad = |e: &dyn std::fmt::Display| {
        Failure::bad_input(e.to_string())
            .hint("`herma router example` prints a whole configuration to start from")
    };
    let config = Config::read(file).map_err(|e| bad(&e))?;
    let secrets = config.secrets(&EnvironmentLookup).map_err(|e| bad(&e))?;
    let upstreams: Result<Vec<_>, _> = config
        .upstreams
        .iter()
        .map(|(name, upstream)| Upstream::new(name, upstream, &secrets, &config.limits))
        .collect();
    let upstreams = upstreams.map_err(|e| bad(&e))?;
    Ok((config, secrets, upstreams))
}

/// What those spent on each day who were clients of this router and are none any more.
fn earlier(config: &Config) -> Result<BTreeMap<Day, Amount>, String> {
    let mut spent: BTreeMap<Day, Amount> = BTreeMap::new();
    let directory = config.state.join(AUDIT);
    let Ok(entries) = std::fs::read_dir(&directory) else { return Ok(spent) };
    for entry in entries {
        let entry = entry.map_err(|e| format!("{} cannot be read: {e}", directory.display()))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if config.clients.contains_key(&name) {
            continue;
        }
        let file = entry.path().join(MODEL_CALLS);
        let open = match open_regular(&file) {
            Ok(open) => open,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(format!("{} cannot be read: {e}", file.display())),
        };
        let read = audit::read(BufReader::new(open), &name, |_| {});
        let read = read.map_err(|e| format!("{} cannot be read: {e}", file.display()))?;
        let read = read.map_err(|e| format!("{} is not what herma wrote: {e}", file.display()))?;
        for (day, amount) in read.sums.by_day {
            let sum = spent.entry(day).or_default();
            *sum = sum.plus(amount);
        }
    }
    Ok(spent)
}

/// Lets every client in that is not, and changes what the others may do.
fn admit(handle: &Handle, config: &Config, secrets: &Secrets) -> Result<(), String> {
    let directory = |client: &str| config.state.join(AUDIT).join(client);
    for client in config.clients.keys() {
        let directory = directory(client);
        std::fs::create_dir_all(&directory)
            .map_err(|e| format!("{} cannot be made: {e}", directory.display()))?;
    }
    handle.admit_all(config.grants(secrets), |grant| directory(&grant.run)).map_err(|e| e.to_string())
}
