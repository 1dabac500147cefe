//! The service: listens, and takes each request from its token to its record.
//!
//! [`Options`] say what it serves, [`Service::start`] starts it on threads of its own, and the [`Handle`] lets runs in and
//! out, reloads and drains it.

mod admin;
mod answer;
mod call;
mod connection;
mod date;
mod flight;
mod forward;
mod handle;
mod head;
mod headers;
mod kin;
mod listener;
mod metrics;
mod refused;
mod respond;
mod routes;
mod runs;
mod scribe;
mod shared;
mod talk;
mod threads;
mod whole;

pub use admin::{RunState, State, UpstreamState};
pub use handle::{AdmitError, Handle, Options, Reload, Revoked, Service, Signal, StartError};
pub use kin::RunAbove;
pub use routes::paths;
pub use runs::Refusals;
