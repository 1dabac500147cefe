//! A router with servers behind it, all in this process, and what can be asked of them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use herma_core::model_call::{self, ModelCall};
use herma_core::{Clock, Timestamp};
use herma_router::budget::{Amount, BudgetState, InMemory, Scope};
use herma_router::config::{Address, Config, Lookup, RequestLimits};
use herma_router::service::{Handle, Options, ParentBudget, Service, State};
use herma_router::upstream::Upstream;
use tempfile::TempDir;

use super::client::{Client, Reply};
use super::server::Server;

/// The key of every upstream here.
pub(crate) const KEY: &str = "sk-canary-4f9d/+0a1b2c3d4e5f";
/// The token of the agent.
pub(crate) const TOKEN: &str = "herma-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// Longer than any wait in a test, shorter than anybody's patience.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Every endpoint, with a request to the model `m` that it takes.
pub(crate) const ENDPOINTS: [(&str, &str); 6] = [
    ("/v1/chat/completions", r#"{"model":"m","messages":[{"role":"user","content":"Hello."}]}"#),
    ("/v1/responses", r#"{"model":"m","input":"Hello."}"#),
    ("/v1/messages", r#"{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"Hello."}]}"#),
    ("/v1/messages/count_tokens", r#"{"model":"m","messages":[{"role":"user","content":"Hello."}]}"#),
    ("/v1/completions", r#"{"model":"m","prompt":"Hello."}"#),
    ("/v1/embeddings", r#"{"model":"m","input":"Hello."}"#),
];

/// The three at which a model converses, with a request that wants a stream and names its maximum.
pub(crate) const STREAMS: [(&str, &str); 3] = [
    (
        "/v1/chat/completions",
        r#"{"model":"m","stream":true,"max_tokens":50,"messages":[{"role":"user","content":"Hello."}]}"#,
    ),
    ("/v1/responses", r#"{"model":"m","stream":true,"max_output_tokens":50,"input":"Hello."}"#),
    (
        "/v1/messages",
        r#"{"model":"m","stream":true,"max_tokens":50,"messages":[{"role":"user","content":"Hello."}]}"#,
    ),
];

struct Environment;

impl Lookup for Environment {
    fn variable(&self, name: &str) -> Option<OsString> {
        match name {
            "KEY" => Some(KEY.into()),
            "TOKEN" => Some(TOKEN.into()),
            _ => None,
        }
    }

    fn keyring(&self, _: &str, _: &str) -> Result<String, String> {
        Err("there is none".to_owned())
    }
}

/// A clock that moves by a second with each look.
#[derive(Default)]
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + self.0.fetch_add(1, Ordering::Relaxed)).unwrap()
    }
}

/// The parts of a router.
pub(crate) struct Setup {
    pub(crate) limits: String,
    pub(crate) upstreams: Vec<String>,
    pub(crate) models: String,
    pub(crate) client: String,
    /// The grant of the client.
    pub(crate) asks: &'static str,
    pub(crate) scripts: Vec<(&'static str, String)>,
}

impl Setup {
    /// The model `m`, answered by the first of these servers, then by the next. They are the upstreams `a`, `b`, `c`, of
    /// a provider that has every endpoint.
    pub(crate) fn new(servers: &[&Server]) -> Self {
        Self::of("compatible", servers)
    }

    pub(crate) fn of(provider: &str, servers: &[&Server]) -> Self {
        let names = ["a", "b", "c"];
        let upstreams = names.iter().zip(servers).map(|(name, server)| {
            format!(
                "[upstreams.{name}]\nprovider = \"{provider}\"\nkey = {{ env = \"KEY\" }}\nurl = \"{}\"\n",
                server.url()
            )
        });
        let upstreams: Vec<String> = upstreams.collect();
        let chain: Vec<String> =
            names[..upstreams.len()].iter().map(|name| format!("\"{name}/model-{name}\"")).collect();
        Self {
            limits: "head = \"20s\"\nfirst_byte = \"20s\"\nidle = \"20s\"\n".to_owned(),
            upstreams,
            models: format!(
                "chain = [{}]\naliases = [\"also-m\"]\ndefault_output = 100\nceiling = 400",
                chain.join(", ")
            ),
            client: String::new(),
            asks: "[\"m\"]",
            scripts: Vec::new(),
        }
    }

    /// One upstream that answers by this script.
    pub(crate) fn scripted(script: &str) -> Self {
        let mut setup = Self::new(&[]);
        setup
            .upstreams
            .push("[upstreams.a]\nprovider = \"scripted\"\nscripts = [\"script.yaml\"]\n".to_owned());
        setup.models = setup.models.replacen("[]", "[\"a/model-a\"]", 1);
        setup.scripts.push(("script.yaml", script.to_owned()));
        setup
    }

    /// More keys of the upstream at this place.
    pub(crate) fn upstream(mut self, at: usize, lines: &str) -> Self {
        self.upstreams[at].push_str(lines);
        self.upstreams[at].push('\n');
        self
    }

    /// More keys of the one client.
    pub(crate) fn client(mut self, lines: &str) -> Self {
        self.client.push_str(lines);
        self.client.push('\n');
        self
    }

    /// More tables.
    pub(crate) fn and(mut self, tables: &str) -> Self {
        self.upstreams.push(tables.to_owned());
        self
    }

    /// Other limits.
    pub(crate) fn limits(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.limits);
        self
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "state = \"state\"\n[listen]\naddress = \"127.0.0.1:0\"\n[limits]\n{}\n{}\n[models.m]\n{}\n\
             [clients.agent]\ntoken = {{ env = \"TOKEN\" }}\nmodels = {}\n{}\n",
            self.limits,
            self.upstreams.join("\n"),
            self.models,
            self.asks,
            self.client
        )
    }

    /// The client may ask these.
    pub(crate) fn asks(mut self, models: &'static str) -> Self {
        self.asks = models;
        self
    }

    /// Starts it.
    pub(crate) fn start(self) -> Router {
        self.start_below(None)
    }

    /// Starts it as the router of a run below another one.
    pub(crate) fn start_below(self, above: Option<&ParentBudget>) -> Router {
        let dir = TempDir::new().unwrap();
        for (name, script) in &self.scripts {
            fs::write(dir.path().join(name), script).unwrap();
        }
        let config = Config::parse(&self.text(), &dir.path().join("router.toml"));
        let config = config.unwrap_or_else(|bad| panic!("{bad}"));
        let secrets = config.secrets(&Environment).unwrap_or_else(|bad| panic!("{bad}"));
        let upstream =
            |(name, upstream): (&String, _)| Upstream::new(name, upstream, &secrets, &config.limits).unwrap();
        let options = Options {
            // Races want two.
            limits: RequestLimits { threads: 2, ..config.limits.clone() },
            upstreams: config.upstreams.iter().map(upstream).collect(),
            per_day: config.budgets.day,
            per_engine: config.budgets.engines.clone(),
            leases: Arc::new(InMemory::default()),
            holder: "test".to_owned(),
            earlier: BTreeMap::new(),
            clock: Arc::new(Ticking::default()),
        };
        let handle = Service::start_below(options, above).unwrap();
        let Address::Tcp(tcp) = handle.listen(&config.listen).unwrap() else { panic!("not a port") };
        let unix = dir.path().join("agent.sock");
        handle.listen(&Address::Unix(unix.clone())).unwrap();
        let audit = dir.path().join("audit");
        fs::create_dir(&audit).unwrap();
        for (token, grant) in config.grants(&secrets) {
            handle.admit_with(&token, grant, &audit).unwrap();
        }
        Router { client: Client::new(tcp), unix, handle: Some(handle), dir }
    }
}

/// A router that runs.
pub(crate) struct Router {
    pub(crate) client: Client,
    pub(crate) unix: PathBuf,
    handle: Option<Handle>,
    pub(crate) dir: TempDir,
}

impl Router {
    pub(crate) fn handle(&self) -> &Handle {
        self.handle.as_ref().unwrap()
    }

    pub(crate) fn state(&self) -> State {
        self.handle().state().unwrap()
    }

    pub(crate) fn take_handle(&mut self) -> Handle {
        self.handle.take().unwrap()
    }

    /// Asks as the agent does.
    pub(crate) fn post(&self, path: &str, body: &str) -> Reply {
        self.client.post(path, body)
    }

    /// The content of a file of the audit.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join("audit").join(name)).unwrap_or_default()
    }

    /// The records of all calls, which are so many. The last of them may take a moment.
    pub(crate) fn records(&self, count: usize) -> Vec<ModelCall> {
        let written = || self.file("model-calls.jsonl").lines().count();
        eventually("the records", || written() >= count);
        self.quiet();
        let text = self.file("model-calls.jsonl");
        let mut records = Vec::new();
        let run = "agent";
        model_call::read(text.as_bytes(), run, |record: &ModelCall| records.push(record.clone()))
            .unwrap_or_else(|broken| panic!("{broken:?}\n{text}"));
        assert_eq!(records.len(), count, "{text}");
        records
    }

    /// The one record.
    pub(crate) fn record(&self) -> ModelCall {
        self.records(1).remove(0)
    }

    /// Waits until no call is under way, and sees that nothing stays set aside.
    pub(crate) fn quiet(&self) {
        eventually("all calls end", || self.state().under_way == 0);
        for budget in self.state().budgets {
            assert_eq!(budget.reserved, Amount::default(), "{:?}", budget.scope);
        }
    }

    /// The agent's own budget.
    pub(crate) fn budget(&self) -> BudgetState {
        let all = self.state().budgets;
        all.into_iter().find(|budget| matches!(budget.scope, Scope::Run(_))).unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Waits until something holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < LONG, "{what}: not within {LONG:?}");
        thread::sleep(Duration::from_millis(5));
    }
}
