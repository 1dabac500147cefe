//! Runs the verification commands on a fresh checkout with the patch, in a fresh destination without the engine.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use herma_core::Contract;
use herma_core::RepoPath;
use herma_core::contract::Action;
use herma_core::event::VerificationCompleted;
use herma_core::report::{ChangedFile, Verification, VerificationStatus};
use herma_destination::{Destination, Job, Prepared, StartError};
use herma_evidence::{Redactor, layout};
use herma_git::{CheckoutState, CommitOnBase, TreeEntry, copy_changes, lay_out};
use serde::{Deserialize, Serialize};

use crate::checks::Checked;
use crate::child_queue::HandedFile;
use crate::children::hand_over;
use crate::collect::Collected;
use crate::command_runner::{CommandRunner, SharedLog, job, write};
use crate::context::RunContext;
use crate::environment::RunEnvironment;
use crate::environment_views::View;
use crate::error::Stop;
use crate::gates::Ready;
use crate::journal::StepResult;
use crate::tree_diff::{BaseTree, with_changes};

/// How much of the commands' output is kept.
const LOG_CAP: u64 = 64 << 20;

/// The verification of a result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Verified {
    pub(crate) commands: Vec<Verification>,
    pub(crate) with_baseline_tests: Vec<Verification>,
    /// Why there was nothing to verify.
    pub(crate) skipped: Option<String>,
    /// The changed files of a child run, for its parent.
    #[serde(skip)]
    pub(crate) handed: Option<Vec<HandedFile>>,
}

impl StepResult for Verified {
    const KEY: &'static str = "verified";
}

/// The result that is verified.
#[derive(Clone, Copy)]
pub(crate) struct Verifiable<'a> {
    pub(crate) base: &'a BaseTree,
    pub(crate) collected: &'a Collected,
    pub(crate) checked: &'a Checked,
    /// The forbidden actions that were attempted.
    pub(crate) actions: &'a [Action],
    /// The environment, of which each checkout gets a view.
    pub(crate) environment: Option<&'a RunEnvironment>,
    /// Why the environment does not fit the result.
    pub(crate) stale: Option<&'static str>,
}

/// Prepares the first command, whatever its checkout will hold.
pub(crate) fn prepare<'a>(ctx: &RunContext<'_>, ready: &'a Ready) -> Result<Option<Prepared<'a>>, Stop> {
    let home = ready.environment.as_ref().map(|_| ctx.dirs.verification_home());
    let job = |command: &String| job(ctx, ready, command, ctx.dirs.verification(), home.clone());
    let first = ctx.contract.terms.verify.first().map(job);
    let destination = ready.destination.as_ref();
    Ok(first.map(|job| begin(destination, job, ctx.contract)).transpose()?)
}

/// Begins the setup of a job. Where its environment will be mounted, the sandbox can be set up only with the mounts.
pub(crate) fn begin<'a>(
    destination: &'a dyn Destination,
    job: Job,
    contract: &Contract,
) -> Result<Prepared<'a>, StartError> {
    let is_mounted = contract.terms.environment.is_some() && destination.capabilities().mounts_overlays();
    if is_mounted { Ok(Prepared::later(destination, job)) } else { Prepared::begin(destination, job) }
}

/// The verify step: runs every verification command, unless an earlier step decides against the result.
pub(crate) fn verify(
    ctx: &RunContext<'_>,
    result: Verifiable<'_>,
    ready: &Ready,
    first: Option<Prepared<'_>>,
    found: &mut Option<Verified>,
) -> Result<(), Stop> {
    let verified = found.insert(Verified::default());
    let Verifiable { collected, checked, actions, .. } = result;
    if let Some(reason) = result.stale.or_else(|| pointless(ctx, (collected, checked, actions))) {
        verified.skipped = Some(reason.to_owned());
        return Ok(());
    }
    let (checkout, view) = with_patch(ctx, result)?;
    if ctx.occasion.child_of.is_some() {
        verified.handed = hand_over(&ctx.dirs.workspace(), &result.collected.changed_files);
    }
    if !ctx.plan.keep_workspace {
        ctx.remove_aside(ctx.dirs.workspace());
    }
    let log = Arc::new(Mutex::new(ctx.bundle.log(layout::TEST_LOG, Redactor::default(), LOG_CAP)?));
    let shared: SharedLog = log.clone();
    let deadline = Instant::now() + ctx.contract.terms.limits.total.duration();
    let run_all = |checkout: &CheckoutState, view: Option<View>, first: Option<Prepared<'_>>| {
        let environment = result.environment.zip(view.as_ref());
        let views =
            |at: usize| environment.map(|(environment, view)| environment.view_of(ctx, view, at)).transpose();
        CommandRunner { ready, deadline, log: Arc::clone(&shared), views: &views }
            .run_all(ctx, checkout, first)
    };
    let done = run_all(&checkout, view, first)?;
    ctx.check_cancelled()?;
    verified.commands = done;
    ctx.remove_aside(checkout.root().to_owned());
    if depends_on_changed_tests(ctx, result.collected, &verified.commands) {
        write(
            &shared,
            b"\n# once more, with the tests and what decides on them as they were before the engine\n",
        );
        let (checkout, view) = with_old_tests(ctx, result)?;
        let done = run_all(&checkout, view, None)?;
        ctx.check_cancelled()?;
        verified.with_baseline_tests = done;
        ctx.remove_aside(checkout.root().to_owned());
    }
    drop(shared);
    let log = Arc::into_inner(log).ok_or_else(|| Stop::panicked("reading test output"))?;
    log.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?;
    ctx.journal.append(verified)?;
    ctx.record(VerificationCompleted {
        passed: verified.commands.iter().all(passes),
        commands: verified.commands.clone(),
        with_baseline_tests: verified.with_baseline_tests.clone(),
    })
}

/// The result, in the checkout that was laid out before the engine started.
///
/// The commands run in it one after another. They are code of the result, and may have done anything to it once the first has run:
/// herma writes nothing into it after that.
fn with_patch(ctx: &RunContext<'_>, result: Verifiable<'_>) -> Result<(CheckoutState, Option<View>), Stop> {
    let (root, changes, base) = (ctx.dirs.verification(), &result.collected.changed_files, result.base);
    copy_changes(&ctx.dirs.workspace(), base.git_dir.format(), changes, &root)?;
    let tree = with_changes(base, changes);
    if let Some(top) = base.commit_on_top(changes)? {
        if top.tree != result.collected.result_tree {
            return Err(Stop::internal("the commit of the checkout is not the tree that was collected"));
        }
        make_repository(base, &top, (&tree, &root))?;
    }
    let state =
        CheckoutState::record(root, base.git_dir.format(), base.git_dir.checked_out(&tree).into_owned());
    ctx.check_cancelled()?;
    // Tracked files are never replaced.
    let write =
        |environment: &RunEnvironment| environment.write_view(&ctx.dirs.verification_home(), state.root());
    let view = result.environment.map(write).transpose()?;
    Ok((state, view))
}

/// Gives a checkout the history that the contract asks for, with the result as one commit on top: commands that want a clean
/// work tree find one. herma runs no git there.
fn make_repository(
    base: &BaseTree,
    top: &CommitOnBase,
    (tree, root): (&[TreeEntry], &Path),
) -> Result<(), Stop> {
    match base.repository(Some(top)) {
        Some(repository) => Ok(repository.make(tree, root)?),
        None => Ok(()),
    }
}

/// The result with the tests, and the files that decide on them, of the baseline: in a checkout of its own, because the engine's
/// tests have run in the first one.
fn with_old_tests(
    ctx: &RunContext<'_>,
    result: Verifiable<'_>,
) -> Result<(CheckoutState, Option<View>), Stop> {
    let Verifiable { base, collected, .. } = result;
    let reverted = collected.changed_tests.iter().chain(&collected.changed_verification_files).collect();
    let changes = besides(&collected.changed_files, &reverted);
    let top = base.commit_on_top(changes.iter().copied())?;
    let (root, tree) = (ctx.dirs.old_tests(), with_changes(base, changes));
    std::fs::create_dir(&root)?;
    lay_out(&base.git_dir, &tree, &[&root])?;
    if let Some(top) = &top {
        make_repository(base, top, (&tree, &root))?;
    }
    let state =
        CheckoutState::record(root, base.git_dir.format(), base.git_dir.checked_out(&tree).into_owned());
    let write = |environment: &RunEnvironment| {
        let home = ctx.dirs.old_tests_home();
        std::fs::create_dir(&home)?;
        environment.write_view(&home, state.root())
    };
    let view = result.environment.map(write).transpose()?;
    Ok((state, view))
}

/// The changes without those that are reverted, and without those in the place of a reverted file.
fn besides<'a>(changes: &'a [ChangedFile], reverted: &BTreeSet<&RepoPath>) -> Vec<&'a ChangedFile> {
    let (gone, others): (Vec<_>, Vec<_>) = changes.iter().partition(|change| reverted.contains(&change.path));
    let old: BTreeSet<RepoPath> =
        gone.iter().filter(|change| change.old.is_some()).map(|change| change.path.clone()).collect();
    let above = |path: &RepoPath| std::iter::successors(path.parent(), RepoPath::parent);
    let around: BTreeSet<RepoPath> = old.iter().flat_map(above).collect();
    let is_in_the_way = |path: &RepoPath| around.contains(path) || above(path).any(|dir| old.contains(&dir));
    others.into_iter().filter(|change| !is_in_the_way(&change.path)).collect()
}

/// Why there is nothing to verify: the patch breaks a rule, or there is none though one is required.
pub(crate) fn pointless(
    ctx: &RunContext<'_>,
    (collected, checked, actions): (&Collected, &Checked, &[Action]),
) -> Option<&'static str> {
    if !checked.violations.is_empty() {
        return Some("the patch breaks the path rules, so it was not verified");
    }
    if !actions.is_empty() {
        return Some("the engine attempted a forbidden action, so its patch was not verified");
    }
    if checked.secret(collected).is_some() {
        return Some("the result holds a secret, so it was not verified");
    }
    if collected.changed_files.is_empty() && ctx.contract.terms.require_diff {
        return Some("there is no patch to verify");
    }
    None
}

fn passes(verification: &Verification) -> bool {
    verification.status == VerificationStatus::Passed
}

/// Whether the commands passed with tests, or with files that decide on them, that the engine changed, added or removed, where
/// the result must not depend on that. A new file counts too: it can keep old tests from being run.
fn depends_on_changed_tests(ctx: &RunContext<'_>, collected: &Collected, commands: &[Verification]) -> bool {
    let changed_checks =
        !collected.changed_tests.is_empty() || !collected.changed_verification_files.is_empty();
    changed_checks && !ctx.contract.terms.tests_may_change && commands.iter().all(passes)
}

#[cfg(test)]
mod tests {
    use herma_core::report::{Entry, Mode};
    use herma_rules::test_files::looks_like_test;

    use super::*;

    #[test]
    fn an_original_test_replaces_whatever_is_in_its_place() {
        let entry = |there: bool| there.then(|| Entry { mode: Mode::File, id: String::new() });
        let change = |&(path, old, new): &(&str, bool, bool)| ChangedFile {
            path: RepoPath::new(path).unwrap(),
            old: entry(old),
            new: entry(new),
        };
        let left = |changes: &[(&str, bool, bool)]| -> Vec<String> {
            let changes: Vec<ChangedFile> = changes.iter().map(change).collect();
            let tests =
                changes.iter().map(|change| &change.path).filter(|path| looks_like_test(path)).collect();
            besides(&changes, &tests).into_iter().map(|change| change.path.to_string()).collect()
        };
        assert_eq!(
            left(&[("src/a", true, true), ("tests/a", true, true), ("tests/b", false, true)]),
            ["src/a"]
        );
        // A file where the directory of a test was, and a directory where a test was.
        assert_eq!(
            left(&[("a/b/c_test.sh", true, false), ("a/b", false, true), ("a/x", true, true)]),
            ["a/x"]
        );
        assert_eq!(
            left(&[("a/c_test", true, false), ("a/c_test/x", false, true), ("a/y", true, true)]),
            ["a/y"]
        );
    }
}
