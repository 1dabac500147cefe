//! An upstream that is reached by HTTP.

use std::time::Duration;

use http::{Method, Request, Response, Uri};
use http_body_util::Full;
use hyper_util::client::legacy::Error as ClientError;

use super::body::UpstreamBody;
use super::client::HttpClient;
use super::configured::Outgoing;
use super::connector::NoConnection;
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
    first_byte: Duration,
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
        (first_byte, idle): (Duration, Duration),
    ) -> Option<Self> {
        let mut doors = Vec::new();
        for (door, _) in DOORS.iter().filter(|(door, _)| provider.answers(*door)) {
            let path = provider.path(endpoint.base(), *door);
            let beta = endpoint.at(&format!("{path}?beta=true"))?;
            doors.push(Asking { door: *door, uri: endpoint.at(&path)?, beta });
        }
        Some(Self { provider, client, doors, first_byte, idle })
    }

    pub(super) fn provider(&self) -> &dyn Provider {
        &*self.provider
    }

    pub(super) async fn send(&self, outgoing: Outgoing) -> Result<Response<UpstreamBody>, SendError> {
        let Some(asking) = self.doors.iter().find(|asking| asking.door == outgoing.door) else {
            return Err(SendError::NotReached("door_not_answered"));
        };
        let mut request = Request::new(Full::new(outgoing.body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = if outgoing.beta_query { &asking.beta } else { &asking.uri }.clone();
        *request.headers_mut() = outgoing.headers;
        headers::set(request.headers_mut());
        self.provider.authorize(request.headers_mut());
        match tokio::time::timeout(self.first_byte, self.client.request(request)).await {
            Ok(Ok(response)) => {
                let (mut parts, incoming) = response.into_parts();
                // They hold the address of the endpoint.
                parts.extensions.clear();
                Ok(Response::from_parts(parts, UpstreamBody::http(incoming, self.idle)))
            }
            Ok(Err(error)) => Err(no_answer(&error)),
            Err(_) => Err(SendError::FirstByteTimeout),
        }
    }
}

/// What an error means for the request. Only what came while connecting is certain to be before it left; a request
/// that was given to a connection may be on its way, whatever became of it. (One that was given to an old connection
/// and was certainly not written is sent again by the client, on another.)
fn no_answer(error: &ClientError) -> SendError {
    if error.is_connect() {
        return SendError::NotReached(NoConnection::of(error).0);
    }
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
            return SendError::Ambiguous("not_http");
        }
        next = error.source();
    }
    SendError::Ambiguous("closed_before_headers")
}
