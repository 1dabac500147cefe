//! Accepts connections on the loopback address and serves each over HTTP/1.1: what the upstream and the bare proxy share.

use std::convert::Infallible;
use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// A machine without free file descriptors has some again a moment later.
const SHORT_OF_FILES: Duration = Duration::from_millis(5);

/// Serves every connection to this port until the process is killed.
pub(crate) async fn serve<S, B>(port: u16, service: S) -> io::Result<Infallible>
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(SHORT_OF_FILES).await;
            continue;
        };
        // Without it the first chunk after a head waits for an acknowledgement: 40 ms.
        stream.set_nodelay(true)?;
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service.clone());
        // A client that goes away ends its connection with an error, which is nobody's concern here.
        tokio::spawn(async move { drop(connection.await) });
    }
}

/// The next argument of a hidden subcommand.
pub(crate) fn argument<T: FromStr>(args: &mut impl Iterator<Item = OsString>, what: &str) -> io::Result<T> {
    let text = args.next().unwrap_or_default();
    text.to_str()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("expected {what}")))
}
