//! What herma saw during a run, gathered step by step. The verdict and the report are drawn from it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use herma_core::approval::ApprovalId;
use herma_core::blocker::BlockerRecord;
use herma_core::capability::{Capability, Support};
use herma_core::contract::Action;
use herma_core::egress::EgressUse;
use herma_core::engine::EngineExit;
use herma_core::report::{Admission, ApprovalStatus, ChangedFile, PathViolation, Usage, Verification};
use herma_core::tool::{ModelToolCalls, ToolUse};
use herma_core::{Contract, Digest, EventType, RepoPath, Timestamp, Verdict};
use herma_engines::SessionId;
use herma_git::{Landing, SourceState};
use herma_rules::verdict::{RunFacts, SourceFacts};
use serde::{Deserialize, Serialize};

use crate::file_reading::{MAX_RECORD_BYTES, open_with, read_regular};

/// What herma saw during a run. It is saved before a file of the bundle depends on it, so that a later process can
/// close the run with what was known.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Facts {
    pub(crate) gate_blockers: Vec<BlockerRecord>,
    pub(crate) engine_admission: Option<Admission>,
    pub(crate) model_admission: Option<Admission>,
    pub(crate) target_admission: Option<Admission>,
    pub(crate) approval_status: Option<ApprovalStatus>,
    pub(crate) approval_id: Option<ApprovalId>,
    pub(crate) engine_digest: Option<Digest>,
    /// What the engine declared of the capabilities that the contract needs.
    #[serde(default)]
    pub(crate) needs: BTreeMap<Capability, Support>,
    pub(crate) walls: Vec<String>,
    pub(crate) confined: bool,
    pub(crate) engine_started: bool,
    pub(crate) engine_exit: Option<EngineExit>,
    /// The limit that the engine met, or who ended it, where its exit does not say that.
    #[serde(default)]
    pub(crate) engine_ended: Option<String>,
    pub(crate) protocol_error: Option<String>,
    /// What the agent calls its session.
    #[serde(default)]
    pub(crate) session: Option<SessionId>,
    pub(crate) baseline_commit: Option<String>,
    pub(crate) result_tree: Option<String>,
    pub(crate) result_commit: Option<String>,
    pub(crate) changed_files: Vec<ChangedFile>,
    pub(crate) changed_tests: Vec<RepoPath>,
    /// Changed files that decide what verification does, and are no tests.
    #[serde(default)]
    pub(crate) changed_verification_files: Vec<RepoPath>,
    pub(crate) ignored_files: Vec<RepoPath>,
    /// None until the paths were judged.
    pub(crate) violations: Option<Vec<PathViolation>>,
    pub(crate) actions: Vec<Action>,
    /// What the engine asked about of its tool calls; none for one that does not ask.
    #[serde(default)]
    pub(crate) tools: Option<ToolUse>,
    /// How many model calls were begun before the engine was started: those are herma's own.
    #[serde(default)]
    pub(crate) own_model_calls: u64,
    /// Where the result holds a secret, in words.
    pub(crate) secret: Option<String>,
    pub(crate) verification: Vec<Verification>,
    pub(crate) verification_with_baseline_tests: Vec<Verification>,
    pub(crate) source_before: Option<SourceState>,
    pub(crate) source_after: Option<SourceState>,
    /// Where the target is. It never leaves the home.
    pub(crate) target_dir: Option<PathBuf>,
    pub(crate) disposable_before: Option<SourceState>,
    pub(crate) disposable_after: Option<SourceState>,
    pub(crate) landing: Option<Landing>,
    pub(crate) landed: bool,
    pub(crate) landing_refused: Option<BlockerRecord>,
    pub(crate) outcome_due: Option<Timestamp>,
    /// What the run used of models, by its router's own record.
    #[serde(default)]
    pub(crate) usage: Usage,
    /// The upstream that answered last.
    #[serde(default)]
    pub(crate) answered_by: Option<String>,
    /// What speaks at each upstream of the run, by the router's configuration.
    #[serde(default)]
    pub(crate) providers: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) model_refusals: Vec<BlockerRecord>,
    /// What the run's egress proxy decided; none for a run that had none.
    #[serde(default)]
    pub(crate) egress: Option<EgressUse>,
    /// Which hosts it denied, in words.
    #[serde(default)]
    pub(crate) egress_denied: Option<String>,
    pub(crate) missing_event: Option<EventType>,
    /// Why herma's own verification refuses the bundle, where it does.
    #[serde(default)]
    pub(crate) evidence_refused: Option<String>,
    pub(crate) write_failures: Vec<String>,
    pub(crate) interrupted: Option<String>,
    pub(crate) not_applicable: BTreeMap<String, String>,
}

impl Facts {
    /// Takes down forbidden actions that were attempted, each once.
    pub(crate) fn attempted(&mut self, actions: impl IntoIterator<Item = Action>) {
        for action in actions {
            if !self.actions.contains(&action) {
                self.actions.push(action);
            }
        }
    }

    /// Takes down that the engine asked about tool calls, and how often it was told no.
    pub(crate) fn note_asked(&mut self, asked: u64, denied: u64) {
        if let Some(tools) = &mut self.tools {
            tools.asked += asked;
            tools.denied += denied;
        }
    }

    /// Takes down that the engine told of a tool call that it had not asked about in a dialogue.
    pub(crate) fn note_told(&mut self) {
        if let Some(tools) = &mut self.tools {
            tools.unasked += 1;
        }
    }

    /// Takes down what a hook asked. Beside it the agent told of those calls too.
    pub(crate) fn note_hooked(&mut self, asked: u64, denied: u64) {
        self.note_asked(asked, denied);
        if let Some(tools) = &mut self.tools {
            tools.unasked = tools.unasked.saturating_sub(asked);
        }
    }

    /// Takes down how many tool calls the model asked for: the engine, and herma itself.
    pub(crate) fn note_model_calls(&mut self, asked_for: u64, at_gates: u64) {
        if let Some(tools) = &mut self.tools {
            tools.model_calls = Some(ModelToolCalls { asked_for, at_gates, unreconciled: 0 });
        }
    }

    /// Saves them for a process that has to close the run after this one died. After a power cut they may be lost;
    /// then what depends on them is left out of the bundle.
    pub(crate) fn save(&self, file: &Path) -> std::io::Result<()> {
        self.append(file).map(drop)
    }

    /// The same, durably: what they say must be known after a power cut.
    pub(crate) fn save_durably(&self, file: &Path) -> std::io::Result<()> {
        self.append(file)?.sync_all()?;
        file.parent().map_or(Ok(()), herma_home::sync_dir)
    }

    /// Each time a line more: a new file for each would cost every run some time.
    fn append(&self, file: &Path) -> std::io::Result<File> {
        let mut file = open_with(File::options().create(true).append(true), file)?;
        // On a line of its own, whatever was cut off before it.
        let mut line = b"\n".to_vec();
        serde_json::to_writer(&mut line, self)?;
        file.write_all(&line)?;
        Ok(file)
    }

    /// The facts that were saved last, in full; none at all where there are no such.
    pub(crate) fn load(file: &Path) -> Self {
        let lines = read_regular(file, MAX_RECORD_BYTES).unwrap_or_default();
        let mut lines = lines.rsplit(|byte| *byte == b'\n');
        lines.find_map(|line| serde_json::from_slice(line).ok()).unwrap_or_default()
    }

    /// What was seen of the target, and of the repository that was made for the run.
    fn source(&self) -> Option<SourceFacts> {
        let target = self.source_before.as_ref().zip(self.source_after.as_ref());
        let made = self.disposable_before.as_ref().zip(self.disposable_after.as_ref());
        let seen: Vec<_> = target.into_iter().chain(made).collect();
        let differences: Vec<_> = seen.iter().flat_map(|(before, after)| before.differences(after)).collect();
        (!seen.is_empty()).then(|| SourceFacts {
            clean_end: seen.iter().all(|(_, after)| after.clean),
            mutated: !differences.is_empty(),
            what: differences.join(", "),
        })
    }

    /// The verdict by the rules of `herma_rules::verdict`.
    pub(crate) fn judge(&self, contract: &Contract) -> Verdict {
        herma_rules::verdict::judge(&RunFacts {
            gates_only: !contract.terms.stage.starts_engine(),
            require_diff: contract.terms.require_diff,
            engine_exit: self.engine_exit.clone(),
            engine_ended: self.engine_ended.clone(),
            changed: self.changed_files.len(),
            violations: self.violations.as_deref().unwrap_or_default(),
            forbidden_actions: &self.actions,
            verification: &self.verification,
            verification_with_baseline_tests: &self.verification_with_baseline_tests,
            changed_verification_files: &self.changed_verification_files,
            verify_declared: contract.terms.verify.len(),
            model_refusals: self.model_refusals.clone(),
            egress_denied: self.egress_denied.clone(),
            missing_event: self.missing_event,
            evidence_refused: self.evidence_refused.clone(),
            secret: self.secret.clone(),
            source: self.source(),
            landing_refused: self.landing_refused.clone(),
            write_failures: self.write_failures.clone(),
            protocol_error: self.protocol_error.clone(),
            gate_blockers: self.gate_blockers.clone(),
            interrupted: self.interrupted.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_last_in_full_is_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("facts.jsonl");
        assert!(!Facts::load(&file).confined);
        Facts { confined: true, ..Facts::default() }.save(&file).unwrap();
        Facts { confined: true, landed: true, ..Facts::default() }.save_durably(&file).unwrap();
        // Cut off in the middle, as when herma is killed while it writes.
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
        let loaded = Facts::load(&file);
        assert!(loaded.confined && !loaded.landed);
        Facts { landed: true, ..Facts::default() }.save(&file).unwrap();
        assert!(Facts::load(&file).landed);
    }
}
