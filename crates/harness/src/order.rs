//! The order of a run: flags, defaults and the contract, compiled into one form before anything starts.

use std::path::PathBuf;
use std::sync::Arc;

use herma_core::decision::Purpose;
use herma_core::egress::EgressMode;
use herma_core::engine::{DestinationKind, EngineName};
use herma_core::trust::TrustHead;
use herma_core::units::Span;
use herma_core::{Contract, Digest, Fault, RunId, Timestamp, VERSION};
use herma_engines::{Assignment, Resume};
use serde::{Deserialize, Serialize};

use crate::parent_run::ParentRun;

/// The order of a run.
#[derive(Clone, Debug)]
pub struct Order {
    /// The contract, parsed.
    pub contract: Contract,
    /// The contract's file as it was read: this very text goes into the bundle.
    pub contract_text: String,
    /// The directory that the contract's relative paths start from.
    pub contract_dir: PathBuf,
    /// The engine that was named; `fake` otherwise.
    pub engine: EngineName,
    /// Where to run, if the contract does not say it: what a flag says, or what was chosen for the repository.
    pub destination: Option<DestinationKind>,
    /// The script of `fake`; it needs one.
    pub script: Option<String>,
    /// Whether the workspace stays after the run.
    pub keep_workspace: bool,
    /// How to treat hosts that are not on the allowlist.
    pub egress: EgressMode,
    /// The run that this one resumes.
    pub resumes: Option<Resumed>,
    /// A fault to meet.
    pub fault: Option<Fault>,
}

/// The purpose of a run. Only herma itself can make a run a proof or a child: no flag and no contract does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Occasion<'a> {
    pub(crate) purpose: Purpose,
    /// How long the operator has, where that is not what the settings say.
    pub(crate) outcome_within: Option<Span>,
    /// The run that asked for this one.
    pub(crate) child_of: Option<&'a Arc<ParentRun>>,
}

impl Order {
    /// The engine's assignment.
    pub(crate) fn assignment(&self) -> Assignment<'_> {
        Assignment {
            contract: &self.contract,
            script: self.script.as_deref(),
            resume: self.resumes.as_ref().and_then(|resumed| resumed.resume.as_ref()),
            note: self
                .resumes
                .as_ref()
                .filter(|resumed| resumed.resume.is_none())
                .map(|r| r.message.as_str()),
        }
    }

    /// The destination: the contract's, then the flag's or the repository's choice, then `sandbox`.
    #[must_use]
    pub fn destination(&self) -> DestinationKind {
        self.contract.terms.destination.or(self.destination).unwrap_or(DestinationKind::Sandbox)
    }
}

/// The data that a later process needs to close the run if this one dies. It never leaves the home.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    pub(crate) run_id: RunId,
    /// The run that it resumes, or that asked for it.
    #[serde(default)]
    pub(crate) parent_run: Option<RunId>,
    /// How many runs it is inside of.
    #[serde(default)]
    pub(crate) depth: u8,
    pub(crate) started_at: Timestamp,
    pub(crate) contract_text: String,
    pub(crate) contract_digest: Digest,
    pub(crate) engine: EngineName,
    pub(crate) engine_version: String,
    pub(crate) destination: DestinationKind,
    pub(crate) keep_workspace: bool,
    #[serde(default)]
    pub(crate) egress: EgressMode,
    pub(crate) herma_version: String,
    /// The head of the trust chain when the run started.
    #[serde(default)]
    pub(crate) trust_head: Option<TrustHead>,
    /// The directory that the contract's relative paths start from, for a later run that resumes this one.
    #[serde(default)]
    pub(crate) contract_dir: Option<PathBuf>,
}

impl Plan {
    pub(crate) fn new(
        order: &Order,
        occasion: Occasion<'_>,
        run_id: RunId,
        started_at: Timestamp,
        contract_digest: Digest,
    ) -> Self {
        let resumed = order.resumes.as_ref().map(|resumed| resumed.run);
        Self {
            run_id,
            parent_run: occasion.child_of.map(|parent| parent.run).or(resumed),
            depth: occasion.child_of.map_or(0, |parent| parent.depth),
            started_at,
            contract_text: order.contract_text.clone(),
            contract_digest,
            engine: order.engine.clone(),
            engine_version: "unknown".to_owned(),
            destination: order.destination(),
            keep_workspace: order.keep_workspace,
            egress: order.egress,
            herma_version: VERSION.to_owned(),
            trust_head: None,
            contract_dir: Some(order.contract_dir.clone()),
        }
    }
}

/// The run that another one resumes.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// Which.
    pub(crate) run: RunId,
    /// The session that its agent continues; none where the run was cut off before its session could be kept.
    pub(crate) resume: Option<Resume>,
    /// The message to the agent.
    pub(crate) message: String,
    /// Its work; none where it changed nothing, or where its patch was withheld.
    pub(crate) work: Option<Work>,
}

/// The work of the run that another one resumes.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// A patch, and the tree that it makes of the base that it was drawn from.
    Patch { patch: PathBuf, tree: String },
    /// The workspace that was kept when the run was interrupted.
    Workspace(KeptWorkspace),
}

/// The workspace that was kept when a run was interrupted.
#[derive(Clone, Debug)]
pub(crate) struct KeptWorkspace {
    pub(crate) directory: PathBuf,
    /// The parentless commit of the base of that run.
    pub(crate) baseline_commit: Option<String>,
}
