//! Runs the verification commands on a fresh checkout with the patch, in a fresh destination without the engine.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use herma_core::event::VerificationCompleted;
use herma_core::report::{ChangedByCommand, ChangedFile, Verification, VerificationStatus};
use herma_core::{RepoPath, RunId};
use herma_destination::toolchain::Toolchains;
use herma_destination::{Exit, Job, JobPaths, Prepared, Process, leftovers, wait_unless};
use herma_evidence::{LogWriter, Redactor, layout};
use herma_git::{CheckoutState, copy_changes, lay_out};

use crate::children::hand_over;
use crate::collect::with_changes;
use crate::error::Stop;
use crate::gates::Ready;
use crate::run::{Ground, Run};
use crate::supervise::{Ending, HOLDERS, PATIENCE, limits};

/// How much of the commands' output is kept.
const LOG_CAP: u64 = 64 << 20;
/// The shell's exit codes for a command that is not there or cannot be run.
const NOT_FOUND: [i32; 2] = [126, 127];

type SharedLog = Arc<Mutex<LogWriter>>;

/// What every command has in common.
struct Bench<'a> {
    ready: &'a Ready,
    deadline: Instant,
    log: SharedLog,
}

/// Makes ready for the first command, whatever its checkout will hold.
pub(crate) fn prepare<'a>(run: &Run<'_>, ready: &'a Ready) -> Result<Option<Prepared<'a>>, Stop> {
    let job = |command: &String| job(run, command, run.dirs.verification(), &ready.toolchains);
    let first = run.contract.terms.verify.first().map(job);
    Ok(first.map(|job| Prepared::begin(ready.destination.as_ref(), job)).transpose()?)
}

/// Runs every verification command, unless what was found already decides against the result.
pub(crate) fn verify(
    run: &mut Run<'_>,
    ground: &Ground,
    ready: &Ready,
    first: Option<Prepared<'_>>,
) -> Result<(), Stop> {
    if let Some(reason) = pointless(run) {
        run.facts.not_applicable.insert(layout::TEST_LOG.to_owned(), reason.to_owned());
        return Ok(());
    }
    let checkout = with_patch(run, ground)?;
    if run.occasion.child_of.is_some() {
        run.handed = hand_over(&run.dirs.workspace(), &run.facts.changed_files);
    }
    if !run.plan.keep_workspace {
        run.remove_aside(run.dirs.workspace());
    }
    let log = run.bundle.log(layout::TEST_LOG, Redactor::default(), LOG_CAP)?;
    let deadline = Instant::now() + run.contract.terms.limits.total.duration();
    let bench = Bench { ready, deadline, log: Arc::new(Mutex::new(log)) };
    let done = all(run, &bench, &checkout, first)?;
    run.check_cancelled()?;
    run.facts.verification = done;
    run.remove_aside(checkout.root().to_owned());
    if leans_on_its_tests(run) {
        write(
            &bench.log,
            b"\n# once more, with the tests and what decides on them as they were before the engine\n",
        );
        let checkout = with_old_tests(run, ground)?;
        let done = all(run, &bench, &checkout, None)?;
        run.check_cancelled()?;
        run.facts.verification_with_baseline_tests = done;
        run.remove_aside(checkout.root().to_owned());
    }
    let log = Arc::into_inner(bench.log).ok_or_else(|| Stop::panicked("reading test output"))?;
    log.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?;
    run.facts.save(&run.dirs.facts())?;
    let passed = run.facts.verification.iter().all(passes);
    run.record(VerificationCompleted {
        passed,
        commands: run.facts.verification.clone(),
        with_baseline_tests: run.facts.verification_with_baseline_tests.clone(),
    })
}

/// The result, in the checkout that was laid out before the engine started.
///
/// The commands run in it one after another. They are the code of the result, and may have done anything to it once the first
/// has run: herma writes nothing into it after that.
fn with_patch(run: &Run<'_>, ground: &Ground) -> Result<CheckoutState, Stop> {
    let (root, changes) = (run.dirs.verification(), &run.facts.changed_files);
    copy_changes(&run.dirs.workspace(), ground.git_dir.format(), changes, &root)?;
    Ok(CheckoutState::record(root, ground.git_dir.format(), with_changes(ground, changes)))
}

/// The result without what the engine did to tests, and to what decides on them: in a checkout of its own, because in the first one the engine's tests,
/// and its code, have run.
fn with_old_tests(run: &Run<'_>, ground: &Ground) -> Result<CheckoutState, Stop> {
    let reverted = run.facts.changed_tests.iter().chain(&run.facts.changed_verification_files).collect();
    let changes = besides(&run.facts.changed_files, &reverted);
    let (root, tree) = (run.dirs.old_tests(), with_changes(ground, changes));
    std::fs::create_dir(&root)?;
    lay_out(&ground.git_dir, &tree, &[&root])?;
    Ok(CheckoutState::record(root, ground.git_dir.format(), tree))
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
    run: &Run<'_>,
    bench: &Bench<'_>,
    checkout: &CheckoutState,
    mut first: Option<Prepared<'_>>,
) -> Result<Vec<Verification>, Stop> {
    let Bench { ready, deadline, log } = bench;
    let mut left = run.contract.terms.verify.iter();
    let mut done = Vec::new();
    while let Some(command) = left.next().filter(|_| !run.is_over()) {
        write(log, format!("$ {command}\n").as_bytes());
        let started = Instant::now();
        let process = if let Some(prepared) = first.take() {
            prepared.start()
        } else {
            ready.destination.start(&job(run, command, checkout.root().to_owned(), &ready.toolchains))
        };
        let mut one = one(process?, run, command, started, *deadline, log)?;
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
fn pointless(run: &Run<'_>) -> Option<&'static str> {
    let facts = &run.facts;
    if facts.violations.as_ref().is_none_or(|violations| !violations.is_empty()) {
        return Some("the patch breaks the path rules, so it was not verified");
    }
    if !facts.actions.is_empty() {
        return Some("the engine attempted a forbidden action, so its patch was not verified");
    }
    if facts.secret.is_some() {
        return Some("the result holds a secret, so it was not verified");
    }
    if facts.changed_files.is_empty() && run.contract.terms.require_diff {
        return Some("there is no patch to verify");
    }
    None
}

fn passes(verification: &Verification) -> bool {
    verification.status == VerificationStatus::Passed
}

/// Whether the commands passed with tests, or with files that decide on them, that the engine changed, added or removed, where
/// they must not lean on that. One that is new counts too: it can keep the old ones from being run.
fn leans_on_its_tests(run: &Run<'_>) -> bool {
    let facts = &run.facts;
    let changed_checks = !facts.changed_tests.is_empty() || !facts.changed_verification_files.is_empty();
    changed_checks && !run.contract.terms.tests_may_change && facts.verification.iter().all(passes)
}

fn job(run: &Run<'_>, command: &str, checkout: PathBuf, toolchains: &Toolchains) -> Job {
    let argv = vec!["sh".into(), "-c".into(), command.into()];
    Job::new(run.plan.run_id, argv, JobPaths::new(checkout))
        .with_search_path(toolchains.path.clone())
        .with_mounts(toolchains.mounts.clone())
        .with_limits(limits(run.contract))
}

fn one(
    mut process: Box<dyn Process>,
    run: &Run<'_>,
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
    let patience = deadline.saturating_duration_since(Instant::now());
    let ended = wait_unless(process.as_mut(), patience, || run.is_over());
    let Ending { exit, reason } = Ending::of(ended, process.as_ref());
    // What it left behind dies with it, on time or not.
    process.kill_all()?;
    until_silence(&closed, run.plan.run_id)?;
    for pump in pumps {
        pump.join().map_err(|_| Stop::panicked("reading test output"))?;
    }
    let (status, exit_code) = judge(exit);
    // What was met and did no harm is not worth a word.
    let reason = reason.filter(|_| status == VerificationStatus::Failed);
    let cut_off = exit.is_none() && run.is_over();
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
fn until_silence(closed: &Receiver<Infallible>, run: RunId) -> Result<(), Stop> {
    let give_up = Instant::now() + PATIENCE;
    while Instant::now() < give_up {
        match closed.recv_timeout(HOLDERS) {
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => drop(leftovers::kill(run)?),
        }
    }
    Err(Stop::Internal("something holds the output of a verification command open".to_owned()))
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
    fn what_stands_where_an_old_test_was_gives_way_to_it() {
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
