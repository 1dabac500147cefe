//! The store on SQLite: the index of runs, over the bundles, which stay the evidence; and the approvals.

mod approvals;
mod rows;
mod sqlite;

pub use sqlite::SqliteStore;
