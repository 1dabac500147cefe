//! Plain HTTP: hyper forwards one request, its response comes back, and the connection ends.
//!
//! A redirect is the client's to follow, with a new request and a new decision.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use herma_net::Pipelining;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Request, Response, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::counts::Cut;
use super::dial::Open;
use super::passage::{Metered, Passage};
use super::shared::Shared;

/// The largest head of a response.
const MAX_RESPONSE_HEAD_BYTES: usize = 64 << 10;
/// Headers of a response that are not forwarded, besides those that `connection` names: they are about one connection.
const HOP_BY_HOP: [&str; 6] =
    ["keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"];

type ServerConnection = http1::Connection<TokioIo<Metered<TcpStream>>, Incoming>;

/// Forwards a request to an open server. Returns the response while its body still comes, or `None` if there is none.
pub(super) async fn forward(
    shared: &Arc<Shared>,
    passage: Arc<Passage>,
    open: Open,
    request: Request<Incoming>,
    pipelining: Pipelining,
) -> Option<Response<ExchangeBody>> {
    // No decision was made on a second request.
    pipelining.refuse();
    let Open { server, _permit: permit, .. } = open;
    let mut exchange = Exchange {
        shared: shared.clone(),
        passage: passage.clone(),
        pipelining,
        is_complete: false,
        connection: None,
        _permit: permit,
    };
    let server = TokioIo::new(Metered::new(server, passage));
    let handshake = http1::Builder::new().max_buf_size(MAX_RESPONSE_HEAD_BYTES).handshake(server).await;
    let (mut sender, connection) = handshake.ok()?;
    exchange.connection = Some(Box::pin(connection));
    let mut sending = pin!(sender.send_request(request));
    let responded = std::future::poll_fn(|cx| {
        exchange.drive(cx);
        sending.as_mut().poll(cx)
    });
    let response = responded.await.ok()?;
    // A server cannot switch the protocol: the request asked for none.
    if response.status().is_informational() {
        return None;
    }
    let (mut head, body) = response.into_parts();
    // The version of the server is about its connection too.
    head.version = Version::HTTP_11;
    remove_hop_by_hop(&mut head.headers);
    exchange.is_complete = body.is_end_stream();
    Some(Response::from_parts(head, ExchangeBody { body, exchange }))
}

/// Removes the headers that are about the connection to the server. hyper frames the body anew.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // A length beside a transfer coding has no meaning, and other parsers could believe it.
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    let named: Vec<String> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').map(|name| name.trim().to_ascii_lowercase()))
        .filter(|name| name != CONTENT_LENGTH.as_str())
        .collect();
    for name in named.iter().map(String::as_str).chain(HOP_BY_HOP).chain([CONNECTION.as_str()]) {
        headers.remove(name);
    }
}

/// An exchange in flight. Dropping it closes the connection to the server, and counts a cut before the permit is given
/// back.
struct Exchange {
    shared: Arc<Shared>,
    passage: Arc<Passage>,
    pipelining: Pipelining,
    is_complete: bool,
    /// The connection to the server, until it ends.
    connection: Option<Pin<Box<ServerConnection>>>,
    _permit: OwnedSemaphorePermit,
}

impl Exchange {
    /// Reads from the server and writes to it.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if self.connection.as_mut().is_some_and(|connection| connection.as_mut().poll(cx).is_ready()) {
            // The response or its body reports an error.
            self.connection = None;
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // A proxy that ends cuts nothing off.
        if self.is_complete || !self.shared.is_open() {
            return;
        }
        let is_ahead = self.pipelining.has_ended_connection();
        self.passage.count_cut(if is_ahead { Cut::Ahead } else { Cut::Broken });
    }
}

/// The body of a forwarded response.
pub(super) struct ExchangeBody {
    body: Incoming,
    exchange: Exchange,
}

impl Body for ExchangeBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        this.exchange.drive(cx);
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        this.exchange.is_complete = match &polled {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(_))) => this.body.is_end_stream(),
            Poll::Ready(Some(Err(_))) | Poll::Pending => false,
        };
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
