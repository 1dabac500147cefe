//! Verifies a bundle with everything that is at hand: the path rules, and the target where it can be had.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use herma_core::contract::{self, Target};
use herma_core::event::{Event, EventType, Source};
use herma_core::report::{ChangedFile, Mode, PathRule, PathViolation};
use herma_core::{Contract, RepoPath, Report};
use herma_evidence::verify::{
    CheckList, Context, Doubt, ExpectedRun, TreeWitness, Trust, verify, verify_signed,
};
use herma_evidence::{Attestation, layout};
use herma_files::{read_regular, read_start};
use herma_git::{Baseline, Git, GitDir, GitError, ObjectFormat, SourceRepo, TreeEntry};
use herma_rules::PathRules;
use herma_rules::allowed_paths::judge_repositories;

use crate::confinement_check;
use crate::fixture_baseline::import_fixture;

/// How far the events are read: that of the baseline is among the first, before the engine starts.
const FIRST_EVENTS: u64 = 4 << 20;

/// How much CPU time comparing changed paths with the contract's patterns may take, for few files and for each more: many
/// times what a contract that a person wrote takes.
const FREE_JUDGING: Duration = Duration::from_secs(1);
const JUDGING_PER_FILE: Duration = Duration::from_micros(50);

/// Verifies the bundle in `dir`. With git, the patch of a fixture or of `repo` is applied to its baseline too.
#[must_use]
pub fn verify_bundle(dir: &Path, trust: &Trust, git: Option<&Git>, repo: Option<&Path>) -> CheckList {
    check(dir, None, trust, git, repo)
}

/// Verifies the bundle in `dir` as that of one run: the bundle of another run fails, however sound it is.
#[must_use]
pub fn verify_run(
    dir: &Path,
    expected: &ExpectedRun,
    trust: &Trust,
    git: Option<&Git>,
    repo: Option<&Path>,
) -> CheckList {
    check(dir, Some(expected), trust, git, repo)
}

fn check(
    dir: &Path,
    expected: Option<&ExpectedRun>,
    trust: &Trust,
    git: Option<&Git>,
    repo: Option<&Path>,
) -> CheckList {
    // git works in a directory of its own, where a relative path means something else.
    let dir = &std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let witness = git.map(|git| BaselineWitness {
        git: git.clone(),
        bundle: dir.clone(),
        repo: repo.map(Path::to_owned),
    });
    // A missing repository is no failure: the tree was not checked, and the list shows that.
    let at_hand = witness.as_ref().filter(|w| w.repo.is_some() || names_fixture(dir));
    let tree = at_hand.map(|w| w as &dyn TreeWitness);
    verify(dir, &Context { trust, paths: &judge, confinement: &confinement_check::judge, tree, expected })
}

/// Why `herma verify` would refuse the bundle in `dir` with an attestation that is not written yet. The tree is not made
/// again: herma has just made it.
#[must_use]
pub fn refusal(dir: &Path, attestation: &Attestation, trust: &Trust) -> Option<String> {
    let confinement = &confinement_check::judge;
    // The run has compared these paths itself: a second comparison must not fail by a limit.
    let judge = |contract: &Contract, changed: &[ChangedFile]| judge_while(contract, changed, &|| true);
    let context = Context { trust, paths: &judge, confinement, tree: None, expected: None };
    let list = verify_signed(dir, attestation, &context);
    let failed = list.failed().next().map(|check| format!("{}: {}", check.name.as_str(), check.detail));
    if list.ok() { None } else { Some(failed.unwrap_or_else(|| "nothing could be checked".to_owned())) }
}

fn names_fixture(dir: &Path) -> bool {
    let contract = read_regular(&dir.join(layout::CONTRACT), contract::MAX_BYTES).ok();
    let contract = contract.and_then(|bytes| Contract::parse(&bytes).ok());
    contract.is_some_and(|c| matches!(c.terms.target, Target::Fixture(_)))
}

/// The path rules as far as the changes alone show them.
fn judge(contract: &Contract, changed: &[ChangedFile]) -> Result<Vec<PathViolation>, String> {
    let files = u32::try_from(changed.len()).unwrap_or(u32::MAX);
    let deadline = cpu_time() + FREE_JUDGING + JUDGING_PER_FILE.saturating_mul(files);
    judge_while(contract, changed, &|| cpu_time() < deadline)
}

/// The CPU time of this thread: a busy machine must not refuse an honest bundle.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0))
}

fn judge_while(
    contract: &Contract,
    changed: &[ChangedFile],
    goes_on: &dyn Fn() -> bool,
) -> Result<Vec<PathViolation>, String> {
    match PathRules::compile(&contract.terms) {
        Ok(rules) => rules.judge_changes_while(changed, goes_on).ok_or_else(|| {
            let files = changed.len();
            format!("comparing {files} paths with the contract's patterns takes too much CPU time")
        }),
        // Rules that cannot be used allow nothing.
        Err(bad) => {
            let refuse = |change: &ChangedFile| PathViolation {
                path: change.path.clone(),
                rule: PathRule::NotAllowed,
                detail: bad.to_string(),
            };
            Ok(changed.iter().map(refuse).collect())
        }
    }
}

struct BaselineWitness {
    git: Git,
    bundle: PathBuf,
    repo: Option<PathBuf>,
}

impl TreeWitness for BaselineWitness {
    fn result_tree(
        &self,
        contract: &Contract,
        report: &Report,
        patch: Option<&Path>,
    ) -> Result<String, Doubt> {
        let scratch = tempfile::tempdir().map_err(|e| Doubt::Unchecked(e.to_string()))?;
        let (git_dir, baseline) = match &contract.terms.target {
            Target::Fixture(name) => self.fixture(name.as_str(), report, &scratch.path().join("git"))?,
            Target::Repo { .. } => self.repository(report, &scratch.path().join("git"))?,
        };
        match patch {
            None => Ok(baseline.tree),
            Some(patch) => {
                let tree = git_dir.tree_with_patch(&baseline.tree, patch).map_err(refused)?;
                let entries = git_dir.entries(&tree).map_err(refused)?;
                check_repositories(&report.changed_files, &report.path_violations, &entries)?;
                Ok(tree)
            }
        }
    }
}

/// The report lists every change that completes a repository in the result: which ones do is seen only in the whole tree.
fn check_repositories(
    changed: &[ChangedFile],
    listed: &[PathViolation],
    tree: &[TreeEntry],
) -> Result<(), Doubt> {
    let (submodules, files): (Vec<_>, Vec<_>) =
        tree.iter().partition(|entry| entry.entry.mode == Mode::Submodule);
    let paths = |entries: Vec<&TreeEntry>| -> Vec<RepoPath> {
        entries.into_iter().map(|entry| entry.path.clone()).collect()
    };
    let found = judge_repositories(changed, &paths(files), &paths(submodules));
    let listed: BTreeSet<_> = listed.iter().map(|listed| (&listed.path, listed.rule)).collect();
    let is_listed = |found: &PathViolation| listed.contains(&(&found.path, found.rule));
    match found.iter().find(|found| !is_listed(found)) {
        None => Ok(()),
        Some(PathViolation { path, detail, .. }) => {
            Err(Doubt::Broken(format!("the report does not list {}: {detail}", path.shortened())))
        }
    }
}

impl BaselineWitness {
    fn fixture(&self, name: &str, report: &Report, dir: &Path) -> Result<(GitDir, Baseline), Doubt> {
        let fixture = herma_fixtures::find(name)
            .ok_or_else(|| Doubt::Unchecked(format!("this version of herma has no fixture `{name}`")))?;
        let git_dir = GitDir::create(&self.git, dir, ObjectFormat::Sha1, None).map_err(unchecked)?;
        let baseline = import_fixture(&git_dir, fixture).map_err(unchecked)?;
        if report.baseline_commit.as_ref() != Some(&baseline.commit) {
            return Err(Doubt::Unchecked(format!(
                "the run started from another `{name}` than this version of herma has; verify it with herma {}",
                report.herma_version
            )));
        }
        Ok((git_dir, baseline))
    }

    /// The baseline of the run, from a repository that may have changed since. The events name its tree, and
    /// the name of the commit that herma makes of it proves that it is the report's.
    fn repository(&self, report: &Report, dir: &Path) -> Result<(GitDir, Baseline), Doubt> {
        let root =
            self.repo.as_ref().ok_or_else(|| Doubt::Unchecked("no repository was given".to_owned()))?;
        let tree = self
            .baseline_tree()
            .ok_or_else(|| Doubt::Broken("no event says which tree the run started from".to_owned()))?;
        let found = SourceRepo::earlier_baseline(&self.git, root, &tree, dir).map_err(unchecked)?;
        let Some((git_dir, baseline)) = found else {
            return Err(Doubt::Unchecked(format!(
                "the repository does not have the tree {tree} that the run started from; \
                 fetch the commit that had it, and verify again"
            )));
        };
        if report.baseline_commit.as_ref() != Some(&baseline.commit) {
            return Err(Doubt::Broken(format!(
                "the events say that the run started from {}, the report says {}",
                baseline.commit,
                report.baseline_commit.as_deref().unwrap_or("nothing")
            )));
        }
        Ok((git_dir, baseline))
    }

    fn baseline_tree(&self) -> Option<String> {
        let events = read_start(&self.bundle.join(layout::EVENTS), FIRST_EVENTS).ok()?;
        let mut events = events.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        let prepared = |e: &Event| e.kind == EventType::WorkspacePrepared && e.source == Source::Harness;
        Some(events.find(prepared)?.data.get("baseline_tree")?.as_str()?.to_owned())
    }
}

/// A patch that does not apply is broken; one above a limit cannot be checked.
#[allow(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn refused(error: GitError) -> Doubt {
    match error {
        GitError::TooCostly { .. } => Doubt::Unchecked(error.to_string()),
        _ => Doubt::Broken(error.to_string()),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn unchecked(error: GitError) -> Doubt {
    Doubt::Unchecked(error.to_string())
}

#[cfg(test)]
mod tests {
    use herma_core::report::Entry;

    use super::*;

    #[test]
    fn a_comparison_that_takes_too_much_time_is_no_verdict() {
        let text = "---\nid: a\ntitle: a\ntarget: { fixture: string-slugify }\nstage: 2\nallowed_paths: [a]\n\
            verify: [\"true\"]\n---\nDo it.\n";
        let contract = Contract::parse(text.as_bytes()).unwrap();
        let path = RepoPath::new("a").unwrap();
        let new = Some(Entry { mode: Mode::File, id: String::new() });
        let changed = [ChangedFile { path, old: None, new }];
        assert!(judge_while(&contract, &changed, &|| false).unwrap_err().contains("CPU time"));
        assert_eq!(judge_while(&contract, &changed, &|| true), Ok(Vec::new()));
        assert_eq!(judge(&contract, &changed), Ok(Vec::new()));
    }

    #[test]
    fn a_repository_that_a_change_completes_has_to_be_listed() {
        let path = |text: &str| RepoPath::new(text).unwrap();
        let entry = || Entry { mode: Mode::File, id: String::new() };
        let tree = ["d/HEAD", "d/objects/x", "d/refs/x", "e"];
        let tree = tree.map(|text| TreeEntry { path: path(text), entry: entry() });
        let change = |text: &str| [ChangedFile { path: path(text), old: None, new: Some(entry()) }];
        assert!(check_repositories(&change("e"), &[], &tree).is_ok());
        let completing = change("d/refs/x");
        let missing = check_repositories(&completing, &[], &tree);
        assert!(matches!(missing, Err(Doubt::Broken(why)) if why.contains("d/refs/x")));
        let listed =
            judge_repositories(&completing, &[path("d/HEAD"), path("d/refs/x"), path("d/objects/x")], &[]);
        assert!(check_repositories(&completing, &listed, &tree).is_ok());
    }
}
