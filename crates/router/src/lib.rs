//! The one way to a model. What a client asks in any of the API dialects is read here, answered by an upstream, and
//! counted on the way.

pub mod audit;
pub mod budget;
pub mod config;
pub mod dialect;
pub mod door;
pub mod grant;
mod patience;
pub mod probe;
pub mod scripted;
pub mod service;
pub mod tap;
pub mod upstream;
