//! Judges paths and actions, and writes the patch unless it holds a secret.

use std::io::{self, Write};

use herma_core::event::DiffChecked;
use herma_core::report::PathRule;
use herma_evidence::secrets::SecretScanner;
use herma_evidence::{ArtifactWriter, layout};
use herma_rules::allowed_paths::{PathRules, TreeFacts};

use crate::collect::secret_in_the_patch;
use crate::error::Stop;
use crate::run::{Ground, Run};

/// Judges every changed path and every reported action, and writes the patch.
pub(crate) fn judge(run: &mut Run<'_>, ground: &Ground, tree: &TreeFacts) -> Result<(), Stop> {
    let mut violations = Vec::new();
    for terms in run.every_terms() {
        let rules = PathRules::compile(terms).map_err(|e| Stop::Internal(e.to_string()))?;
        violations.extend(rules.judge(tree));
    }
    violations.sort();
    violations.dedup();
    run.facts.violations = Some(violations.clone());
    write_patch(run, ground, tree)?;
    run.facts.save(&run.dirs.facts())?;
    let forbidden = violations.iter().filter(|v| v.rule == PathRule::Forbidden).count();
    run.record(DiffChecked {
        changed: tree.changes.len(),
        violations,
        forbidden,
        forbidden_actions: run.facts.actions.clone(),
        changed_tests: run.facts.changed_tests.clone(),
        changed_verification_files: run.facts.changed_verification_files.clone(),
        secret: run.facts.secret.is_some(),
    })
}

/// Writes the patch to the bundle while it is scanned; one that holds a secret is withheld.
fn write_patch(run: &mut Run<'_>, ground: &Ground, tree: &TreeFacts) -> Result<(), Stop> {
    let Some(result_tree) = run.facts.result_tree.clone() else { return Ok(()) };
    let patch = run.bundle.writer(layout::PATCH)?;
    let mut scanned = ScannedPatch { patch, scanner: SecretScanner::default() };
    ground.git_dir.diff(&ground.baseline.tree, &result_tree, &mut scanned)?;
    let ScannedPatch { patch, scanner } = scanned;
    let found = scanner.finish().into_iter().next();
    let at_byte = found.map(|f| format!("the patch holds a secret: {} at byte {}", f.rule, f.offset));
    // A name that git has to quote does not look like itself there.
    match at_byte.or_else(|| secret_in_the_patch(tree, &run.events.redactor())) {
        None => patch.finish()?,
        Some(secret) => {
            // Not finished, so it never becomes a file of the bundle.
            drop(patch);
            run.facts.secret = Some(secret);
            let reason = "withheld: it holds a secret; paths and digests are in the report";
            run.facts.not_applicable.insert(layout::PATCH.to_owned(), reason.to_owned());
        }
    }
    Ok(())
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
