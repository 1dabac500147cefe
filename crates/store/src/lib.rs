//! The store on SQLite: the index of runs, over the bundles, which stay the evidence; the approvals; and what
//! processes leased of the budgets that they share.

mod approvals;
mod leases;
mod rows;
mod sqlite;
mod usage;

pub use leases::SqliteLeases;
pub use sqlite::SqliteStore;
