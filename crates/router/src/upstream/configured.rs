//! One upstream of the configuration.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response};

use super::anthropic::Anthropic;
use super::body::UpstreamBody;
use super::client::HttpClient;
use super::compatible::Compatible;
use super::endpoint::Endpoint;
use super::headers::Fields;
use super::openai::OpenAi;
use super::problem::{BadUpstream, SendError};
use super::provider::{OverHttp, Provider};
use super::remote::Remote;
use super::rest::Rest;
use super::scripted::ScriptedUpstream;
use super::scrub::Scrub;
use super::{headers, roots};
use crate::config::{Http, ProviderConfig, RequestLimits, Secrets, UpstreamConfig};
use crate::dialect::MaximumKey;
use crate::door::Door;

/// One configured upstream: whom it asks, and how it fares. Shared by all calls.
pub struct Upstream {
    name: String,
    way: Way,
    scrub: Scrub,
    retry_ambiguous: bool,
    /// The keys of requests that it takes besides those of the API.
    extra_request_keys: Vec<String>,
    rest: Rest,
}

/// How it is reached.
enum Way {
    Remote(Box<Remote>),
    Scripted(ScriptedUpstream),
}

/// A request that is about to leave.
#[derive(Clone)]
pub struct Outgoing {
    /// Which API.
    pub door: Door,
    /// Whether the client asked with Anthropic's `?beta=true`.
    pub beta_query: bool,
    /// The client's headers, only those that pass.
    pub headers: Fields,
    /// The body, rewritten as it must be.
    pub body: Bytes,
    /// Whose request it is. Only scripts are told.
    pub run: Arc<str>,
}

impl Upstream {
    /// Makes ready what the configuration describes; reads certificates and scripts. Nothing is sent.
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
                return Ok(Self::by(name, config, Way::Scripted(scripted), Scrub::new(None, None)));
            }
        };
        let configured = secrets.url(name).map(|url| url.expose().as_str());
        let url = configured.or(provider.own_url()).ok_or_else(|| BadUpstream::NoUrl(name.to_owned()))?;
        let bad_url = || BadUpstream::Url(name.to_owned());
        let endpoint = Endpoint::parse(url).ok_or_else(bad_url)?;
        let tls = if endpoint.is_tls() {
            roots::trusting(name, http.roots.as_deref())?
        } else {
            roots::trusting_nobody(name)?
        };
        let client = HttpClient::new(&endpoint, tls, http.http, (limits.connect, limits.first_byte))
            .ok_or_else(bad_url)?;
        let remote = Remote::new(provider, client, &endpoint, limits.idle).ok_or_else(bad_url)?;
        // A provider's own endpoint is no secret.
        let scrub = Scrub::new(key, configured.map(|_| &endpoint));
        Ok(Self::by(name, config, Way::Remote(Box::new(remote)), scrub))
    }

    fn by(name: &str, config: &UpstreamConfig, way: Way, scrub: Scrub) -> Self {
        let extra_request_keys =
            config.provider.http().map(|http| http.extra_request_keys.clone()).unwrap_or_default();
        Self {
            name: name.to_owned(),
            way,
            scrub,
            retry_ambiguous: config.retry_ambiguous,
            extra_request_keys,
            rest: Rest::default(),
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
        self.way.provider().name()
    }

    /// Whether it has this API.
    #[must_use]
    pub fn answers(&self, door: Door) -> bool {
        self.way.provider().answers(door)
    }

    /// The key by which it bounds its output, and whether that is to be inserted also beside others, which it may not
    /// know. None where nothing is to be bounded.
    #[must_use]
    pub fn maximum_key(&self, door: Door) -> Option<(MaximumKey, bool)> {
        self.way.provider().maximum_key(door)
    }

    /// Whether another upstream is asked where nobody knows if this one was.
    #[must_use]
    pub fn retry_ambiguous(&self) -> bool {
        self.retry_ambiguous
    }

    /// Whether it takes a key that the API does not list.
    #[must_use]
    pub fn takes_key(&self, key: &str) -> bool {
        self.extra_request_keys.iter().any(|taken| taken == key)
    }

    /// The models that its scripts claim to be; none for others, whose models the configuration names.
    #[must_use]
    pub fn models(&self) -> Vec<&str> {
        match &self.way {
            Way::Remote(_) => Vec::new(),
            Way::Scripted(scripted) => scripted.models(),
        }
    }

    /// Sends a request and waits until its answer begins. Dropping the future ends the call.
    pub async fn send(&self, outgoing: Outgoing) -> Result<Response<UpstreamBody>, SendError> {
        match &self.way {
            Way::Remote(remote) => remote.send(outgoing).await,
            Way::Scripted(scripted) => scripted.send(&outgoing).await,
        }
    }

    /// Lets go of connections that nobody needs. To be called now and then.
    pub fn tidy(&self) {
        if let Way::Remote(remote) = &self.way {
            remote.tidy();
        }
    }

    /// The body without the key and the endpoint of this upstream; `None` if it has neither.
    #[must_use]
    pub fn scrub(&self, body: &[u8]) -> Option<Vec<u8>> {
        self.scrub.apply(body)
    }

    /// Whether the key or the endpoint of this upstream is in it.
    #[must_use]
    pub fn is_told_by(&self, text: &[u8]) -> bool {
        self.scrub.is_in(text)
    }

    /// Its strikes.
    #[must_use]
    pub fn rest(&self) -> &Rest {
        &self.rest
    }
}

impl Way {
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

/// What the client says stays out of it.
impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing").field("door", &self.door).field("run", &self.run).finish_non_exhaustive()
    }
}
