//! The router: its configuration, budgets, records, upstreams, probe and service.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod audit;
mod audit_killed;
mod budgets;
mod config;
mod kit;
mod parent_budgets;
mod probe;
mod service;
mod upstream;
