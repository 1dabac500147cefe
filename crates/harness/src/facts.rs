//! What herma saw during a run, gathered step by step. The verdict and the report are drawn from it.

use std::collections::BTreeMap;
use std::path::Path;

use herma_git::SourceState;
use herma_model::blocker::BlockerRecord;
use herma_model::contract::Action;
use herma_model::engine::EngineExit;
use herma_model::report::{ChangedFile, PathViolation, Verification};
use herma_model::{Contract, Digest, EventType, RepoPath, Verdict};
use herma_policy::verdict::{RunFacts, SourceFacts};
use serde::{Deserialize, Serialize};

/// What herma saw during a run. It is saved before a file of the bundle depends on it, so that a later process can
/// close the run with what was known.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Facts {
    pub(crate) gate_blockers: Vec<BlockerRecord>,
    pub(crate) engine_digest: Option<Digest>,
    pub(crate) walls: Vec<String>,
    pub(crate) confined: bool,
    pub(crate) engine_started: bool,
    pub(crate) engine_exit: Option<EngineExit>,
    pub(crate) protocol_error: Option<String>,
    pub(crate) baseline_commit: Option<String>,
    pub(crate) result_tree: Option<String>,
    pub(crate) result_commit: Option<String>,
    pub(crate) changed_files: Vec<ChangedFile>,
    pub(crate) changed_tests: Vec<RepoPath>,
    pub(crate) ignored_files: Vec<RepoPath>,
    /// None until the paths were judged.
    pub(crate) violations: Option<Vec<PathViolation>>,
    pub(crate) actions: Vec<Action>,
    pub(crate) secret: Option<String>,
    pub(crate) verification: Vec<Verification>,
    pub(crate) verification_with_baseline_tests: Vec<Verification>,
    pub(crate) source_before: Option<SourceState>,
    pub(crate) source_after: Option<SourceState>,
    pub(crate) missing_event: Option<EventType>,
    pub(crate) write_failures: Vec<String>,
    pub(crate) interrupted: Option<String>,
    pub(crate) not_applicable: BTreeMap<String, String>,
}

impl Facts {
    /// Saves them for a process that has to close the run after this one died. After a power cut they may be lost;
    /// then what depends on them is left out of the bundle.
    pub(crate) fn save(&self, file: &Path) -> std::io::Result<()> {
        let temp = file.with_extension("new");
        std::fs::write(&temp, serde_json::to_vec(self)?)?;
        std::fs::rename(&temp, file)
    }

    /// The facts that were saved last; none at all where nothing was saved or it cannot be read.
    pub(crate) fn load(file: &Path) -> Self {
        std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// The verdict by the rules of `herma_policy::verdict`.
    pub(crate) fn judge(&self, contract: &Contract) -> Verdict {
        let source = self.source_before.as_ref().zip(self.source_after.as_ref()).map(|(before, after)| {
            let differences = before.differences(after);
            SourceFacts {
                clean_end: after.clean,
                mutated: !differences.is_empty(),
                what: differences.join(", "),
            }
        });
        herma_policy::verdict::judge(&RunFacts {
            require_diff: contract.terms.require_diff,
            engine_exit: self.engine_exit.clone(),
            changed: self.changed_files.len(),
            violations: self.violations.as_deref().unwrap_or_default(),
            forbidden_actions: &self.actions,
            verification: &self.verification,
            verification_with_baseline_tests: &self.verification_with_baseline_tests,
            verify_declared: contract.terms.verify.len(),
            missing_event: self.missing_event,
            secret_in_patch: self.secret.clone(),
            source,
            write_failures: self.write_failures.clone(),
            protocol_error: self.protocol_error.clone(),
            gate_blockers: self.gate_blockers.clone(),
            interrupted: self.interrupted.clone(),
        })
    }
}
