//! Opens connections: DNS, TCP and TLS within one timeout, with errors that name only the step that failed.

use std::error::Error;
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

use super::problem::NotReached;

/// Opens connections to one upstream.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) inner: HttpsConnector<HttpConnector<Names>>,
    pub(super) within: Duration,
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = NotReached;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, NotReached>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), NotReached>> {
        self.inner.poll_ready(cx).map_err(|error| connect_error(&*error))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.inner.call(uri);
        let within = self.within;
        Box::pin(async move {
            match tokio::time::timeout(within, connecting).await {
                Ok(connected) => connected.map_err(|error| connect_error(&*error)),
                Err(_) => Err(NotReached::ConnectTimeout),
            }
        })
    }
}

/// The system's resolver.
#[derive(Clone)]
pub(super) struct Names(pub(super) GaiResolver);

impl Service<Name> for Names {
    type Response = GaiAddrs;
    type Error = NotReached;
    type Future = Pin<Box<dyn Future<Output = Result<GaiAddrs, NotReached>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), NotReached>> {
        self.0.poll_ready(cx).map_err(|_| NotReached::NameNotFound)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let looking = self.0.call(name);
        Box::pin(async move { looking.await.map_err(|_| NotReached::NameNotFound) })
    }
}

/// Why there is no connection: the cause in an error or in one of its sources. Nothing else of the error is passed on.
pub(super) fn connect_error(error: &(dyn Error + 'static)) -> NotReached {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(known) = error.downcast_ref::<NotReached>() {
            return *known;
        }
        if error.is::<rustls::Error>() {
            return NotReached::TlsFailed;
        }
        next = error.source();
        if let Some(io) = error.downcast_ref::<io::Error>() {
            match io.kind() {
                io::ErrorKind::ConnectionRefused => return NotReached::ConnectionRefused,
                io::ErrorKind::TimedOut => return NotReached::ConnectTimeout,
                // The inner error of an IO error is not its source.
                _ => next = io.get_ref().map(|inner| inner as _).or(next),
            }
        }
    }
    NotReached::Other
}
