//! The proxy itself: takes CONNECT and plain HTTP, and lets through what every check lets through.
//!
//! [`Options`] say what it allows, [`Service::start`] starts it on threads of its own, and the [`Handle`] listens, counts
//! and ends it. One request has a connection for itself:
//!
//! ```text
//! head      validated strictly, in a bounded time and size
//! list      is the host on it? the mode `learn` goes on without, and writes the host down
//! quotas    is there a tunnel left, and are there bytes left?
//! resolve   the name, once
//! check     every answer must be public
//! connect   to an address that was checked, and to no other
//! hello     of a tunnel: TLS must name the same host, openly
//! record    the watch is told; where it cannot record, nothing passes
//! copy      through two fixed buffers, until both sides have ended or a limit is reached
//! ```
//!
//! What it does not see is what is inside of TLS. A host that serves others behind one name (domain fronting) is as wide as
//! all that it serves, and so is a server that lets a client change the name in a second hello, against the standard.

mod answer;
mod connect;
mod connection;
mod copy;
mod counts;
mod limits;
mod listener;
mod metrics;
mod own;
mod plain;
mod request;
mod service;
mod shared;
mod tunnel;
mod way_out;

pub use connect::{Connect, ConnectError, Direct};
pub use counts::{Counts, Cut};
pub use limits::Limits;
pub use listener::Listen;
pub use service::{Ended, Handle, Mode, Options, Service, StartError};
