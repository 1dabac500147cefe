//! The egress proxy, from its rules to a gigabyte through one tunnel.

#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests are tests too")]

mod addresses;
mod client;
mod dns;
mod grants;
mod heads;
mod hello;
mod hellos;
mod hosts;
mod kit;
mod large;
mod learning;
mod limits;
mod metrics;
mod names;
mod plain;
mod rules;
mod server;
mod signed;
mod tunnels;
