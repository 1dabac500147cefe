//! Routers with scripts behind them, and servers in a router's place.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use herma_core::Clock;
use herma_core::Timestamp;
use herma_core::secret::Secret;
use herma_dialect::endpoint::Endpoint;
use herma_router::budget::{InMemory, Limits};
use herma_router::config::{Address, Config, Lookup};
use herma_router::grant::{AdmittedModel, Grant, Link};
use herma_router::probe::{Capabilities, ProbeBudget, ProbeFailed, Support, probe};
use herma_router::service::{Handle, Options, Service};
use herma_router::upstream::Upstream;
use tempfile::TempDir;

/// All APIs at which a model converses.
pub(crate) const ENDPOINTS: [Endpoint; 3] = [Endpoint::Chat, Endpoint::Responses, Endpoint::Messages];

/// Enough for every script that ends, and soon over for one that does not.
pub(crate) const BUDGET: ProbeBudget = ProbeBudget { output: 1024, time: Duration::from_secs(20) };

/// The same where the end of the time is what is looked for.
pub(crate) const SHORT: ProbeBudget = ProbeBudget { output: 1024, time: Duration::from_millis(400) };

/// A model that can do everything.
pub(crate) const GOOD: Turns = Turns {
    content: "{ say: ready }",
    stream: "{ say: one two three four five }",
    tool: "{ call: { shell: echo ready } }",
};

/// The turn that answers each question, as a script has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    pub(crate) content: &'static str,
    pub(crate) stream: &'static str,
    pub(crate) tool: &'static str,
}

struct Nothing;

impl Lookup for Nothing {
    fn variable(&self, _: &str) -> Option<OsString> {
        None
    }

    fn keyring(&self, _: &str, _: &str) -> Result<String, String> {
        Err("there is none".to_owned())
    }
}

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// A router with scripts behind it.
pub(crate) struct Routed {
    pub(crate) handle: Handle,
    pub(crate) address: Address,
    pub(crate) token: Secret<String>,
    _dir: TempDir,
}

impl Routed {
    pub(crate) fn new(turns: Turns) -> Self {
        Self::bounded(turns, Limits::default(), 4096)
    }

    /// The same with a budget, and a ceiling for each answer.
    pub(crate) fn bounded(turns: Turns, limits: Limits, ceiling: u64) -> Self {
        let dir = TempDir::new().unwrap();
        let marked = [
            ("content", "one word", turns.content),
            ("stream", "Count from", turns.stream),
            ("tool", "Call the tool", turns.tool),
        ];
        for (name, marker, turn) in marked {
            let script = format!("name: {name}\nmatch: {{ marker: {marker} }}\nturns:\n  - {turn}\n");
            fs::write(dir.path().join(format!("{name}.yaml")), script).unwrap();
        }
        let text = "state = \"state\"\n[listen]\naddress = \"unix:router.sock\"\n[upstreams.script]\n\
                    provider = \"scripted\"\nscripts = [\"content.yaml\", \"stream.yaml\", \"tool.yaml\"]\n";
        let config = Config::parse(text, &dir.path().join("router.toml")).unwrap();
        let secrets = config.secrets(&Nothing).unwrap();
        let upstream =
            Upstream::new("script", &config.upstreams["script"], &secrets, &config.limits).unwrap();
        let handle = Service::start(Options {
            limits: config.limits.clone(),
            upstreams: vec![upstream],
            per_day: Limits::default(),
            per_engine: BTreeMap::new(),
            leases: Arc::new(InMemory::default()),
            holder: "probe".to_owned(),
            earlier: BTreeMap::new(),
            clock: Arc::new(Stopped),
        })
        .unwrap();
        let address = handle.listen(&config.listen).unwrap();
        let link = Link { upstream: Arc::from("script"), model: Arc::from("m-1"), price: None };
        let model = AdmittedModel { chain: vec![link], default_output: ceiling, ceiling };
        let grant = Grant {
            run: Arc::from("probe"),
            engine: None,
            models: BTreeMap::from([("m".to_owned(), Arc::new(model))]),
            reaches: Vec::new(),
            limits,
        };
        let audit = dir.path().join("audit");
        fs::create_dir(&audit).unwrap();
        let token = handle.admit(grant, &audit).unwrap();
        Self { handle, address, token, _dir: dir }
    }

    pub(crate) fn probe(&self, endpoints: &[Endpoint]) -> Result<Capabilities, ProbeFailed> {
        probe(&self.address, &self.token, "m", endpoints, BUDGET)
    }
}

/// The result of a probe of a model with these turns at one API.
pub(crate) fn probed(turns: Turns, endpoint: Endpoint) -> Result<Capabilities, ProbeFailed> {
    Routed::new(turns).probe(&[endpoint])
}

/// Why it is not supported; nothing where it is, or was not asked.
pub(crate) fn why(support: &Support) -> &str {
    match support {
        Support::No(why) => why,
        Support::Yes | Support::NotAsked => "",
    }
}

/// A server in a router's place, which answers each request with what `answer` makes of it.
pub(crate) fn server(answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if let Some(request) = request(&mut stream) {
                answer(&request, &mut stream);
            }
        }
    });
    Address::Tcp(address)
}

/// A whole request, as its client sent it.
fn request(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    let mut byte = [0; 1];
    while !request.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        request.push(byte[0]);
    }
    let mut head = String::from_utf8(request).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).ok()?;
    head.push_str(std::str::from_utf8(&body).unwrap());
    Some(head)
}

/// Answers with 200 and a body, as an upstream's answer comes from the router.
pub(crate) fn answer(stream: &mut TcpStream, kind: &str, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nx-herma-upstream: up/m\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    // The client may have left.
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
}

/// The result of a probe of such a server at one API.
pub(crate) fn of_server(
    endpoint: Endpoint,
    answer: impl Fn(&str, &mut TcpStream) + Send + 'static,
) -> Result<Capabilities, ProbeFailed> {
    probe(&server(answer), &Secret::new("token".to_owned()), "m", &[endpoint], BUDGET)
}
