//! Environments: the tools, packages and commands with which a project's own tests run in a destination.
//!
//! [`definition`] reads what a person wrote, [`detect`] proposes it from a repository. [`tools`] finds programs on the machine,
//! [`registries`] the hosts that packages come from. [`build`] runs the commands and leaves immutable [`layers`], named by
//! the [`key`] of everything that went into them. [`preflight`] judges the test commands on the base.

pub mod build;
pub mod definition;
pub mod detect;
mod egress_record;
mod file_digest;
pub mod inputs;
pub mod key;
pub mod layers;
pub mod preflight;
pub mod prepare;
pub mod rebuild;
pub mod registries;
pub mod tools;

pub use egress_record::EgressRecord;
