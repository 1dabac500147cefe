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
    /// Set the destination for runs on a repository that neither the contract nor `--destination` sets
    Set(SetDestination),
    /// Show the destination for runs on a repository
    Show(OfRepository),
}

/// Arguments of `herma destination set`.
#[derive(Debug, Args)]
pub struct SetDestination {
    /// The destination
    #[arg(value_enum)]
    pub name: DestinationArg,
    /// Docker image by digest: `NAME@sha256:...`, or `sha256:...` if built locally
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<ImagePin>,
    /// Docker runtime, such as `runsc`
    #[arg(long, value_name = "NAME")]
    pub runtime: Option<String>,
    /// For which repository.
    #[command(flatten)]
    pub of: OfRepository,
}

/// Arguments of `herma probe`.
#[derive(Debug, Args)]
pub struct Probe {
    /// The destination (default: the one for the repository)
    #[arg(long, value_enum)]
    pub destination: Option<DestinationArg>,
    /// The repository whose choice of image and runtime counts.
    #[command(flatten)]
    pub of: OfRepository,
}
