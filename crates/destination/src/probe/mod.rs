//! Confinement probes: before the engine starts, herma tries from inside what must not be possible there. "The
//! sandbox was on" is then evidence, not configuration.

mod attempts;
mod canaries;
mod inside;
mod outside;
mod table;

use std::collections::BTreeMap;
use std::path::PathBuf;

use herma_core::engine::DestinationKind;
use herma_core::{Digest, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::Held;
use crate::wall::Wall;

pub use canaries::clean_up;
pub use inside::run_inside;
pub use outside::{Grounds, ProbeError, probe};
pub use table::{Row, rows};

/// The name of the hidden subcommand whose one argument is the plan's file and whose output is the results as JSON.
pub const SUBCOMMAND: &str = "__probe";

/// The word in place of a plan for a process that others are to take hold of: it only waits until its input ends.
pub const WAIT: &str = "wait";

/// The branch of the planted repository that a push would delete.
const CANARY_BRANCH: &str = "refs/heads/canary";

/// What the inside is told to try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbePlan {
    /// The run.
    pub run_id: RunId,
    /// Whether the inside has its own user namespace.
    pub user_namespace: bool,
    /// Whether `/dev` is mounted read-only inside.
    pub read_only_devices: bool,
    /// What only Landlock keeps from being written.
    pub landlock_canary: LandlockCanary,
    /// The scratch workspace as seen from inside: here writing must succeed, or no denial means anything.
    pub workspace: PathBuf,
    /// What to write there.
    pub sign: String,
    /// A secret in herma's home.
    pub herma_canary: Canary,
    /// A secret in the user's home.
    pub home_canary: Canary,
    /// The directory of another run.
    pub other_run: PathBuf,
    /// The places inside that are mounted for reading only.
    pub mounts: Vec<PathBuf>,
    /// A port of the host's loopback on which herma listens meanwhile.
    pub port: u16,
    /// A port of the host's loopback that takes datagrams meanwhile.
    pub udp_port: u16,
    /// A socket in herma's home on which herma listens meanwhile.
    pub admin_socket: PathBuf,
    /// A socket in the host's /tmp on which herma listens meanwhile.
    pub host_socket: PathBuf,
    /// The name of an abstract socket on which herma listens meanwhile.
    pub abstract_socket: String,
    /// A bare repository of the host.
    pub repository: PathBuf,
    /// herma itself, as a process of the host.
    pub herma: HostProcess,
    /// herma's own namespaces, as the kernel names them.
    pub namespaces: BTreeMap<String, String>,
    /// The names of the variables that herma sets.
    pub variables: Vec<String>,
    /// The limits that are held.
    pub limits: Vec<Held>,
    /// The limits that are to be passed, where these are small; then nothing else is tried.
    pub small: Option<SmallLimits>,
}

/// What the mounts would let be written inside, so that only Landlock denies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandlockCanary {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// Limits that can be passed without harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmallLimits {
    /// Memory of all processes together, in bytes.
    pub memory: u64,
    /// Processes and threads at once.
    pub processes: u64,
}

/// A secret that was planted where the inside must not reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canary {
    /// Its path on the host.
    pub path: PathBuf,
    /// The digest of its content.
    pub digest: Digest,
}

/// A process of the host, so that the inside can tell it from one of its own with the same number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostProcess {
    /// Its number.
    pub pid: i32,
    /// When it started, in clock ticks since boot.
    pub started: u64,
    /// Its pid namespace, as the kernel names it.
    pub pid_namespace: String,
}

/// What one probe found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeResult {
    /// The probe's name.
    pub name: String,
    /// What it tried.
    pub what: String,
    /// The wall that must refuse it.
    pub wall: Wall,
    /// Whether that was refused. Everything but a clear refusal is `false`.
    pub denied: bool,
    /// What happened.
    pub observed: String,
}

/// `confinement.json`: where the engine lived and what it could not do there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Confinement {
    /// The version of this file's form.
    pub schema: ConfinementSchema,
    /// The run.
    pub run_id: RunId,
    /// Where the process lived.
    pub destination: DestinationKind,
    /// The walls around it.
    pub walls: Vec<String>,
    /// The limits that were held, and by what.
    pub limits: Vec<Held>,
    /// Every probe, in a fixed order.
    pub probes: Vec<ProbeResult>,
}

/// The version of `confinement.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConfinementSchema {
    /// The second one: the first had neither limits nor the wall of each probe.
    #[serde(rename = "herma.confinement/v2")]
    V2,
}

impl Confinement {
    /// The probes that were not refused; one is enough to block the run.
    #[must_use]
    pub fn broken(&self) -> Vec<&ProbeResult> {
        self.probes.iter().filter(|probe| !probe.denied).collect()
    }
}
