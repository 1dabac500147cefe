//! `herma bench router`: what the router costs, beside a direct call, a bare proxy and the gateways that are installed.
//! [`sandbox`] is `herma bench sandbox`: what a start in the sandbox costs, and a tunnel of the egress proxy.
//!
//! Each gateway is a child process on the loopback address, in front of the same upstream, which is a child too. All are
//! measured in turns in one run, so that a busy moment hits them alike. Only ratios mean anything.

mod child;
mod client;
mod contenders;
mod error;
mod figures;
mod interrupt;
mod load;
mod measure;
mod plan;
pub mod proxy;
pub mod sandbox;
mod serve;
mod targets;
#[cfg(test)]
mod tests;
pub mod upstream;
mod usage;
mod wire;

pub use error::BenchError;
pub use figures::{LeftOut, Row};
pub use measure::{Machine, Measured, Order, measure};
pub use plan::Plan;
pub use targets::Target;
