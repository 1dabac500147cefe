//! Runs the verification commands on a fresh checkout with the patch, in a fresh destination without the engine.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use herma_core::contract::Action;
use herma_core::event::VerificationCompleted;
use herma_core::report::{ChangedByCommand, ChangedFile, Verification, VerificationStatus};
use herma_core::{RepoPath, RunId};
use herma_destination::toolchain::Toolchains;
use herma_destination::{Exit, Job, JobPaths, Prepared, Process, leftovers, wait_unless};
use herma_evidence::{LogWriter, Redactor, layout};
use herma_git::{CheckoutState, copy_changes, lay_out};
use serde::{Deserialize, Serialize};

use crate::checks::Checked;
use crate::child_queue::HandedFile;
use crate::children::hand_over;
use crate::collect::Collected;
use crate::context::RunContext;
use crate::error::Stop;
use crate::gates::Ready;
use crate::journal::StepResult;
use crate::process_end::{HOLDER_INTERVAL, ProcessEnd, STREAM_TIMEOUT, limits};
use crate::tree_diff::{BaseTree, with_changes};

/// How much of the commands' output is kept.
const LOG_CAP: u64 = 64 << 20;
/// The shell's exit codes for a command that does not exist or cannot be run.
const NOT_FOUND: [i32; 2] = [126, 127];

type SharedLog = Arc<Mutex<LogWriter>>;

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
}

/// The parts that every command shares.
struct Bench<'a> {
    ready: &'a Ready,
    deadline: Instant,
    log: SharedLog,
}

/// Prepares the first command, whatever its checkout will hold.
pub(crate) fn prepare<'a>(ctx: &RunContext<'_>, ready: &'a Ready) -> Result<Option<Prepared<'a>>, Stop> {
    let job = |command: &String| job(ctx, command, ctx.dirs.verification(), &ready.toolchains);
    let first = ctx.contract.terms.verify.first().map(job);
    Ok(first.map(|job| Prepared::begin(ready.destination.as_ref(), job)).transpose()?)
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
    if let Some(reason) = pointless(ctx, result) {
        verified.skipped = Some(reason.to_owned());
        return Ok(());
    }
    let checkout = with_patch(ctx, result)?;
    if ctx.occasion.child_of.is_some() {
        verified.handed = hand_over(&ctx.dirs.workspace(), &result.collected.changed_files);
    }
    if !ctx.plan.keep_workspace {
        ctx.remove_aside(ctx.dirs.workspace());
    }
    let log = ctx.bundle.log(layout::TEST_LOG, Redactor::default(), LOG_CAP)?;
    let deadline = Instant::now() + ctx.contract.terms.limits.total.duration();
    let bench = Bench { ready, deadline, log: Arc::new(Mutex::new(log)) };
    let done = all(ctx, &bench, &checkout, first)?;
    ctx.check_cancelled()?;
    verified.commands = done;
    ctx.remove_aside(checkout.root().to_owned());
    if depends_on_changed_tests(ctx, result.collected, &verified.commands) {
        write(
            &bench.log,
            b"\n# once more, with the tests and what decides on them as they were before the engine\n",
        );
        let checkout = with_old_tests(ctx, result)?;
        let done = all(ctx, &bench, &checkout, None)?;
        ctx.check_cancelled()?;
        verified.with_baseline_tests = done;
        ctx.remove_aside(checkout.root().to_owned());
    }
    let log = Arc::into_inner(bench.log).ok_or_else(|| Stop::panicked("reading test output"))?;
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
fn with_patch(ctx: &RunContext<'_>, result: Verifiable<'_>) -> Result<CheckoutState, Stop> {
    let (root, changes, base) = (ctx.dirs.verification(), &result.collected.changed_files, result.base);
    copy_changes(&ctx.dirs.workspace(), base.git_dir.format(), changes, &root)?;
    Ok(CheckoutState::record(root, base.git_dir.format(), with_changes(base, changes)))
}

/// The result with the tests, and the files that decide on them, of the baseline: in a checkout of its own, because the engine's
/// tests have run in the first one.
fn with_old_tests(ctx: &RunContext<'_>, result: Verifiable<'_>) -> Result<CheckoutState, Stop> {
    let Verifiable { base, collected, .. } = result;
    let reverted = collected.changed_tests.iter().chain(&collected.changed_verification_files).collect();
    let changes = besides(&collected.changed_files, &reverted);
    let (root, tree) = (ctx.dirs.old_tests(), with_changes(base, changes));
    std::fs::create_dir(&root)?;
    lay_out(&base.git_dir, &tree, &[&root])?;
    Ok(CheckoutState::record(root, base.git_dir.format(), tree))
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

/// Runs the commands in a checkout, until the run is over or a command has changed tracked files: the commands after that one
/// would test other files than those recorded.
fn all(
    ctx: &RunContext<'_>,
    bench: &Bench<'_>,
    checkout: &CheckoutState,
    mut first: Option<Prepared<'_>>,
) -> Result<Vec<Verification>, Stop> {
    let Bench { ready, deadline, log } = bench;
    let mut left = ctx.contract.terms.verify.iter();
    let mut done = Vec::new();
    while let Some(command) = left.next().filter(|_| !ctx.is_over()) {
        write(log, format!("$ {command}\n").as_bytes());
        let started = Instant::now();
        let process = if let Some(prepared) = first.take() {
            prepared.start()
        } else {
            ready.destination.start(&job(ctx, command, checkout.root().to_owned(), &ready.toolchains))
        };
        let mut one = one(process?, ctx, command, started, *deadline, log)?;
        // Every process of the command is dead by now, so that nothing changes a file after this comparison.
        one.changed_files = ChangedByCommand::of(&checkout.changed());
        let changed = one.changed_files.is_some();
        if let Some(files) = &one.changed_files {
            write(log, changed_notice(files, left.len()).as_bytes());
            if one.status == VerificationStatus::Passed {
                one.status = VerificationStatus::ChangedFiles;
            }
        }
        done.push(one);
        if changed {
            break;
        }
    }
    Ok(done)
}

fn changed_notice(files: &ChangedByCommand, left: usize) -> String {
    let rest = match left {
        0 => String::new(),
        left => format!("; not run: {left} more, which would test other files than those recorded"),
    };
    format!("[changed {files}{rest}]\n")
}

/// Why there is nothing to verify: the patch breaks a rule, or there is none though one is required.
fn pointless(ctx: &RunContext<'_>, result: Verifiable<'_>) -> Option<&'static str> {
    let Verifiable { collected, checked, actions, .. } = result;
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

fn job(ctx: &RunContext<'_>, command: &str, checkout: PathBuf, toolchains: &Toolchains) -> Job {
    let argv = vec!["sh".into(), "-c".into(), command.into()];
    Job::new(ctx.plan.run_id, argv, JobPaths::new(checkout))
        .with_search_path(toolchains.path.clone())
        .with_mounts(toolchains.mounts.clone())
        .with_limits(limits(ctx.contract))
}

fn one(
    mut process: Box<dyn Process>,
    ctx: &RunContext<'_>,
    command: &str,
    started: Instant,
    deadline: Instant,
    log: &SharedLog,
) -> Result<Verification, Stop> {
    let streams = [process.take_stdout(), process.take_stderr()];
    let (open, closed) = channel::<Infallible>();
    let pumps: Vec<_> = streams
        .into_iter()
        .flatten()
        .map(|stream| {
            let (log, open) = (Arc::clone(log), open.clone());
            thread::spawn(move || {
                copy(stream, &log);
                drop(open);
            })
        })
        .collect();
    drop(open);
    let left = deadline.saturating_duration_since(started);
    let remaining = deadline.saturating_duration_since(Instant::now());
    let ended = wait_unless(process.as_mut(), remaining, || ctx.is_over());
    let ProcessEnd { exit, reason } = ProcessEnd::of(ended, process.as_ref());
    // Its remaining processes die with it, on time or not.
    process.kill_all()?;
    until_closed(&closed, ctx.plan.run_id)?;
    for pump in pumps {
        pump.join().map_err(|_| Stop::panicked("reading test output"))?;
    }
    let (status, exit_code) = judge(exit);
    // A path that changed nothing is not reported.
    let reason = reason.filter(|_| status == VerificationStatus::Failed);
    let cut_off = exit.is_none() && ctx.is_over();
    let ending = if cut_off {
        "[killed: the run goes no further]\n".to_owned()
    } else {
        ending(status, exit_code, reason.as_deref(), left)
    };
    write(log, ending.as_bytes());
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let command = command.to_owned();
    Ok(Verification { command, status, exit_code, reason, changed_files: None, duration_ms })
}

/// Waits for the end of the streams. Those that stay open are held by something that was not found before.
fn until_closed(closed: &Receiver<Infallible>, run: RunId) -> Result<(), Stop> {
    let give_up = Instant::now() + STREAM_TIMEOUT;
    while Instant::now() < give_up {
        match closed.recv_timeout(HOLDER_INTERVAL) {
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => drop(leftovers::kill(run)?),
        }
    }
    Err(Stop::internal("something holds the output of a verification command open"))
}

fn judge(ended: Option<Exit>) -> (VerificationStatus, Option<i32>) {
    match ended {
        None => (VerificationStatus::TimedOut, None),
        Some(exit) if exit.success() => (VerificationStatus::Passed, exit.code),
        Some(Exit { code: Some(code), .. }) if NOT_FOUND.contains(&code) => {
            (VerificationStatus::CommandMissing, Some(code))
        }
        Some(exit) => (VerificationStatus::Failed, exit.code),
    }
}

fn ending(status: VerificationStatus, code: Option<i32>, reason: Option<&str>, limit: Duration) -> String {
    let why = reason.map(|why| format!(": {why}")).unwrap_or_default();
    match (status, code) {
        (VerificationStatus::TimedOut, _) => format!("[killed after {:.1} s]\n", limit.as_secs_f64()),
        (_, Some(code)) => format!("[exit {code}{why}]\n"),
        (_, None) => format!("[killed{why}]\n"),
    }
}

fn copy(mut stream: Box<dyn Read + Send>, log: &SharedLog) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(n @ 1..) = stream.read(&mut buffer) {
        write(log, &buffer[..n]);
    }
}

/// A failure to write shows when the log is finished.
fn write(log: &SharedLog, bytes: &[u8]) {
    let _ = log.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes);
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
