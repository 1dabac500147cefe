//! The error of the store. It is a module of its own because budgets and the store's rows both use it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The kind of a store error, for callers that decide by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// It cannot be opened, read or written now: locked, disk full, no permission, no connection. A retry can succeed.
    Unavailable,
    /// The change contradicts a record that is there.
    Conflict,
    /// The stored bytes are no database, or a row cannot be parsed.
    Corrupt,
    /// Another version wrote it, or its location names an engine that this version does not have.
    Incompatible,
    /// A defect of herma.
    Internal,
}

/// A failed operation of the store.
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    operation: &'static str,
    // Shared, because several waiting calls can get the same error.
    source: Arc<dyn Error + Send + Sync>,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store could not {}: {}", self.operation, self.source)
    }
}

// By hand: the derived source would be the `Arc`, and callers could not find the type of the error in it.
impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

impl StoreError {
    /// The operation, as a verb phrase (`list the runs`), failed with this error.
    pub fn new(
        kind: StoreErrorKind,
        operation: &'static str,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self { kind, operation, source: Arc::from(source.into()) }
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The operation that failed.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.operation
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_store_error_keeps_its_source() {
        let full = io::Error::new(io::ErrorKind::StorageFull, "no space");
        let error = StoreError::new(StoreErrorKind::Unavailable, "record a run", full);
        assert_eq!(error.to_string(), "the store could not record a run: no space");
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::StorageFull));
    }
}
