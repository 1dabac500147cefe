//! A proxy for tests: names resolve to what a test says, and checked addresses lead to a server of the test.
//!
//! Nothing of the product is weakened for it. The proxy resolves, checks and connects as ever; only the two traits at its
//! edges are the test's.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use herma_core::{Clock, Timestamp};
use herma_egress::addresses::Target;
use herma_egress::proxy::{Connect, ConnectError, Counts, Handle, Limits, Listen, Mode, Options, Service};
use herma_egress::resolver::{BoxFuture, Resolve};
use herma_egress::{Allowlist, DecisionRecorder, EgressVerdict, Name, ProxyDecision, Unrecorded};
use tokio::net::TcpStream;

/// How long a test waits for something that must come.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_mins(1);
/// An address that counts as public.
pub(crate) const PUBLIC: &str = "93.184.216.34";
/// The host of most tests.
pub(crate) const HOST: &str = "example.org";

/// A clock that a test sets.
pub(crate) struct Hand(pub(crate) Mutex<Timestamp>);

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// Names with the addresses that a test gives them.
#[derive(Default)]
pub(crate) struct Names(pub(crate) BTreeMap<String, Vec<IpAddr>>);

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a Name) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            self.0.get(name.as_str()).cloned().ok_or_else(|| io::Error::other("there is no such name"))
        })
    }
}

/// Leads every checked address to a server of the test, and notes which address it was.
pub(crate) struct Leads {
    pub(crate) to: SocketAddr,
    pub(crate) asked: Mutex<Vec<SocketAddr>>,
}

impl Connect for Leads {
    fn connect(&self, target: Target) -> BoxFuture<'_, Result<TcpStream, ConnectError>> {
        self.asked.lock().unwrap().push(target.address());
        Box::pin(async move { Ok(TcpStream::connect(self.to).await?) })
    }
}

/// Notes every decision.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) decided: Mutex<Vec<ProxyDecision>>,
    /// From how many on nothing can be recorded.
    pub(crate) room: Option<usize>,
    pub(crate) calls: AtomicUsize,
}

impl DecisionRecorder for Notes {
    fn decided(&self, decided: &ProxyDecision) -> Result<(), Unrecorded> {
        let calls = self.calls.fetch_add(1, Ordering::SeqCst);
        if self.room.is_some_and(|room| calls >= room) {
            return Err(Unrecorded("the disk is full".to_owned()));
        }
        self.decided.lock().unwrap().push(decided.clone());
        Ok(())
    }
}

/// The configuration of a test's proxy.
pub(crate) struct Setup {
    pub(crate) rules: Vec<String>,
    pub(crate) allowlist: Option<Allowlist>,
    pub(crate) mode: Mode,
    pub(crate) limits: Limits,
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) connector: Option<Arc<dyn Connect>>,
    pub(crate) leads: Arc<Leads>,
    pub(crate) notes: Arc<Notes>,
    pub(crate) clock: Arc<Hand>,
}

/// A proxy that runs.
pub(crate) struct Proxy {
    pub(crate) handle: Handle,
    pub(crate) port: u16,
    pub(crate) notes: Arc<Notes>,
    pub(crate) leads: Arc<Leads>,
    pub(crate) clock: Arc<Hand>,
}

impl Setup {
    /// One rule for the usual host, which resolves to a public address and leads to `server`.
    pub(crate) fn new(server: SocketAddr) -> Self {
        let names = BTreeMap::from([(HOST.to_owned(), vec![PUBLIC.parse().unwrap()])]);
        Self {
            rules: vec![HOST.to_owned()],
            allowlist: None,
            mode: Mode::Strict,
            limits: Limits::default(),
            resolver: Arc::new(Names(names)),
            connector: None,
            leads: Arc::new(Leads { to: server, asked: Mutex::default() }),
            notes: Arc::default(),
            clock: Arc::new(Hand(Mutex::new(Timestamp::UNIX_EPOCH))),
        }
    }

    pub(crate) fn rules(mut self, rules: &[&str]) -> Self {
        self.rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
        self
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub(crate) fn names(mut self, names: &[(&str, &[&str])]) -> Self {
        let read = |answers: &&[&str]| answers.iter().map(|answer| answer.parse().unwrap()).collect();
        let names = names.iter().map(|(name, answers)| ((*name).to_owned(), read(answers))).collect();
        self.resolver = Arc::new(Names(names));
        self
    }

    pub(crate) fn options(&self) -> Options {
        let allowlist = self.allowlist.clone().unwrap_or_else(|| Allowlist::parse(&self.rules).unwrap());
        Options {
            mode: self.mode,
            limits: self.limits.clone(),
            resolver: self.resolver.clone(),
            connector: self.connector.clone().unwrap_or_else(|| self.leads.clone()),
            ..Options::new(allowlist, self.clock.clone(), self.notes.clone())
        }
    }

    pub(crate) fn start(self) -> Proxy {
        let handle = Service::start(self.options()).unwrap();
        let Listen::Loopback(port) = handle.listen(&Listen::Loopback(0)).unwrap() else {
            panic!("it listens at a port")
        };
        Proxy { handle, port, notes: self.notes, leads: self.leads, clock: self.clock }
    }
}

impl Proxy {
    pub(crate) fn decided(&self) -> Vec<ProxyDecision> {
        self.notes.decided.lock().unwrap().clone()
    }

    pub(crate) fn verdicts(&self) -> Vec<EgressVerdict> {
        self.decided().iter().map(|decided| decided.verdict).collect()
    }

    /// Waits until the counts are as they should be.
    pub(crate) fn until(&self, so: impl Fn(&Counts) -> bool) -> Counts {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            let counts = self.handle.counts();
            if so(&counts) {
                return counts;
            }
            assert!(Instant::now() < deadline, "it did not come about: {counts:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
