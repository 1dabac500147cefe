//! The HTTP client of one upstream.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::dns::GaiResolver;
use hyper_util::client::legacy::connect::{HttpConnector, capture_connection};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;

use super::connector::{Connector, Names, connect_error};
use super::problem::{Ambiguous, SendError};
use crate::config::HttpVersion;

/// How long the pool keeps an idle connection.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// The most idle connections in the pool.
const MAX_IDLE_CONNECTIONS: usize = 1024;
/// The keep-alive interval of TCP and of HTTP/2.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// The largest response head over HTTP/1.1.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// A client with a connection pool. It takes no proxy from the environment and follows no redirect: a request goes to the
/// configured endpoint and nowhere else.
pub(super) struct HttpClient {
    client: Client<Connector, Full<Bytes>>,
    first_byte: Duration,
}

impl HttpClient {
    /// A client that speaks this version, connects within the first limit and has the head of a response within the
    /// second.
    pub(super) fn new(
        tls: ClientConfig,
        version: HttpVersion,
        (connect, first_byte): (Duration, Duration),
    ) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(Names(GaiResolver::new()));
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEP_ALIVE));
        tcp.enforce_http(false);
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        let inner = match version {
            HttpVersion::One => builder.enable_http1().wrap_connector(tcp),
            HttpVersion::Two => builder.enable_http2().wrap_connector(tcp),
            HttpVersion::Negotiated => builder.enable_all_versions().wrap_connector(tcp),
        };
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
            .http1_max_buf_size(MAX_HEAD_BYTES)
            .http2_only(version == HttpVersion::Two)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .http2_keep_alive_timeout(KEEP_ALIVE)
            .build(Connector { inner, within: connect });
        Self { client, first_byte }
    }

    /// Posts, and waits for the head of the response.
    pub(super) async fn post(
        &self,
        uri: &Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, SendError> {
        self.send(Method::POST, uri, headers, body).await
    }

    /// Gets, and waits for the head of the response.
    pub(super) async fn get(&self, uri: &Uri, headers: HeaderMap) -> Result<Response<Incoming>, SendError> {
        self.send(Method::GET, uri, headers, Bytes::new()).await
    }

    async fn send(
        &self,
        method: Method,
        uri: &Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, SendError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = headers;
        let captured = capture_connection(&mut request);
        match tokio::time::timeout(self.first_byte, self.client.request(request)).await {
            Ok(Ok(response)) => {
                if is_ambiguous(&response)
                    && let Some(connection) = &*captured.connection_metadata()
                {
                    connection.poison();
                }
                Ok(response)
            }
            Ok(Err(error)) => Err(no_response(&error)),
            Err(_) => Err(SendError::Ambiguous(Ambiguous::FirstByteTimeout)),
        }
    }
}

/// Whether other parsers could see another end of the body than hyper. The connection is not used again then: one parser's
/// rest of a body is another's next response.
fn is_ambiguous(response: &Response<Incoming>) -> bool {
    if response.version() >= Version::HTTP_2 {
        return false;
    }
    let headers = response.headers();
    let has_no_body = matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let lengths = headers.get_all(CONTENT_LENGTH);
    let mut codings = headers.get_all(TRANSFER_ENCODING).into_iter();
    match codings.next() {
        None => has_no_body && lengths.iter().any(|length| length != "0"),
        Some(coding) => {
            let is_chunked = coding.as_bytes().eq_ignore_ascii_case(b"chunked");
            !is_chunked || codings.next().is_some() || lengths.iter().next().is_some()
        }
    }
}

/// The meaning of an error for the request. Only an error of connecting is certain to be before the request left; one that
/// was given to a connection may be on its way. (The pool sends a request again that was certainly not written.)
fn no_response(error: &ClientError) -> SendError {
    if error.is_connect() {
        return SendError::NotReached(connect_error(error));
    }
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
            return SendError::Ambiguous(Ambiguous::NotHttp);
        }
        next = error.source();
    }
    SendError::Ambiguous(Ambiguous::ClosedBeforeHeaders)
}
