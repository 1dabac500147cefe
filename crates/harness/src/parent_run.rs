//! The run that asked for a child run, as the child knows it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use herma_core::contract::Terms;
use herma_core::engine::EngineName;
use herma_core::{Contract, RunId};
use herma_git::GitDir;
use herma_router::service::ParentBudget;

/// The most runs above a child.
pub(crate) const MAX_DEPTH: u8 = 5;

/// The run that asked for a child run.
#[derive(Debug)]
pub(crate) struct ParentRun {
    /// Its name.
    pub(crate) run: RunId,
    /// The number of runs above the child.
    pub(crate) depth: u8,
    /// The rules of the parent, which hold for the child too.
    pub(crate) terms: Vec<Terms>,
    /// The engine and the contract of the parent and of each run above it, as policies know them.
    pub(crate) lineage: Vec<(EngineName, String)>,
    /// The parent's workspace: the child's target.
    pub(crate) workspace: PathBuf,
    /// herma's own git directory of the parent.
    pub(crate) git: PathBuf,
    /// The parent's git directory, with the submodules and LFS files of its checkouts.
    pub(crate) content: GitDir,
    /// The tree in that directory that the parent began with.
    pub(crate) base_tree: String,
    /// A checkout of that tree that no agent sees.
    pub(crate) checkout: PathBuf,
    /// The scratch paths of the parent's engine.
    pub(crate) scratch: Vec<String>,
    /// The contract that a person started, and its directory: its destination is that of all runs below it.
    pub(crate) root: (Contract, PathBuf),
    /// The parent's router, whose budget the child's calls count against; none where the parent has no model.
    pub(crate) router: Option<ParentBudget>,
    /// Set when the parent's engine has ended.
    pub(crate) over: AtomicBool,
}

impl ParentRun {
    /// Whether the parent's engine has ended, so that nothing waits for the child.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Notes that the parent's engine has ended.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }
}
