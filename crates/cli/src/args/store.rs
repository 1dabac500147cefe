//! Arguments of commands about the store.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Commands about the store.
#[derive(Debug, Subcommand)]
pub enum Store {
    /// Say where the store is, and whether it agrees with the bundles of this home
    Check,
    /// Make the index of runs anew from the bundles that verify; approvals that were not used are void
    Rebuild,
    /// Copy the store into an empty one of another engine, and compare both
    Migrate(StoreMigrate),
}

/// Arguments of `herma store migrate`.
#[derive(Debug, Args)]
pub struct StoreMigrate {
    /// The new store: `postgres://USER@HOST:PORT/DATABASE` or `sqlite:PATH`
    #[arg(long, value_name = "URL")]
    pub to: String,
    /// The file with the password of the new store
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Name the new store in settings.yaml afterwards
    #[arg(long = "use")]
    pub is_to_be_used: bool,
}
