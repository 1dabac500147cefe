//! JSON output of `herma destinations`, `herma destination` and `herma probe`.

use herma_core::engine::DestinationKind;
use herma_destination::{Held, IsolationLayer};
use schemars::JsonSchema;
use serde::Serialize;

/// `herma destinations --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DestinationsOutput {
    /// `herma.destinations/v1`.
    pub schema: &'static str,
    /// Every destination.
    pub destinations: Vec<DestinationRow>,
}

/// A destination in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DestinationRow {
    /// Its name.
    pub name: DestinationKind,
    /// Whether runs on the repository take place there, if neither the contract nor `--destination` says it.
    pub chosen: bool,
    /// Whether something was started there just now.
    pub ready: bool,
    /// The confining program with its version, or the reason why the destination is not ready.
    pub detail: String,
    /// The next step where it is not ready.
    pub next_step: Option<String>,
    /// The confinement layers of the destination.
    pub walls: Vec<String>,
}

/// `herma destination set|show --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DestinationOutput {
    /// `herma.destination/v1`.
    pub schema: &'static str,
    /// The git directory that the repository shares with its worktrees.
    pub repository: String,
    /// Where runs on it take place, if neither the contract nor `--destination` says it.
    pub destination: DestinationKind,
    /// Whether a person chose that for this repository; otherwise it is the default.
    pub chosen: bool,
    /// Docker's image: what was chosen, or what `settings.yaml` says.
    pub image: Option<String>,
    /// Docker's runtime, in the same way; Docker's default if none.
    pub runtime: Option<String>,
}

/// `herma probe --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProbeOutput {
    /// `herma.probe/v1`.
    pub schema: &'static str,
    /// Where it was tried.
    pub destination: DestinationKind,
    /// Whether everything was denied.
    pub ok: bool,
    /// The confinement layers there.
    pub walls: Vec<String>,
    /// The limits that are held there, and by what.
    pub limits: Vec<Held>,
    /// Every probe.
    pub probes: Vec<ProbeRow>,
}

/// One probe.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProbeRow {
    /// Its name.
    pub name: String,
    /// The attempted operation.
    pub what: String,
    /// The layer that must deny it.
    pub wall: IsolationLayer,
    /// Whether it was denied. Everything but a clear refusal is `false`.
    pub denied: bool,
    /// The observed result.
    pub detail: String,
}
