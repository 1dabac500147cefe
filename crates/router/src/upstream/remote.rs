//! An upstream over HTTP.

use std::time::Duration;

use herma_dialect::endpoint::{ENDPOINTS, Endpoint};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response, Uri};
use hyper::body::Incoming;

use super::base_url::{self, BaseUrl};
use super::body::{Source, UpstreamBody};
use super::client::HttpClient;
use super::configured::Outgoing;
use super::headers;
use super::problem::{NotReached, SendError};
use super::provider::{OverHttp, Provider};

/// One upstream over HTTP.
pub(super) struct Remote {
    provider: Box<dyn OverHttp>,
    client: HttpClient,
    endpoints: Vec<ApiUris>,
    models: Uri,
    idle: Duration,
}

/// The URIs of one API.
struct ApiUris {
    endpoint: Endpoint,
    uri: Uri,
    /// The same with Anthropic's `?beta=true`.
    beta: Uri,
}

impl Remote {
    /// `None` where base URL and path make no URI.
    pub(super) fn new(
        provider: Box<dyn OverHttp>,
        client: HttpClient,
        base_url: &BaseUrl,
        idle: Duration,
    ) -> Option<Self> {
        let mut endpoints = Vec::new();
        for (endpoint, _) in ENDPOINTS.iter().filter(|(endpoint, _)| provider.answers(*endpoint)) {
            let path = provider.path(base_url.base(), *endpoint);
            let beta = base_url.at(&format!("{path}?beta=true"))?;
            endpoints.push(ApiUris { endpoint: *endpoint, uri: base_url.at(&path)?, beta });
        }
        let models = base_url.at(&base_url::models(base_url.base()))?;
        Some(Self { provider, client, endpoints, models, idle })
    }

    pub(super) fn provider(&self) -> &dyn Provider {
        &*self.provider
    }

    pub(super) async fn send(&self, outgoing: Outgoing) -> Result<Response<UpstreamBody>, SendError> {
        let Some(uris) = self.endpoints.iter().find(|uris| uris.endpoint == outgoing.endpoint) else {
            return Err(SendError::NotReached(NotReached::UnsupportedEndpoint));
        };
        let uri = if outgoing.beta_query { &uris.beta } else { &uris.uri };
        let mut headers = outgoing.headers;
        headers::set(&mut headers);
        self.provider.authorize(&mut headers);
        Ok(self.without_address(self.client.post(uri, headers, outgoing.body).await?))
    }

    /// Asks for the list of models.
    pub(super) async fn list_models(&self) -> Result<Response<UpstreamBody>, SendError> {
        let mut headers = HeaderMap::new();
        headers::set(&mut headers);
        headers.remove(CONTENT_TYPE);
        self.provider.authorize(&mut headers);
        Ok(self.without_address(self.client.get(&self.models, headers).await?))
    }

    /// The extensions of a response hold the address of the upstream.
    fn without_address(&self, response: Response<Incoming>) -> Response<UpstreamBody> {
        let (mut parts, body) = response.into_parts();
        parts.extensions.clear();
        Response::from_parts(parts, UpstreamBody::new(Source::Http(body), self.idle))
    }
}
