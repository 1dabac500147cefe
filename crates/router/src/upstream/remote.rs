//! An upstream that is reached by HTTP.

use std::time::Duration;

use http::{Response, Uri};

use super::body::UpstreamBody;
use super::client::HttpClient;
use super::configured::Outgoing;
use super::endpoint::Endpoint;
use super::headers;
use super::problem::SendError;
use super::provider::{OverHttp, Provider};
use crate::door::{DOORS, Door};

/// One endpoint, with all that is needed to ask it.
pub(super) struct Remote {
    provider: Box<dyn OverHttp>,
    client: HttpClient,
    doors: Vec<Asking>,
    idle: Duration,
}

/// Where a door is.
struct Asking {
    door: Door,
    uri: Uri,
    /// The same for what Anthropic calls beta.
    beta: Uri,
}

impl Remote {
    /// `None`, if the endpoint's path and a door's make no URI.
    pub(super) fn new(
        provider: Box<dyn OverHttp>,
        client: HttpClient,
        endpoint: &Endpoint,
        idle: Duration,
    ) -> Option<Self> {
        let mut doors = Vec::new();
        for (door, _) in DOORS.iter().filter(|(door, _)| provider.answers(*door)) {
            let path = provider.path(endpoint.base(), *door);
            let beta = client.uri(endpoint, &format!("{path}?beta=true"))?;
            doors.push(Asking { door: *door, uri: client.uri(endpoint, &path)?, beta });
        }
        Some(Self { provider, client, doors, idle })
    }

    pub(super) fn provider(&self) -> &dyn Provider {
        &*self.provider
    }

    pub(super) async fn send(&self, outgoing: Outgoing) -> Result<Response<UpstreamBody>, SendError> {
        let Some(asking) = self.doors.iter().find(|asking| asking.door == outgoing.door) else {
            return Err(SendError::NotReached("door_not_answered"));
        };
        let uri = if outgoing.beta_query { &asking.beta } else { &asking.uri };
        let mut headers = outgoing.headers;
        headers::set(&mut headers);
        self.provider.authorize(&mut headers);
        let (mut parts, source) = self.client.post(uri, headers, outgoing.body).await?.into_parts();
        // They hold the address of the endpoint.
        parts.extensions.clear();
        Ok(Response::from_parts(parts, UpstreamBody::new(source, self.idle)))
    }

    /// Lets go of connections that nobody needs.
    pub(super) fn tidy(&self) {
        self.client.tidy();
    }
}
