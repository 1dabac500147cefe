//! The store for code that blocks: the steps of a run and the command line.

use std::sync::Arc;

use herma_core::store::{StoreError, StoreErrorKind};
use tokio::runtime::{Builder, Runtime};

use crate::engine::{BoxFuture, Engine};
use crate::handle::Store;
use crate::location::StoreLocation;

/// A store with a runtime that waits for its operations. Clones share both.
///
/// An asynchronous task must not call it, because it blocks the thread; there, use [`BlockingStore::store`].
#[derive(Clone)]
pub struct BlockingStore {
    store: Store,
    runtime: Arc<Runtime>,
}

impl BlockingStore {
    /// Opens the store at this location.
    pub fn open(location: &StoreLocation) -> Result<Self, StoreError> {
        let runtime = runtime()?;
        let store = runtime.block_on(Store::open(location))?;
        Ok(Self { store, runtime: Arc::new(runtime) })
    }

    /// Opens the store at this location to read it, and changes nothing there.
    pub fn open_to_read(location: &StoreLocation) -> Result<Self, StoreError> {
        let runtime = runtime()?;
        let store = runtime.block_on(Store::open_to_read(location))?;
        Ok(Self { store, runtime: Arc::new(runtime) })
    }

    /// Wraps a store that is open.
    pub fn over(store: Store) -> Result<Self, StoreError> {
        Ok(Self { store, runtime: Arc::new(runtime()?) })
    }

    /// The store, for asynchronous tasks.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Starts an operation and waits for its result. Threads can wait at the same time.
    pub fn call<'a, T>(&'a self, operation: impl FnOnce(&'a dyn Engine) -> BoxFuture<'a, T>) -> T {
        self.runtime.block_on(operation(&*self.store))
    }
}

/// The waiting threads themselves drive it, so that it needs no thread of its own.
fn runtime() -> Result<Runtime, StoreError> {
    let built = Builder::new_current_thread().enable_all().build();
    built.map_err(|e| StoreError::new(StoreErrorKind::Unavailable, "start a runtime", e))
}
