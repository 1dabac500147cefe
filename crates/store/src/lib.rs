//! The store of runs on SQLite: an index over the bundles, which stay the evidence.

mod rows;
mod sqlite;

pub use sqlite::SqliteStore;
