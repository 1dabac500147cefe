//! The store as a whole: whether it agrees with the bundles, making it anew from them, and moving it to another engine.

mod check;
mod migrate;
mod rebuild;

use std::io;
use std::path::PathBuf;

use herma_core::RunId;
use herma_core::store::StoreError;
use herma_harness::{Installation, OrderError, StorePlaceError};

pub use check::check_store;
pub use migrate::{StoreTarget, migrate_store};
pub use rebuild::{rebuild_store, set_corrupt_store_aside};

/// A command about the store was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum StoreCommandError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A store cannot be located.
    #[error(transparent)]
    Place(#[from] StorePlaceError),
    /// The home cannot be read.
    #[error("herma's home cannot be read: {0}")]
    Home(io::Error),
    /// A run is in progress.
    #[error("run {0} is in progress")]
    ActiveRun(RunId),
    /// Other processes use the store.
    #[error("{count} other processes use the store {location}")]
    InUse {
        /// How many.
        count: u64,
        /// The store.
        location: String,
    },
    /// The run could not be recorded.
    #[error("run {0} could not be recorded: {1}")]
    Record(RunId, OrderError),
    /// The copy and its source are the same.
    #[error("the store is at {0} already")]
    SameStore(String),
    /// The settings have a store, or the environment precedes them.
    #[error("settings.yaml cannot name the new store: {0}")]
    CannotUse(&'static str),
    /// A file cannot be written or moved.
    #[error("{} cannot be changed: {cause}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
}

impl StoreCommandError {
    /// The next step for the user.
    #[must_use]
    pub fn next_step(&self) -> String {
        match self {
            Self::Store(_) | Self::Record(..) => {
                "`herma store check` says whether the store can be used".to_owned()
            }
            Self::Place(error) => error.next_step().to_owned(),
            Self::Home(_) => "make it readable for its owner".to_owned(),
            Self::ActiveRun(_) => "wait for its end, or cancel it".to_owned(),
            Self::InUse { .. } => "stop them: `herma serve`, and every other herma command".to_owned(),
            Self::SameStore(_) => "name another one".to_owned(),
            Self::CannotUse(_) => "repeat it without --use, and change the setting yourself".to_owned(),
            Self::File { .. } => "make it writable".to_owned(),
        }
    }
}

/// Refuses while anything else could change the store.
fn nothing_else_uses(installation: &Installation) -> Result<(), StoreCommandError> {
    if let Some(run) = installation.home.active_runs().map_err(StoreCommandError::Home)?.first() {
        return Err(StoreCommandError::ActiveRun(*run));
    }
    let about = installation.store.call(|store| store.describe())?;
    if about.other_processes > 0 {
        return Err(StoreCommandError::InUse { count: about.other_processes, location: about.location });
    }
    Ok(())
}
