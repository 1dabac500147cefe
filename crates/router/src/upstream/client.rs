//! The HTTP client of one upstream.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, Uri};
use http_body_util::Full;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::GaiResolver;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;

use super::body::Source;
use super::connector::{Connector, Names, NoConnection};
use super::endpoint::Endpoint;
use super::headers::Fields;
use super::lines::Lines;
use super::problem::SendError;
use crate::config::HttpVersion;

/// How long a connection is kept that nobody uses.
const KEPT: Duration = Duration::from_secs(90);
/// How often a connection on which something is waited for is asked whether it still lives.
const ALIVE: Duration = Duration::from_secs(30);

/// A client. It takes no proxy from the environment and follows no redirect: the one place a request goes to is the
/// configured one.
pub(super) enum HttpClient {
    /// Where it is certain that a connection has one call at a time.
    Lines(Lines),
    /// Where many calls may share one, which then nobody's call can drive.
    Shared { client: Client<Connector, Full<Bytes>>, first_byte: Duration },
}

impl HttpClient {
    /// A client that speaks this version, connects within the first time and has the begin of an answer within the
    /// second. `None`, if the endpoint makes no URI.
    pub(super) fn new(
        endpoint: &Endpoint,
        tls: ClientConfig,
        version: HttpVersion,
        (connect, first_byte): (Duration, Duration),
    ) -> Option<Self> {
        let mut tcp = HttpConnector::new_with_resolver(Names(GaiResolver::new()));
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(ALIVE));
        tcp.enforce_http(false);
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        let inner = match version {
            HttpVersion::One => builder.enable_http1().wrap_connector(tcp),
            HttpVersion::Two => builder.enable_http2().wrap_connector(tcp),
            HttpVersion::Negotiated => builder.enable_all_versions().wrap_connector(tcp),
        };
        let connector = Connector { inner, within: connect };
        // Only TLS negotiates.
        let is_one = version == HttpVersion::One || version == HttpVersion::Negotiated && !endpoint.is_tls();
        if is_one {
            return Some(Self::Lines(Lines::new(
                connector,
                endpoint.at("/")?,
                endpoint.host_header()?,
                first_byte,
            )));
        }
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEPT)
            .http2_only(version == HttpVersion::Two)
            .http2_keep_alive_interval(ALIVE)
            .http2_keep_alive_timeout(ALIVE)
            .build(connector);
        Some(Self::Shared { client, first_byte })
    }

    /// The URI of a path, as this client wants it.
    pub(super) fn uri(&self, endpoint: &Endpoint, path: &str) -> Option<Uri> {
        match self {
            Self::Lines(_) => path.parse().ok(),
            Self::Shared { .. } => endpoint.at(path),
        }
    }

    /// Posts, and waits until the answer begins.
    pub(super) async fn post(
        &self,
        uri: &Uri,
        headers: Fields,
        body: Bytes,
    ) -> Result<Response<Source>, SendError> {
        match self {
            Self::Lines(lines) => Ok(lines.post(uri, &headers, &body).await?.map(Source::Line)),
            Self::Shared { client, first_byte } => {
                let mut request = Request::new(Full::new(body));
                *request.method_mut() = Method::POST;
                *request.uri_mut() = uri.clone();
                for (name, value) in headers {
                    request.headers_mut().append(name, value);
                }
                match tokio::time::timeout(*first_byte, client.request(request)).await {
                    Ok(Ok(response)) => Ok(response.map(Source::Http)),
                    Ok(Err(error)) => Err(no_answer(&error)),
                    Err(_) => Err(SendError::FirstByteTimeout),
                }
            }
        }
    }

    /// Lets go of connections that nobody needs.
    pub(super) fn tidy(&self) {
        if let Self::Lines(lines) = self {
            lines.tidy(KEPT);
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
