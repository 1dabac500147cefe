//! Verifies a bundle with everything that is at hand: the path rules, and the target where it can be had.

use std::path::{Path, PathBuf};

use herma_evidence::layout;
use herma_evidence::verify::{CheckList, TreeWitness, Trust, verify};
use herma_git::{Git, GitDir, ObjectFormat, SourceRepo};
use herma_model::contract::{self, Target};
use herma_model::report::{ChangedFile, PathRule, PathViolation};
use herma_model::{Contract, Report};
use herma_policy::PathRules;

use crate::file_reading::read_regular;
use crate::target::import_fixture;

/// Verifies the bundle in `dir`. With git, the patch of a fixture or of `repo` is applied to its baseline too.
#[must_use]
pub fn verify_bundle(dir: &Path, trust: &Trust, git: Option<&Git>, repo: Option<&Path>) -> CheckList {
    // git works in a directory of its own, where a relative path means something else.
    let dir = &std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let witness = git.map(|git| Witness { git: git.clone(), repo: repo.map(Path::to_owned) });
    // A repository that is not at hand is no failure: the tree was not checked, and the list says so.
    let at_hand = witness.as_ref().filter(|w| w.repo.is_some() || names_fixture(dir));
    verify(dir, trust, &judge, at_hand.map(|w| w as &dyn TreeWitness))
}

fn names_fixture(dir: &Path) -> bool {
    let contract = read_regular(&dir.join(layout::CONTRACT), contract::MAX_BYTES).ok();
    let contract = contract.and_then(|bytes| Contract::parse(&bytes).ok());
    contract.is_some_and(|c| matches!(c.terms.target, Target::Fixture(_)))
}

/// The path rules as far as the changes alone show them.
fn judge(contract: &Contract, changed: &[ChangedFile]) -> Vec<PathViolation> {
    match PathRules::compile(&contract.terms) {
        Ok(rules) => changed.iter().flat_map(|change| rules.judge_name(change)).collect(),
        // Rules that cannot be used allow nothing.
        Err(bad) => {
            let refuse = |change: &ChangedFile| PathViolation {
                path: change.path.clone(),
                rule: PathRule::NotAllowed,
                detail: bad.to_string(),
            };
            changed.iter().map(refuse).collect()
        }
    }
}

struct Witness {
    git: Git,
    repo: Option<PathBuf>,
}

impl TreeWitness for Witness {
    fn result_tree(
        &self,
        contract: &Contract,
        report: &Report,
        patch: Option<&Path>,
    ) -> Result<String, String> {
        let scratch = tempfile::tempdir().map_err(|e| e.to_string())?;
        let dir = scratch.path().join("git");
        let (git_dir, baseline) = match &contract.terms.target {
            Target::Fixture(name) => {
                let fixture = herma_fixtures::find(name.as_str())
                    .ok_or_else(|| format!("this version of herma has no fixture `{name}`"))?;
                let git_dir = GitDir::create(&self.git, &dir, ObjectFormat::Sha1, None).map_err(shown)?;
                let baseline = import_fixture(&git_dir, fixture).map_err(shown)?;
                (git_dir, baseline)
            }
            Target::Repo { repo, base } => {
                let root = self.repo.as_ref().ok_or("no repository was given")?;
                let source =
                    SourceRepo::open(&self.git, root, repo.as_str(), base.as_deref()).map_err(shown)?;
                source.make_git_dir(&dir).map_err(shown)?
            }
        };
        if report.baseline_commit.as_ref() != Some(&baseline.commit) {
            return Err(format!(
                "the target's base is now {}, the run started from {}",
                baseline.commit,
                report.baseline_commit.as_deref().unwrap_or("nothing")
            ));
        }
        match patch {
            None => Ok(baseline.tree),
            Some(patch) => git_dir.tree_with_patch(&baseline.tree, patch).map_err(shown),
        }
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn shown(error: herma_git::GitError) -> String {
    error.to_string()
}
