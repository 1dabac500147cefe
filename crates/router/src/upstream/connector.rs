//! Opens connections: DNS, TCP and TLS within one timeout, with errors that name only the step that failed.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiResolver, Name};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

/// Why there is no connection, as a code. Nothing else of the error is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoConnection(pub(super) &'static str);

impl fmt::Display for NoConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for NoConnection {}

impl NoConnection {
    /// An unknown cause.
    pub(super) const UNKNOWN: Self = Self("not_reached");
    const NAME: Self = Self("name_not_found");
    const REFUSED: Self = Self("connection_refused");
    const TIMEOUT: Self = Self("connect_timeout");
    const TLS: Self = Self("tls_failed");

    /// The code of an error, or of one of its sources.
    pub(super) fn of(error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(known) = error.downcast_ref::<Self>() {
                return *known;
            }
            if error.is::<rustls::Error>() {
                return Self::TLS;
            }
            next = error.source();
            if let Some(io) = error.downcast_ref::<io::Error>() {
                match io.kind() {
                    io::ErrorKind::ConnectionRefused => return Self::REFUSED,
                    io::ErrorKind::TimedOut => return Self::TIMEOUT,
                    // The inner error of an IO error is not its source.
                    _ => next = io.get_ref().map(|inner| inner as _).or(next),
                }
            }
        }
        Self::UNKNOWN
    }
}

/// Opens connections to one upstream.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) inner: HttpsConnector<HttpConnector<Names>>,
    pub(super) within: Duration,
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = NoConnection;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, NoConnection>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), NoConnection>> {
        self.inner.poll_ready(cx).map_err(|error| NoConnection::of(&*error))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.inner.call(uri);
        let within = self.within;
        Box::pin(async move {
            match tokio::time::timeout(within, connecting).await {
                Ok(connected) => connected.map_err(|error| NoConnection::of(&*error)),
                Err(_) => Err(NoConnection::TIMEOUT),
            }
        })
    }
}

/// The system's resolver.
#[derive(Clone)]
pub(super) struct Names(pub(super) GaiResolver);

impl Service<Name> for Names {
    type Response = GaiAddrs;
    type Error = NoConnection;
    type Future = Pin<Box<dyn Future<Output = Result<GaiAddrs, NoConnection>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), NoConnection>> {
        self.0.poll_ready(cx).map_err(|_| NoConnection::NAME)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let looking = self.0.call(name);
        Box::pin(async move { looking.await.map_err(|_| NoConnection::NAME) })
    }
}
