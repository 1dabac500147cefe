//! One blocking HTTP/1.1 request over a Unix socket.

use std::io;
use std::path::Path;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// The socket could not be reached.
    #[error("the router could not be asked: {0}")]
    Connect(#[from] io::Error),
    /// The response is malformed or incomplete.
    #[error("the answer breaks off or is not HTTP/1.1: {0}")]
    Http(#[from] hyper::Error),
    /// The response is too large.
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
    /// The body could not be read.
    #[error("the answer breaks off: {0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
}

/// Sends a request to the socket and reads the response to its end. Not to be called from an asynchronous task.
pub fn send(
    socket: &Path,
    request: Request<Full<Bytes>>,
    max_bytes: usize,
) -> Result<Response<Bytes>, PostError> {
    let stream = crate::connect(socket)?;
    stream.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let stream = tokio::net::UnixStream::from_std(stream)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let exchange = async {
            let (head, body) = sender.send_request(request).await?.into_parts();
            let body = Limited::new(body, max_bytes).collect().await.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    PostError::TooLarge(max_bytes)
                } else {
                    PostError::Body(error)
                }
            })?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        let connection = async {
            // The exchange reports what went wrong.
            let _ = connection.await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            response = exchange => response,
            () = connection => Err(PostError::Connect(io::ErrorKind::ConnectionAborted.into())),
        }
    })
}
