//! The check step: judges paths and actions, and writes the patch unless it holds a secret.

use std::io::{self, Write};

use herma_core::contract::Action;
use herma_core::event::DiffChecked;
use herma_core::report::{PathRule, PathViolation};
use herma_evidence::secrets::SecretScanner;
use herma_evidence::{ArtifactWriter, layout};
use herma_rules::{PathRules, TreeFacts};
use serde::{Deserialize, Serialize};

use crate::collect::{Collected, secret_in_the_patch};
use crate::context::RunContext;
use crate::error::Stop;
use crate::journal::StepResult;
use crate::tree_diff::BaseTree;

/// The judgement of the changed paths and of the patch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Checked {
    pub(crate) violations: Vec<PathViolation>,
    /// The location of a secret in the patch, as text; the bundle then has no patch.
    pub(crate) secret_in_patch: Option<String>,
}

impl StepResult for Checked {
    const KEY: &'static str = "checked";
}

impl Checked {
    /// The location of a secret in the result, as text.
    pub(crate) fn secret<'a>(&'a self, collected: &'a Collected) -> Option<&'a String> {
        self.secret_in_patch.as_ref().or(collected.secret.as_ref())
    }
}

/// Judges every changed path, and writes the patch. `actions` are the forbidden ones that were attempted.
pub(crate) fn judge(
    ctx: &RunContext<'_>,
    base: &BaseTree,
    (collected, tree): (&Collected, &TreeFacts),
    actions: &[Action],
    found: &mut Option<Checked>,
) -> Result<(), Stop> {
    let mut violations = Vec::new();
    for terms in ctx.effective_rules() {
        let rules = PathRules::compile(terms).map_err(Stop::internal)?;
        violations.extend(rules.judge(tree));
    }
    violations.sort();
    violations.dedup();
    let checked = found.insert(Checked { violations, secret_in_patch: None });
    checked.secret_in_patch = write_patch(ctx, base, collected, tree)?;
    ctx.journal.append(checked)?;
    let violations = checked.violations.clone();
    ctx.record(DiffChecked {
        changed: tree.changes.len(),
        forbidden: violations.iter().filter(|violation| violation.rule == PathRule::Forbidden).count(),
        violations,
        forbidden_actions: actions.to_vec(),
        changed_tests: collected.changed_tests.clone(),
        changed_verification_files: collected.changed_verification_files.clone(),
        secret: checked.secret(collected).is_some(),
    })
}

/// Writes the patch to the bundle while it is scanned. A patch that holds a secret is withheld; the result says where.
fn write_patch(
    ctx: &RunContext<'_>,
    base: &BaseTree,
    collected: &Collected,
    tree: &TreeFacts,
) -> Result<Option<String>, Stop> {
    let patch = ctx.bundle.writer(layout::PATCH)?;
    let mut scanned = ScannedPatch { patch, scanner: SecretScanner::default() };
    base.git_dir.diff(&base.baseline.tree, &collected.result_tree, &mut scanned)?;
    let ScannedPatch { patch, scanner } = scanned;
    let found = scanner.finish().into_iter().next();
    let at_byte = found.map(|f| format!("the patch holds a secret: {} at byte {}", f.rule, f.offset));
    // git quotes some names, and then they do not look like themselves in the patch.
    let secret = at_byte.or_else(|| secret_in_the_patch(tree, &ctx.events.redactor()));
    match secret {
        None => patch.finish()?,
        // An unfinished artifact never becomes a file of the bundle.
        Some(_) => drop(patch),
    }
    Ok(secret)
}

/// Writes and scans in one pass.
struct ScannedPatch {
    patch: ArtifactWriter,
    scanner: SecretScanner,
}

impl Write for ScannedPatch {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patch.write_all(bytes)?;
        self.scanner.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.patch.flush()
    }
}
