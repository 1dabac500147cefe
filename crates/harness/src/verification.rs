//! Runs the verification commands on a fresh checkout with the patch, in a fresh destination without the engine.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use herma_destination::toolchain::Found as Toolchains;
use herma_destination::{Exit, Job, Limits, Prepared, Process, Rooms, Stdin, leftovers};
use herma_evidence::{LogWriter, Redactor, layout};
use herma_git::{copy_changes, restore};
use herma_model::report::{ChangedFile, Verification, VerificationStatus};
use herma_model::{EventType, RunId};
use serde_json::json;

use crate::children::hand_over;
use crate::error::Stop;
use crate::gates::Ready;
use crate::run::{Ground, Run};
use crate::supervise::{Ending, HOLDERS, PATIENCE};

/// How much of the commands' output is kept.
const LOG_CAP: u64 = 64 << 20;
/// The shell's exit codes for a command that is not there or cannot be run.
const NOT_FOUND: [i32; 2] = [126, 127];

type SharedLog = Arc<Mutex<LogWriter>>;

/// Makes ready for the first command, whatever its checkout will hold.
pub(crate) fn prepare<'a>(run: &Run<'_>, ready: &'a Ready) -> Result<Option<Prepared<'a>>, Stop> {
    let first = run.contract.terms.verify.first().map(|command| job(run, command, &ready.toolchains));
    Ok(first.map(|job| Prepared::begin(ready.destination.as_ref(), job)).transpose()?)
}

/// Runs every verification command, unless what was found already decides against the result.
pub(crate) fn verify(
    run: &mut Run<'_>,
    ground: &Ground,
    ready: &Ready,
    mut first: Option<Prepared<'_>>,
) -> Result<(), Stop> {
    let (destination, toolchains) = (ready.destination.as_ref(), &ready.toolchains);
    if let Some(reason) = pointless(run) {
        run.facts.not_applicable.insert(layout::TEST_LOG.to_owned(), reason.to_owned());
        return Ok(());
    }
    let format = ground.git_dir.format();
    copy_changes(&run.dirs.workspace(), format, &run.facts.changed_files, &run.dirs.verification())?;
    if run.occasion.child_of.is_some() {
        run.handed = hand_over(&run.dirs.workspace(), &run.facts.changed_files);
    }
    if !run.plan.keep_workspace {
        run.remove_aside(run.dirs.workspace());
    }
    let log = run.bundle.log(layout::TEST_LOG, Redactor::default(), LOG_CAP)?;
    let log: SharedLog = Arc::new(Mutex::new(log));
    let deadline = Instant::now() + run.contract.terms.limits.total.duration();
    let mut all = |run: &Run<'_>| -> Result<Vec<Verification>, Stop> {
        let commands = run.contract.terms.verify.iter();
        commands
            .map(|command| {
                write(&log, format!("$ {command}\n").as_bytes());
                let started = Instant::now();
                let process = match first.take() {
                    Some(prepared) => prepared.start(),
                    None => destination.start(&job(run, command, toolchains)),
                };
                one(process?, run, command, started, deadline, &log)
            })
            .collect()
    };
    run.facts.verification = all(run)?;
    if let Some(tests) = rewritten_tests(run) {
        write(&log, b"\n# once more, with the tests as they were before the engine changed them\n");
        restore(&ground.git_dir, &tests, &run.dirs.verification())?;
        run.facts.verification_with_baseline_tests = all(run)?;
    }
    run.remove_aside(run.dirs.verification());
    let log = Arc::into_inner(log).ok_or_else(|| Stop::panicked("reading test output"))?;
    log.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?;
    run.facts.save(&run.dirs.facts())?;
    let passed = run.facts.verification.iter().all(passes);
    run.record(
        EventType::VerificationCompleted,
        json!({
            "passed": passed,
            "commands": run.facts.verification,
            "with_baseline_tests": run.facts.verification_with_baseline_tests,
        }),
    )
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
        return Some("the patch holds a secret, so it was not verified");
    }
    if facts.changed_files.is_empty() && run.contract.terms.require_diff {
        return Some("there is no patch to verify");
    }
    None
}

fn passes(verification: &Verification) -> bool {
    verification.status == VerificationStatus::Passed
}

/// The way back for the tests that the engine changed, where a green result must not lean on that.
fn rewritten_tests(run: &Run<'_>) -> Option<Vec<ChangedFile>> {
    let facts = &run.facts;
    if run.contract.terms.tests_may_change || !facts.verification.iter().all(passes) {
        return None;
    }
    // A test that is new cannot make an old one green.
    let rewritten =
        facts.changed_files.iter().filter(|c| c.old.is_some() && facts.changed_tests.contains(&c.path));
    let back = |c: &ChangedFile| ChangedFile { path: c.path.clone(), old: c.new.clone(), new: c.old.clone() };
    let back: Vec<_> = rewritten.map(back).collect();
    (!back.is_empty()).then_some(back)
}

fn job(run: &Run<'_>, command: &str, toolchains: &Toolchains) -> Job {
    Job {
        run_id: run.plan.run_id,
        argv: vec!["sh".into(), "-c".into(), command.into()],
        env: Vec::new(),
        path: toolchains.path.clone(),
        rooms: Rooms {
            workspace: run.dirs.verification(),
            engine_dir: None,
            router: None,
            egress: None,
            governance: None,
        },
        mounts: toolchains.mounts.clone(),
        hidden: Vec::new(),
        stdin: Stdin::Null,
        limits: Limits::with_memory(run.contract.terms.limits.memory),
        herma: false,
    }
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
    let ended = wait(process.as_mut(), run, deadline);
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
    write(log, ending(status, exit_code, reason.as_deref(), left).as_bytes());
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Verification { command: command.to_owned(), status, exit_code, reason, duration_ms })
}

/// Waits for its end until the deadline; not so long where nobody waits for the run any more.
fn wait(process: &mut dyn Process, run: &Run<'_>, deadline: Instant) -> std::io::Result<Option<Exit>> {
    if run.occasion.child_of.is_none() {
        return process.wait(deadline.saturating_duration_since(Instant::now()));
    }
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let ended = process.wait(left.min(HOLDERS));
        if !matches!(ended, Ok(None)) || left.is_zero() || run.is_orphan() {
            return ended;
        }
    }
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
        (VerificationStatus::TimedOut, _) => format!("[killed after {} s]\n", limit.as_secs()),
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
