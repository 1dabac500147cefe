//! The handle on a store.

use std::ops::Deref;
use std::sync::Arc;

use herma_core::budget::Leases;
use herma_core::store::StoreError;

use crate::engine::Engine;
use crate::location::StoreLocation;
use crate::postgres::PostgresEngine;
use crate::sqlite::SqliteEngine;

/// A store that is open. Clones are cheap and share it; its operations are the methods of [`Engine`].
#[derive(Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
}

impl Store {
    /// Opens the store at this location, and creates it or updates its tables where necessary.
    pub async fn open(location: &StoreLocation) -> Result<Self, StoreError> {
        match location {
            StoreLocation::Sqlite(file) => Ok(Self::over(SqliteEngine::open(file).await?)),
            StoreLocation::Postgres(location) => Ok(Self::over(PostgresEngine::open(location).await?)),
        }
    }

    /// Opens the store at this location to read it. It must exist, with the tables of this version; nothing is changed.
    pub async fn open_to_read(location: &StoreLocation) -> Result<Self, StoreError> {
        match location {
            StoreLocation::Sqlite(file) => Ok(Self::over(SqliteEngine::open_to_read(file).await?)),
            StoreLocation::Postgres(location) => {
                Ok(Self::over(PostgresEngine::open_to_read(location).await?))
            }
        }
    }

    /// A store on this engine.
    #[must_use]
    pub fn over(engine: impl Engine + 'static) -> Self {
        Self { engine: Arc::new(engine) }
    }

    /// The budget leases of this store, for components that need nothing else of it.
    #[must_use]
    pub fn leases(&self) -> Arc<dyn Leases> {
        Arc::<dyn Engine>::clone(&self.engine)
    }
}

impl Deref for Store {
    type Target = dyn Engine;

    fn deref(&self) -> &Self::Target {
        &*self.engine
    }
}
