//! Confinement probes: before the engine starts, herma attempts from inside every access that must be denied there.
//! "The sandbox was on" is then evidence, not configuration.

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

use crate::isolation_layer::IsolationLayer;
use crate::landlock_canary::LandlockCanary;
use crate::limits::Held;

pub use canaries::clean_up;
pub use inside::run_inside;
pub use outside::{ProbeError, ProbeSite, probe};
pub use table::{ProbeRow, rows};

/// The hidden subcommand; its argument is the path of the plan, its output are the results as JSON.
pub const SUBCOMMAND: &str = "__probe";

/// Given instead of a plan: the process waits until stdin closes, as a target for ptrace.
pub const WAIT: &str = "wait";

/// The branch of the planted repository that a push would delete.
const CANARY_BRANCH: &str = "refs/heads/canary";

/// The plan of the process inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbePlan {
    /// The run.
    pub run_id: RunId,
    /// Whether the inside has its own user namespace.
    pub user_namespace: bool,
    /// Whether `/dev` is mounted read-only inside.
    pub read_only_devices: bool,
    /// The kind of path that only Landlock keeps from being written.
    pub landlock_canary: LandlockCanary,
    /// The scratch workspace as seen from inside. Writing there must succeed, or a denial elsewhere proves nothing.
    pub workspace: PathBuf,
    /// The content of the marker file to write there.
    pub marker: String,
    /// A secret in herma's home.
    pub herma_canary: Canary,
    /// A secret in the user's home.
    pub home_canary: Canary,
    /// The directory of another run.
    pub other_run: PathBuf,
    /// The paths inside that are mounted read-only.
    pub mounts: Vec<PathBuf>,
    /// A loopback port of the host on which herma listens.
    pub port: u16,
    /// A UDP loopback port of the host on which herma listens.
    pub udp_port: u16,
    /// A socket in herma's home on which herma listens.
    pub admin_socket: PathBuf,
    /// A socket in the host's /tmp on which herma listens.
    pub host_socket: PathBuf,
    /// The name of an abstract socket on which herma listens.
    pub abstract_socket: String,
    /// A bare repository of the host.
    pub repository: PathBuf,
    /// herma itself, as a process of the host.
    pub herma: HermaProcess,
    /// herma's own namespaces, as the kernel names them.
    pub namespaces: BTreeMap<String, String>,
    /// The names of the variables that herma sets.
    pub variables: Vec<String>,
    /// The enforced limits.
    pub limits: Vec<Held>,
    /// Small limits to exceed; with them, nothing else is attempted.
    pub small: Option<SmallLimits>,
}

/// Limits that can be exceeded without harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmallLimits {
    /// Memory of all processes together, in bytes.
    pub memory: u64,
    /// Processes and threads at once.
    pub processes: u64,
}

/// A secret planted where the inside must not reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canary {
    /// Its path on the host.
    pub path: PathBuf,
    /// The digest of its content.
    pub digest: Digest,
}

/// herma's process, described so that the inside can tell it from a process with the same pid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HermaProcess {
    /// Its pid.
    pub pid: i32,
    /// When it started, in clock ticks since boot.
    pub started: u64,
    /// Its pid namespace, as the kernel names it.
    pub pid_namespace: String,
}

/// The result of one probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeResult {
    /// The probe's name.
    pub name: String,
    /// The attempt.
    pub what: String,
    /// The isolation layer that must deny it.
    pub wall: IsolationLayer,
    /// Whether that was refused. Everything but a clear refusal is `false`.
    pub denied: bool,
    /// The observation.
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
    /// The destination of the process.
    pub destination: DestinationKind,
    /// The isolation layers around it.
    pub walls: Vec<String>,
    /// The limits that were held, and by what.
    pub limits: Vec<Held>,
    /// Every probe, in a fixed order.
    pub probes: Vec<ProbeResult>,
}

/// The version of `confinement.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConfinementSchema {
    /// The second version: the first had neither limits nor the layer of each probe.
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
