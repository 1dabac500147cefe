//! The service as a whole, attacked from the agent's side and from the upstream's.

#![allow(clippy::panic, reason = "the helpers of tests are tests too")]

mod admission;
mod below;
mod canary;
mod client;
mod differential;
mod disbelieved;
mod failover;
mod golden;
mod keys;
mod kit;
mod leaving;
mod reaching;
mod routes;
mod server;
mod slow;
mod smuggling;
