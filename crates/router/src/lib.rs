//! The one way to a model. What a client asks in any of the API dialects is read here, answered by an upstream, and
//! counted on the way.

pub mod budget;
pub mod dialect;
pub mod scripted;
pub mod tap;
