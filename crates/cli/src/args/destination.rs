//! Arguments of `herma destinations`, `herma destination` and `herma probe`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use herma_destination::ImagePin;

use crate::args::DestinationArg;

/// The repository that a command is about.
#[derive(Debug, Args)]
pub struct OfRepository {
    /// The repository, or any of its worktrees
    #[arg(long, value_name = "DIR", default_value = Self::HERE)]
    pub repo: PathBuf,
}

impl OfRepository {
    /// Where herma was started.
    pub(crate) const HERE: &'static str = ".";
}

/// Commands about where runs on a repository take place.
#[derive(Debug, Subcommand)]
pub enum Destination {
    /// Choose where runs on a repository take place, if neither the contract nor `--destination` says it
    Set(SetDestination),
    /// Show where runs on a repository take place
    Show(OfRepository),
}

/// Arguments of `herma destination set`.
#[derive(Debug, Args)]
pub struct SetDestination {
    /// The destination
    #[arg(value_enum)]
    pub name: DestinationArg,
    /// Docker's image by digest: `NAME@sha256:...`, or `sha256:...` if it was built here
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<ImagePin>,
    /// Docker's runtime, such as `runsc`
    #[arg(long, value_name = "NAME")]
    pub runtime: Option<String>,
    /// For which repository.
    #[command(flatten)]
    pub of: OfRepository,
}

/// Arguments of `herma probe`.
#[derive(Debug, Args)]
pub struct Probe {
    /// The destination; where runs on the repository take place otherwise
    #[arg(long, value_enum)]
    pub destination: Option<DestinationArg>,
    /// Whose choice of image and runtime counts.
    #[command(flatten)]
    pub of: OfRepository,
}
