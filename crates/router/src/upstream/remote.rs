//! An upstream over HTTP.

use std::time::Duration;

use http::{Response, Uri};

use super::base_url::BaseUrl;
use super::body::{Source, UpstreamBody};
use super::client::HttpClient;
use super::configured::Outgoing;
use super::headers;
use super::problem::SendError;
use super::provider::{OverHttp, Provider};
use crate::door::{DOORS, Door};

/// One upstream over HTTP.
pub(super) struct Remote {
    provider: Box<dyn OverHttp>,
    client: HttpClient,
    doors: Vec<ApiUris>,
    idle: Duration,
}

/// The URIs of one API.
struct ApiUris {
    door: Door,
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
        let mut doors = Vec::new();
        for (door, _) in DOORS.iter().filter(|(door, _)| provider.answers(*door)) {
            let path = provider.path(base_url.base(), *door);
            let beta = base_url.at(&format!("{path}?beta=true"))?;
            doors.push(ApiUris { door: *door, uri: base_url.at(&path)?, beta });
        }
        Some(Self { provider, client, doors, idle })
    }

    pub(super) fn provider(&self) -> &dyn Provider {
        &*self.provider
    }

    pub(super) async fn send(&self, outgoing: Outgoing) -> Result<Response<UpstreamBody>, SendError> {
        let Some(uris) = self.doors.iter().find(|uris| uris.door == outgoing.door) else {
            return Err(SendError::NotReached("unsupported_endpoint"));
        };
        let uri = if outgoing.beta_query { &uris.beta } else { &uris.uri };
        let mut headers = outgoing.headers;
        headers::set(&mut headers);
        self.provider.authorize(&mut headers);
        let (mut parts, body) = self.client.post(uri, headers, outgoing.body).await?.into_parts();
        // They hold the address of the upstream.
        parts.extensions.clear();
        Ok(Response::from_parts(parts, UpstreamBody::new(Source::Http(body), self.idle)))
    }
}
