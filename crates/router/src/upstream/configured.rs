//! One upstream of the configuration.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response};

use super::anthropic::Anthropic;
use super::base_url::BaseUrl;
use super::body::UpstreamBody;
use super::circuit_breaker::CircuitBreaker;
use super::client::HttpClient;
use super::compatible::Compatible;
use super::openai::OpenAi;
use super::problem::{BadUpstream, SendError};
use super::provider::{OverHttp, Provider};
use super::remote::Remote;
use super::scripted::ScriptedUpstream;
use super::scrub::Scrub;
use super::{headers, roots};
use crate::config::{Http, ProviderConfig, RequestLimits, Secrets, UpstreamConfig};
use herma_dialect::MaximumKey;
use herma_dialect::endpoint::Endpoint;

/// One configured upstream with its circuit breaker. Shared by all calls.
pub struct Upstream {
    name: String,
    transport: Transport,
    scrub: Scrub,
    retry_ambiguous: bool,
    /// Request keys that it takes besides those of the API.
    extra_request_keys: Vec<String>,
    circuit_breaker: CircuitBreaker,
}

/// The transport to the upstream.
enum Transport {
    Remote(Box<Remote>),
    Scripted(ScriptedUpstream),
}

/// An outgoing request.
#[derive(Clone)]
pub struct Outgoing {
    /// The API.
    pub endpoint: Endpoint,
    /// Whether the client sent Anthropic's `?beta=true`.
    pub beta_query: bool,
    /// The forwarded headers of the client.
    pub headers: HeaderMap,
    /// The rewritten body.
    pub body: Bytes,
    /// The run. Only scripts use it.
    pub run: Arc<str>,
}

impl Upstream {
    /// Builds an upstream from its configuration; reads certificates and scripts. Nothing is sent.
    pub fn new(
        name: &str,
        config: &UpstreamConfig,
        secrets: &Secrets,
        limits: &RequestLimits,
    ) -> Result<Self, BadUpstream> {
        let times = (limits.first_byte, limits.idle);
        let key = secrets.key(name).map(|key| key.expose().as_str());
        let authorization = |before: &str| -> Result<Option<HeaderValue>, BadUpstream> {
            let bad = || BadUpstream::Key(name.to_owned());
            key.map(|key| headers::secret(before, key).ok_or_else(bad)).transpose()
        };
        let (http, provider): (&Http, Box<dyn OverHttp>) = match &config.provider {
            ProviderConfig::OpenAi(http) => {
                (http, Box::new(OpenAi { authorization: authorization("Bearer ")? }))
            }
            ProviderConfig::Anthropic(http) => (http, Box::new(Anthropic { key: authorization("")? })),
            ProviderConfig::Compatible(http) => {
                let compatible =
                    Compatible { authorization: authorization("Bearer ")?, maximum_key: http.maximum_key };
                (http, Box::new(compatible))
            }
            ProviderConfig::Scripted { scripts } => {
                let scripted = ScriptedUpstream::read(name, scripts, times)?;
                return Ok(Self::by(name, config, Transport::Scripted(scripted), Scrub::new(None, None)));
            }
        };
        let configured = secrets.url(name).map(|url| url.expose().as_str());
        let url = configured.or(provider.own_url()).ok_or_else(|| BadUpstream::NoUrl(name.to_owned()))?;
        let bad_url = || BadUpstream::Url(name.to_owned());
        let base_url = BaseUrl::parse(url).ok_or_else(bad_url)?;
        let tls = if base_url.is_tls() {
            roots::trusting(name, http.roots.as_deref())?
        } else {
            roots::trusting_nobody(name)?
        };
        let client = HttpClient::new(tls, http.http, (limits.connect, limits.first_byte));
        let remote = Remote::new(provider, client, &base_url, limits.idle).ok_or_else(bad_url)?;
        // A provider's public URL is no secret.
        let scrub = Scrub::new(key, configured.map(|_| &base_url));
        Ok(Self::by(name, config, Transport::Remote(Box::new(remote)), scrub))
    }

    fn by(name: &str, config: &UpstreamConfig, transport: Transport, scrub: Scrub) -> Self {
        let extra_request_keys =
            config.provider.http().map(|http| http.extra_request_keys.clone()).unwrap_or_default();
        Self {
            name: name.to_owned(),
            transport,
            scrub,
            retry_ambiguous: config.retry_ambiguous,
            extra_request_keys,
            circuit_breaker: CircuitBreaker::default(),
        }
    }

    /// Its name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its provider: `openai`, `anthropic`, `compatible`, `scripted`.
    #[must_use]
    pub fn provider(&self) -> &'static str {
        self.transport.provider().name()
    }

    /// Whether it has this API.
    #[must_use]
    pub fn answers(&self, endpoint: Endpoint) -> bool {
        self.transport.provider().answers(endpoint)
    }

    /// The key that bounds its output, and whether to insert it beside other such keys, which it may not know. `None` where
    /// there is no output to bound.
    #[must_use]
    pub fn maximum_key(&self, endpoint: Endpoint) -> Option<(MaximumKey, bool)> {
        self.transport.provider().maximum_key(endpoint)
    }

    /// Whether another upstream is tried after an ambiguous attempt at this one.
    #[must_use]
    pub fn retry_ambiguous(&self) -> bool {
        self.retry_ambiguous
    }

    /// Whether it takes a key that the API does not list.
    #[must_use]
    pub fn takes_key(&self, key: &str) -> bool {
        self.extra_request_keys.iter().any(|taken| taken == key)
    }

    /// The models of its scripts; none for other providers.
    #[must_use]
    pub fn models(&self) -> Vec<&str> {
        match &self.transport {
            Transport::Remote(_) => Vec::new(),
            Transport::Scripted(scripted) => scripted.models(),
        }
    }

    /// Sends a request and waits for the head of the response. Dropping the future ends the call.
    pub async fn send(&self, outgoing: Outgoing) -> Result<Response<UpstreamBody>, SendError> {
        match &self.transport {
            Transport::Remote(remote) => remote.send(outgoing).await,
            Transport::Scripted(scripted) => scripted.send(&outgoing).await,
        }
    }

    /// Asks a provider over HTTP for its list of models; none for scripts.
    pub(super) async fn ask_for_models(&self) -> Option<Result<Response<UpstreamBody>, SendError>> {
        match &self.transport {
            Transport::Remote(remote) => Some(remote.list_models().await),
            Transport::Scripted(_) => None,
        }
    }

    /// The body without the key and the URL of this upstream; `None` if it has neither.
    #[must_use]
    pub fn scrub(&self, body: &[u8]) -> Option<Vec<u8>> {
        self.scrub.apply(body)
    }

    /// Whether the key or the URL of this upstream is in it.
    #[must_use]
    pub fn is_told_by(&self, text: &[u8]) -> bool {
        self.scrub.is_in(text)
    }

    /// Its circuit breaker.
    #[must_use]
    pub fn circuit_breaker(&self) -> &CircuitBreaker {
        &self.circuit_breaker
    }
}

impl Transport {
    fn provider(&self) -> &dyn Provider {
        match self {
            Self::Remote(remote) => remote.provider(),
            Self::Scripted(scripted) => scripted,
        }
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("name", &self.name)
            .field("provider", &self.provider())
            .finish_non_exhaustive()
    }
}

/// Without the client's data.
impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing")
            .field("endpoint", &self.endpoint)
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}
