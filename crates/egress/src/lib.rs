//! The forward proxy of a run: default deny, and an allowed request connects only to addresses that were checked.
//!
//! A request passes [`rules`] (is the host listed?), [`resolver`] (once), [`addresses`] (is every address public?) and, in
//! a tunnel, [`client_hello`] (does the SNI name the same host?). Only then a byte passes. [`proxy`] is the service around
//! it; [`grants`] and [`signed`] are the sources of rules besides the contract.

pub mod addresses;
pub mod client_hello;
pub mod decision;
pub mod grants;
pub mod host;
pub mod proxy;
pub mod reason;
pub mod rehearsal;
pub mod resolver;
pub mod rules;
pub mod signed;

pub use decision::{DecisionRecorder, EgressVerdict, ProxyDecision, Unrecorded};
pub use host::{Host, Name};
pub use reason::{Fault, Reason};
pub use rules::{Allowlist, Rule};
