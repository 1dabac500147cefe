//! The router service: listeners, and each request from its token to its record.
//!
//! [`Options`] configure it, [`Service::start`] starts it on threads of its own, and the [`Handle`] admits and revokes
//! runs, reloads and drains it.

mod admin;
mod audit_writer;
mod budget_group;
mod call;
mod connection;
mod forward;
mod handle;
mod headers;
mod in_flight;
mod metrics;
mod reason;
mod refused;
mod response_body;
mod routes;
mod runs;
mod shared;
mod threads;
mod whole;

pub use admin::{RunState, State, UpstreamState};
pub use budget_group::ParentBudget;
pub use handle::{AdmitError, Handle, Options, Reload, Revoked, Service, Signal, StartError};
pub use routes::paths;
pub use runs::Refusals;
