//! The configuration as it would be: a model is asked with it before a file is written.

use std::ffi::OsString;
use std::fs;
use std::io;

use herma_core::admission::NetworkClass;
use herma_core::model_call::Endpoint;
use herma_core::secret::Secret;
use herma_harness::ROUTER_FILE;
use herma_router::config::{Config, KeySource, Lookup, ProviderConfig, UpstreamConfig};
use herma_router::endpoint::path_of;

use super::credential::{Found, find};
use super::upstream::{Wanted, network_of, with_upstream};
use crate::choices::ProviderChoice;
use crate::error::QuickstartError;
use crate::session::Session;

/// The name under which the lookup has a credential that is in no file yet. It is no name of a variable.
const CANDIDATE: &str = "(the key that was given)";

/// A configuration with the upstream of the chosen model.
pub(crate) struct Candidate {
    /// The upstream's name.
    pub(crate) upstream: String,
    /// Its provider, where the set-up writes it.
    pub(crate) provider: Option<ProviderChoice>,
    /// The credential of an upstream that the set-up writes.
    pub(crate) credential: Found,
    /// The configuration, with the credential where it can be used now.
    pub(crate) config: Config,
    /// The new text of the file; none where it stays.
    pub(crate) changed_text: Option<String>,
}

/// The secrets of the operator, and the credential that is to be kept.
pub(crate) struct CandidateLookup<'a> {
    inner: &'a dyn Lookup,
    secret: Option<&'a Secret<String>>,
}

impl Lookup for CandidateLookup<'_> {
    fn variable(&self, name: &str) -> Option<OsString> {
        match self.secret {
            Some(secret) if name == CANDIDATE => Some(secret.expose().into()),
            _ => self.inner.variable(name),
        }
    }

    fn keyring(&self, service: &str, user: &str) -> Result<String, String> {
        self.inner.keyring(service, user)
    }
}

impl Candidate {
    /// The configured upstream that fits, or a new one with a credential.
    pub(crate) fn make(
        session: &Session<'_>,
        config: Option<&Config>,
        endpoint: Endpoint,
    ) -> Result<Self, QuickstartError> {
        if let Some((config, upstream)) = configured(session, config, endpoint)? {
            let provider = None;
            return Ok(Self { upstream, provider, credential: Found::None, config, changed_text: None });
        }
        let choices = session.choices;
        let provider = choices.provider.unwrap_or(match (&choices.url, endpoint) {
            (Some(_), _) => ProviderChoice::Compatible,
            (None, Endpoint::Messages) => ProviderChoice::Anthropic,
            (None, _) => ProviderChoice::OpenAi,
        });
        if provider == ProviderChoice::Compatible && choices.url.is_none() {
            return Err(QuickstartError::bad(
                "a compatible server has no address of its own",
                "name it with --url URL, for example --url http://127.0.0.1:8000/v1",
            ));
        }
        let upstream = choices.upstream.clone().unwrap_or_else(|| provider.as_str().to_owned());
        let is_on_this_machine =
            choices.url.as_deref().is_some_and(|url| network_of(url) == NetworkClass::Loopback);
        let credential = find(session, provider, &upstream, is_on_this_machine)?;
        let wanted = Wanted { name: &upstream, provider, url: choices.url.as_deref(), key: &credential };
        let file = session.installation.home.root().join(ROUTER_FILE);
        let before = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(QuickstartError::Io { path: file, doing: "read", source }),
        };
        let changed_text = with_upstream(&before, &wanted)?;
        let mut config = Config::parse(changed_text.as_deref().unwrap_or(&before), &file)?;
        if matches!(credential, Found::Kept { .. })
            && let Some(key) = config.upstreams.get_mut(&upstream).and_then(key_of)
        {
            *key = Some(KeySource::Environment(CANDIDATE.to_owned()));
        }
        check_endpoint(&config, &upstream, endpoint)?;
        Ok(Self { upstream, provider: Some(provider), credential, config, changed_text })
    }

    /// The secrets with which the configuration can be used.
    pub(crate) fn lookup<'a>(&'a self, inner: &'a dyn Lookup) -> CandidateLookup<'a> {
        let secret = match &self.credential {
            Found::Kept { secret, .. } => Some(secret),
            _ => None,
        };
        CandidateLookup { inner, secret }
    }

    /// The upstream as it will be read.
    pub(crate) fn upstream_config(&self) -> Option<&UpstreamConfig> {
        self.config.upstreams.get(&self.upstream)
    }

    /// The next step for a provider that does not answer as it should.
    pub(crate) fn advice(&self, session: &Session<'_>) -> String {
        let engine = &session.engine;
        match &self.credential {
            Found::Variable(name) => {
                format!(
                    "correct the key in {name}, or name another source: herma quickstart {engine} --key-file FILE"
                )
            }
            Found::File(path) => format!("correct the key in {}", self.shown(session, path)),
            Found::Keyring { service, user } => {
                format!("correct the key: keyctl add user {service}:{user} VALUE @u")
            }
            Found::Kept { .. } | Found::Later(_) => "give another key; this one was not kept".to_owned(),
            Found::None if self.provider.is_some() => {
                "start the server, or correct its address with --url; if it needs a key, add --key-file FILE"
                    .to_owned()
            }
            Found::None => format!(
                "correct `[upstreams.{}]` in {}",
                self.upstream,
                session.installation.home.root().join(ROUTER_FILE).display()
            ),
        }
    }

    #[allow(clippy::unused_self, reason = "a path is shown as its configuration reads it")]
    fn shown(&self, session: &Session<'_>, path: &std::path::Path) -> String {
        session.installation.home.root().join(path).display().to_string()
    }
}

fn key_of(upstream: &mut UpstreamConfig) -> Option<&mut Option<KeySource>> {
    match &mut upstream.provider {
        ProviderConfig::OpenAi(http) | ProviderConfig::Anthropic(http) | ProviderConfig::Compatible(http) => {
            Some(&mut http.key)
        }
        ProviderConfig::Scripted { .. } => None,
    }
}

/// The upstream of the operator's configuration that answers at the engine's API, if no flag asks for another.
fn configured(
    session: &Session<'_>,
    config: Option<&Config>,
    endpoint: Endpoint,
) -> Result<Option<(Config, String)>, QuickstartError> {
    let (choices, Some(config)) = (session.choices, config) else { return Ok(None) };
    if choices.url.is_some() || choices.credential.is_some() {
        return Ok(None);
    }
    let fits = |name: &String, upstream: &UpstreamConfig| {
        let is_named = choices.upstream.as_ref().is_none_or(|named| named == name);
        let is_of = choices.provider.is_none_or(|provider| provider.as_str() == upstream.provider.name());
        is_named && is_of && upstream.provider.endpoints().contains(&endpoint)
    };
    let mut found =
        config.upstreams.iter().filter(|(name, upstream)| fits(name, upstream)).map(|(name, _)| name);
    match (found.next(), found.next()) {
        (None, _) => Ok(None),
        (Some(only), None) => Ok(Some((config.clone(), only.clone()))),
        (Some(_), Some(_)) => {
            let names: Vec<&str> = config.upstreams.keys().map(String::as_str).collect();
            Err(QuickstartError::bad(
                format!("{ROUTER_FILE} has several upstreams that answer at {}", path_of(endpoint)),
                format!("name one with --upstream: {}", names.join(", ")),
            ))
        }
    }
}

fn check_endpoint(config: &Config, upstream: &str, endpoint: Endpoint) -> Result<(), QuickstartError> {
    let answers =
        config.upstreams.get(upstream).is_some_and(|found| found.provider.endpoints().contains(&endpoint));
    if answers {
        return Ok(());
    }
    let provider = config.upstreams.get(upstream).map_or("this provider", |found| found.provider.name());
    Err(QuickstartError::bad(
        format!("{provider} does not answer at {}, which the engine needs", path_of(endpoint)),
        "choose another provider with --provider",
    ))
}
