//! The HTTP client of one upstream.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::GaiResolver;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;

use super::connector::{Connector, Names};
use crate::config::HttpVersion;

/// How long a connection is kept that nobody uses.
const KEPT: Duration = Duration::from_secs(90);
/// How often a connection on which something is waited for is asked whether it still lives.
const ALIVE: Duration = Duration::from_secs(30);

/// A client. It takes no proxy from the environment and follows no redirect: the one place a request goes to is the
/// configured one.
pub(super) type HttpClient = Client<Connector, Full<Bytes>>;

/// A client that speaks this version and connects within this time.
pub(super) fn client(tls: ClientConfig, version: HttpVersion, connect: Duration) -> HttpClient {
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
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(KEPT)
        .http2_only(version == HttpVersion::Two)
        .http2_keep_alive_interval(ALIVE)
        .http2_keep_alive_timeout(ALIVE)
        .build(Connector { inner, within: connect })
}
