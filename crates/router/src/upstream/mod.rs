//! Who answers: the upstreams of the configuration, how a request reaches them, and how they fail.
//!
//! A provider is chosen by configuration, never by a look at the URL. Keys and endpoints stay in here: no error, no
//! `Debug` and no answer has them.

mod answer_head;
mod anthropic;
mod body;
mod chunked;
mod client;
mod compatible;
mod configured;
mod connector;
mod endpoint;
mod headers;
mod line;
mod lines;
mod openai;
mod problem;
mod provider;
mod remote;
mod rest;
mod retry_after;
mod roots;
mod scripted;
mod scripted_more;
mod scrub;
mod steps;
mod wire;

pub use body::{BodyBroken, UpstreamBody};
pub use configured::{Outgoing, Upstream};
pub use headers::{Fields, PASSED};
pub use problem::{BadUpstream, SendError};
pub use rest::Rest;
pub use retry_after::retry_after;
