//! The words of herma as types. Nothing here knows files, clocks, processes or sockets: values come in, values
//! go out. Every other crate stands on this one.

pub mod admission;
pub mod approval;
pub mod approver;
pub mod blocker;
pub mod budget;
pub mod cancellation;
pub mod capability;
mod change;
pub mod child;
pub mod clock;
pub mod comparison;
pub mod contract;
pub mod decision;
pub mod digest;
pub mod egress;
pub mod engine;
pub mod event;
pub mod fault;
pub mod gate;
pub mod id;
pub mod landing;
pub mod model_call;
pub mod name_characters;
pub mod outcome;
pub mod path;
pub mod policy_case;
pub mod proof;
pub mod report;
pub mod script;
pub mod secret;
pub mod signed;
pub mod stage;
pub mod status;
pub mod step;
pub mod store;
pub mod tool;
pub mod trust;
pub mod trust_head;
pub mod units;
pub mod usage;
pub mod verdict;
pub mod visible;
mod yaml;

pub use blocker::Blocker;
pub use cancellation::CancellationToken;
pub use clock::Clock;
pub use contract::Contract;
pub use decision::Decision;
pub use digest::Digest;
pub use event::{Event, EventType};
pub use fault::Fault;
pub use gate::Gate;
pub use id::RunId;
pub use jiff::Timestamp;
pub use path::RepoPath;
pub use report::Report;
pub use stage::Stage;
pub use step::Step;
pub use verdict::{Status, Verdict};

/// The version of herma, recorded in every run.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
