//! Why a call of a script to the router or the egress proxy failed.

use std::io;

use herma_net::client::PostError;

#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error("there is no router: the contract names no model")]
    NoRouter,
    #[error("the token cannot be sent in a header")]
    Token(#[source] http::header::InvalidHeaderValue),
    #[error("{0}")]
    Request(#[from] http::Error),
    #[error("{0}")]
    Send(#[from] PostError),
    #[error("the router answered with {status}, expected {expected}: {body}")]
    Status { status: u16, expected: String, body: String },
    #[error("there is no egress proxy here")]
    NoProxy,
    #[error("the proxy could not be asked: {0}")]
    Proxy(#[source] io::Error),
    #[error("the proxy answered with {status_line}: {body}")]
    Refused { status_line: String, body: String },
}
