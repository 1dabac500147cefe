//! The configured upstreams: how a request reaches them, and how they fail.
//!
//! The configuration names the provider; the URL never does. Keys and base URLs stay in here: no error, no `Debug` and no
//! response has them.

mod anthropic;
mod base_url;
mod body;
mod circuit_breaker;
mod client;
mod compatible;
mod configured;
mod connector;
mod headers;
mod listing;
mod openai;
mod problem;
mod provider;
mod remote;
mod retry_after;
mod roots;
mod scripted;
mod scrub;
mod steps;

pub use body::{BodyBroken, UpstreamBody};
pub use circuit_breaker::CircuitBreaker;
pub use configured::{Outgoing, Upstream};
pub use headers::PASSED;
pub use listing::{ListedModel, ListingError, list_models};
pub use problem::{Ambiguous, BadUpstream, NotReached, SendError};
pub use retry_after::retry_after;
