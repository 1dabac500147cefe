//! The rules that a result is judged by. Values come in, violations and a verdict go out; nothing here knows files,
//! clocks or processes.

mod action_shapes;
pub mod actions;
mod aliases;
pub mod allowed_paths;
mod bare_repositories;
mod case_twins;
mod digest;
pub mod egress_actions;
pub mod forbidden_paths;
mod glob;
pub mod names;
pub mod outward;
pub mod path_length;
mod pattern_table;
mod pattern_within;
mod shell;
mod symlinks;
pub mod test_files;
mod tree_facts;
pub mod verdict;
pub mod verification_files;

pub use allowed_paths::{MAX_FILE_BYTES, PathRules};
pub use digest::{EgressRules, egress_digest, policy_digest};
pub use glob::BadPattern;
pub use pattern_within::pattern_within;
pub use test_files::looks_like_test;
pub use tree_facts::TreeFacts;
pub use verdict::{RunFacts, SourceFacts};
pub use verification_files::VerificationFiles;
