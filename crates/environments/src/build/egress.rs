//! The proxy of a fetch: it leads to the registries and nowhere else, and every decision is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use herma_core::Clock;
use herma_egress::addresses::refused;
use herma_egress::proxy::{Handle, Listen, Options, Service};
use herma_egress::resolver::{BoxFuture, Resolve, System};
use herma_egress::{Allowlist, DecisionRecorder, EgressVerdict, Name, ProxyDecision, Unrecorded};

use super::error::BuildError;
use crate::egress_record::{ALLOWED, EgressRecord};
use crate::registries::RegistryAccess;

/// The socket's name.
const SOCKET: &str = "egress.sock";
/// How many different decisions are recorded. Nothing else bounds how many hosts a command can name.
const MAX_RECORDS: usize = 1_000;

/// A proxy that runs. Dropping it ends it.
pub(super) struct RegistryProxy {
    _handle: Handle,
    socket: PathBuf,
    decisions: Arc<Decisions>,
}

impl RegistryProxy {
    pub(super) fn start(
        registries: &[RegistryAccess],
        clock: &Arc<dyn Clock>,
        dir: &Path,
    ) -> Result<Self, BuildError> {
        let failed = |text: String| BuildError::Proxy(text);
        let rules: Vec<String> = registries.iter().flat_map(RegistryAccess::rules).collect();
        let allowlist = Allowlist::parse(&rules).map_err(|bad| failed(bad.to_string()))?;
        let decisions = Arc::new(Decisions::default());
        let own: BTreeSet<String> = registries
            .iter()
            .filter(|registry| registry.own_network)
            .flat_map(RegistryAccess::hosts)
            .collect();
        let mut options = Options::new(allowlist, Arc::clone(clock), Arc::<Decisions>::clone(&decisions));
        options.own_network = !own.is_empty();
        options.resolver = Arc::new(OwnNetworkHosts { system: System::default(), own });
        let handle = Service::start(options).map_err(|e| failed(e.to_string()))?;
        // The path of a socket is limited to 107 bytes; a home can be deeper.
        let opened = File::open(dir)?;
        let short = Path::new("/proc/self/fd").join(opened.as_raw_fd().to_string()).join(SOCKET);
        handle.listen(&Listen::Unix(short)).map_err(|e| failed(e.to_string()))?;
        Ok(Self { _handle: handle, socket: dir.join(SOCKET), decisions })
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Ends it, and returns what it decided.
    pub(super) fn end(self) -> Vec<EgressRecord> {
        let Self { _handle: handle, decisions, .. } = self;
        let _ = handle.end();
        let decided = decisions.0.lock().unwrap_or_else(PoisonError::into_inner);
        let record = |((host, port, verdict), count): (&(String, u16, String), &u64)| EgressRecord {
            host: host.clone(),
            port: *port,
            verdict: verdict.clone(),
            count: *count,
        };
        decided.iter().map(record).collect()
    }
}

/// Resolves names; one that is not of the operator's own network must have public addresses only.
struct OwnNetworkHosts {
    system: System,
    own: BTreeSet<String>,
}

impl Resolve for OwnNetworkHosts {
    fn resolve<'a>(&'a self, name: &'a Name) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let answers = self.system.resolve(name).await?;
            let is_public = answers.iter().all(|answer| refused(*answer).is_none());
            // Without any host of the own network the proxy itself refuses such addresses, with a better reason.
            if is_public || self.own.is_empty() || self.own.contains(name.as_str()) {
                return Ok(answers);
            }
            Err(io::Error::other("the name leads to an address that is not public"))
        })
    }
}

#[derive(Default)]
struct Decisions(Mutex<BTreeMap<(String, u16, String), u64>>);

impl DecisionRecorder for Decisions {
    fn decided(&self, decided: &ProxyDecision) -> Result<(), Unrecorded> {
        let verdict = match decided.verdict {
            EgressVerdict::Allowed => ALLOWED,
            EgressVerdict::Denied(reason) => reason.code(),
            EgressVerdict::Failed(fault) => fault.code(),
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (decided.host.clone(), decided.port, verdict.to_owned());
        if all.len() >= MAX_RECORDS && !all.contains_key(&key) {
            return Err(Unrecorded("too many different hosts were asked for".to_owned()));
        }
        *all.entry(key).or_default() += 1;
        Ok(())
    }
}
