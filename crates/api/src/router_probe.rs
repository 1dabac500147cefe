//! Probes a model with a temporary router: does it answer, stream and call tools?

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use herma_core::visible::visible_line;
use herma_harness::SystemClock;
use herma_router::budget::{InMemory, Limits};
use herma_router::config::{Address, BadConfig, Config, Lookup, UpstreamConfig};
use herma_router::endpoint::Endpoint;
use herma_router::grant::{AdmittedModel, Grant, Link};
use herma_router::probe::{CONVERSING, Capabilities, ProbeBudget, ProbeFailed, probe};
use herma_router::service::{AdmitError, Options, Service, StartError};
use herma_router::upstream::{BadUpstream, Upstream};

use crate::output::RouterProbeOutput;

/// The most requests at one API: content, stream, tool call, and the last one again.
const MAX_REQUESTS: u64 = 4;

/// The time for the router to write its records after the last request.
const DRAIN: Duration = Duration::from_secs(5);

/// A model cannot be probed.
#[derive(Debug, thiserror::Error)]
pub enum RouterProbeError {
    /// The configuration or a secret that it names cannot be used.
    #[error(transparent)]
    Config(#[from] BadConfig),
    /// The upstream cannot be used.
    #[error(transparent)]
    Upstream(#[from] BadUpstream),
    /// The name has no upstream or no model.
    #[error("`{}` is not UPSTREAM/MODEL", visible_line(.0))]
    BadName(String),
    /// The configuration has no such upstream.
    #[error("the configuration has no upstream `{}`", visible_line(name))]
    UnknownUpstream {
        /// The upstream.
        name: String,
        /// The upstreams of the configuration.
        known: Vec<String>,
    },
    /// The upstream does not have the API.
    #[error("`{name}` is of the provider {provider}, which has no such API")]
    NoSuchApi {
        /// The upstream.
        name: String,
        /// Its provider.
        provider: &'static str,
    },
    /// The temporary router cannot start.
    #[error(transparent)]
    Start(StartError),
    /// The temporary router cannot listen.
    #[error(transparent)]
    Listen(StartError),
    /// The temporary router does not admit the probe.
    #[error(transparent)]
    Admit(#[from] AdmitError),
    /// There is no temporary directory.
    #[error(transparent)]
    Directory(#[from] std::io::Error),
}

impl RouterProbeError {
    /// Whether the user named something that cannot be probed; an error of the system otherwise.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Config(_)
            | Self::Upstream(_)
            | Self::BadName(_)
            | Self::UnknownUpstream { .. }
            | Self::NoSuchApi { .. } => true,
            Self::Start(_) | Self::Listen(_) | Self::Admit(_) | Self::Directory(_) => false,
        }
    }

    /// The next step for the user; none where none is known.
    #[must_use]
    pub fn next_step(&self) -> Option<String> {
        Some(match self {
            Self::Config(_) => "`herma router example` prints a whole configuration to start from".to_owned(),
            Self::BadName(_) => {
                "name an upstream of the configuration, `/`, and the model as that upstream calls it"
                    .to_owned()
            }
            Self::UnknownUpstream { known, .. } => format!("it has: {}", known.join(", ")),
            Self::NoSuchApi { .. } => "leave --api out to ask at all that it has".to_owned(),
            Self::Listen(_) => {
                "set TMPDIR to a directory with a short path, where sockets can be made".to_owned()
            }
            Self::Upstream(_) | Self::Start(_) | Self::Admit(_) | Self::Directory(_) => return None,
        })
    }
}

/// Probes the model `UPSTREAM/MODEL` of a configuration, at one API or at all APIs of the upstream.
pub fn probe_model(
    named: &str,
    file: &Path,
    api: Option<Endpoint>,
    secrets: &dyn Lookup,
) -> Result<RouterProbeOutput, RouterProbeError> {
    probe_configured(&Config::read(file)?, named, api, secrets)
}

/// The same for a configuration that may not be in a file yet.
pub fn probe_configured(
    config: &Config,
    named: &str,
    api: Option<Endpoint>,
    secrets: &dyn Lookup,
) -> Result<RouterProbeOutput, RouterProbeError> {
    let (name, model) = named
        .split_once('/')
        .filter(|(_, model)| !model.is_empty())
        .ok_or_else(|| RouterProbeError::BadName(named.to_owned()))?;
    let upstream = config.upstreams.get(name).ok_or_else(|| RouterProbeError::UnknownUpstream {
        name: name.to_owned(),
        known: config.upstreams.keys().cloned().collect(),
    })?;
    let endpoints = endpoints(name, upstream, api)?;
    let (capabilities, blocker) = match ask(config, name, model, &endpoints, secrets)? {
        Probed::Answered(found) => {
            let blocker = found.blocker().map(|(blocker, why)| blocker.because(why));
            (Some(*found), blocker)
        }
        Probed::Failed(failed) => (None, Some(failed.record())),
    };
    Ok(RouterProbeOutput {
        schema: "herma.router-probe/v1",
        upstream: name.to_owned(),
        model: model.to_owned(),
        capabilities,
        blocker,
    })
}

/// The result of a probe.
enum Probed {
    Answered(Box<Capabilities>),
    Failed(ProbeFailed),
}

/// The APIs to probe.
fn endpoints(
    name: &str,
    upstream: &UpstreamConfig,
    api: Option<Endpoint>,
) -> Result<Vec<Endpoint>, RouterProbeError> {
    let has = |endpoint: &Endpoint| upstream.provider.endpoints().contains(endpoint);
    match api {
        None => Ok(CONVERSING.into_iter().filter(has).collect()),
        Some(endpoint) if has(&endpoint) => Ok(vec![endpoint]),
        Some(_) => {
            let provider = upstream.provider.name();
            Err(RouterProbeError::NoSuchApi { name: name.to_owned(), provider })
        }
    }
}

/// Starts a router with this model alone and probes it. Shared budgets do not apply; the number of requests is limited.
fn ask(
    config: &Config,
    name: &str,
    model: &str,
    endpoints: &[Endpoint],
    secrets: &dyn Lookup,
) -> Result<Probed, RouterProbeError> {
    let mut config = config.clone();
    // Only the secrets of this upstream are needed, so no others are read.
    config.upstreams.retain(|known, _| known == name);
    config.clients.clear();
    let secrets = config.secrets(secrets)?;
    let limits = config.limits.clone();
    let make =
        |(name, upstream): (&String, &UpstreamConfig)| Upstream::new(name, upstream, &secrets, &limits);
    let upstreams = config.upstreams.iter().map(make).collect::<Result<Vec<_>, _>>()?;
    let budget = ProbeBudget::default();
    let grant = Grant {
        run: Arc::from("probe"),
        engine: None,
        models: BTreeMap::from([(model.to_owned(), Arc::new(admitted(&config, name, model, budget)))]),
        reaches: Vec::new(),
        limits: Limits { requests: Some(MAX_REQUESTS * endpoints.len() as u64), ..Limits::default() },
    };
    let handle = Service::start(Options {
        limits,
        upstreams,
        per_day: Limits::default(),
        per_engine: BTreeMap::new(),
        leases: Arc::new(InMemory::default()),
        holder: "probe".to_owned(),
        earlier: BTreeMap::new(),
        clock: Arc::new(SystemClock),
    })
    .map_err(RouterProbeError::Start)?;
    let scratch = tempfile::tempdir()?;
    let socket = Address::Unix(scratch.path().join("router.sock"));
    let address = handle.listen(&socket).map_err(RouterProbeError::Listen)?;
    let token = handle.admit(grant, scratch.path())?;
    let found = probe(&address, &token, model, endpoints, budget);
    let _ = handle.drain(DRAIN);
    Ok(match found {
        Ok(capabilities) => Probed::Answered(Box::new(capabilities)),
        Err(failed) => Probed::Failed(failed),
    })
}

fn admitted(config: &Config, upstream: &str, model: &str, budget: ProbeBudget) -> AdmittedModel {
    let price = config.prices.get(&format!("{upstream}/{model}")).copied();
    let link = Link { upstream: Arc::from(upstream), model: Arc::from(model), price };
    AdmittedModel { chain: vec![link], default_output: budget.output, ceiling: budget.output }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;

    use herma_core::Blocker;
    use herma_router::probe::Support;
    use tempfile::TempDir;

    use super::*;

    struct Nothing;

    impl Lookup for Nothing {
        fn variable(&self, _: &str) -> Option<OsString> {
            None
        }

        fn keyring(&self, _: &str, _: &str) -> Result<String, String> {
            Err("there is none".to_owned())
        }
    }

    /// A configuration with a script that has this turn, and an upstream whose key is not there.
    fn configured(turn: &str) -> TempDir {
        let dir = TempDir::new().unwrap();
        let config = r#"
            state = "state"
            listen = { address = "127.0.0.1:4000" }
            upstreams.rehearsal = { provider = "scripted", scripts = ["script.yaml"] }
            upstreams.anthropic = { provider = "anthropic", key = { env = "NOT_SET" } }
        "#;
        fs::write(dir.path().join("router.toml"), config).unwrap();
        fs::write(dir.path().join("script.yaml"), format!("name: script\nturns:\n  - {turn}\n")).unwrap();
        dir
    }

    fn found(turn: &str, named: &str, api: Option<Endpoint>) -> Result<RouterProbeOutput, RouterProbeError> {
        let dir = configured(turn);
        let output = probe_model(named, &dir.path().join("router.toml"), api, &Nothing);
        let files: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(files.len(), 2, "nothing is left beside the configuration: {files:?}");
        output
    }

    #[test]
    fn a_model_is_asked_at_all_its_apis_or_at_one() {
        let output = found("say: ready", "rehearsal/any", None).unwrap();
        let all = output.capabilities.unwrap();
        assert_eq!((&*all.endpoints, &all.content, output.blocker), (&CONVERSING[..], &Support::Yes, None));
        assert!(matches!(all.tool_calls, Support::No(_)));
        let one = found("call: { shell: ls }", "rehearsal/any/model", Some(Endpoint::Messages)).unwrap();
        assert_eq!(one.model, "any/model");
        let one = one.capabilities.unwrap();
        assert_eq!((&*one.endpoints, one.tool_calls), (&[Endpoint::Messages][..], Support::Yes));
    }

    #[test]
    fn the_blocker_of_a_model_is_named() {
        let output = found("think: hm", "rehearsal/any", None).unwrap();
        assert_eq!(output.blocker.unwrap().blocker, Blocker::ProviderReasoningOnly);
        let output = found("error: 503", "rehearsal/any", None).unwrap();
        assert_eq!(output.blocker.unwrap().blocker, Blocker::ProviderUnavailable);
        assert!(output.capabilities.is_none());
    }

    #[test]
    fn bad_input_is_reported_before_any_request() {
        let rows = [
            ("rehearsal", None, "is not UPSTREAM/MODEL"),
            ("rehearsal/", None, "is not UPSTREAM/MODEL"),
            ("openai/gpt", None, "no upstream `openai`"),
            ("anthropic/claude", Some(Endpoint::Chat), "no such API"),
            ("anthropic/claude", None, "NOT_SET"),
        ];
        for (named, api, part) in rows {
            let error = found("say: ready", named, api).unwrap_err();
            assert!(error.is_bad_input() && error.to_string().contains(part), "{named}: {error}");
        }
    }
}
