//! The proxy service: CONNECT and plain HTTP, behind every check.
//!
//! [`Options`] configure it, [`Service::start`] starts it on threads of its own, and the [`Handle`] listens, counts and
//! ends it. A connection carries one request:
//!
//! ```text
//! head      validated strictly, in a bounded time and size
//! list      is the host listed? the mode `learn` goes on without, and notes the host
//! quotas    is there a tunnel left, and are there bytes left?
//! resolve   the name, once
//! check     every answer must be public
//! connect   to an address that was checked, and to no other
//! hello     of a tunnel: the SNI of the `ClientHello` must name the same host, unencrypted
//! record    the decision is recorded; a request that cannot be recorded does not pass
//! copy      through two fixed buffers, until both sides have ended or a limit is reached
//! ```
//!
//! The proxy does not see inside of TLS. A listed host that serves others behind one name (domain fronting) opens all of
//! them, and so does a server that accepts another name in a second `ClientHello`, against the standard.

mod answer;
mod connect;
mod connection;
mod counts;
mod dial;
mod limits;
mod listener;
mod metrics;
mod own;
mod passage;
mod plain;
mod request;
mod service;
mod shared;
mod tunnel;

pub use connect::{Connect, ConnectError, Direct};
pub use counts::{Counts, Cut};
pub use limits::Limits;
pub use listener::Listen;
pub use service::{Handle, Mode, Options, ProxyTotals, Service, StartError};
