//! The store: an index of runs over their bundles, their events, approvals, usage and budget leases.
//!
//! [`Store`] is the interface; a [`StoreLocation`] chooses the engine behind it. Only the module of an engine knows its SQL.

mod blocking;
mod copy;
mod engine;
mod event_writer;
mod handle;
mod location;
mod postgres;
mod sqlite;
mod summary_of;
mod tables;

pub use blocking::BlockingStore;
pub use copy::{CopyPart, CopyReceiver, copy};
pub use engine::{BoxFuture, Engine, StoreFuture};
pub use event_writer::EventWriter;
pub use handle::Store;
pub use location::{PostgresHost, PostgresLocation, StoreLocation};
pub use tables::{Table, TableRow, TableValue};
