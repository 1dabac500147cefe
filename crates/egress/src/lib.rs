//! The forward proxy of a run: what is not on its list is denied, and what is on it goes only where it was checked to
//! go.
//!
//! A request passes [`rules`] (is the host listed?), [`resolver`] (once), [`addresses`] (is every answer public?) and, in a
//! tunnel, [`hello`] (does TLS name the same host?). Only then a byte passes. [`proxy`] is the service around it;
//! [`grants`] and [`signed`] are where rules come from besides the contract.

pub mod addresses;
pub mod decided;
pub mod grants;
pub mod hello;
pub mod host;
pub mod proxy;
pub mod reason;
pub mod rehearsal;
pub mod resolver;
pub mod rules;
pub mod signed;

pub use decided::{Decided, Unrecorded, Verdict, Watch};
pub use host::{Host, Name};
pub use reason::{Fault, Reason};
pub use rules::{Allowlist, Rule};
