//! Goes on with an earlier run: a new run of the same contract, whose agent keeps its session and finds its work again.

use std::fmt::Write as _;
use std::io;

use herma_core::contract::MAX_BYTES;
use herma_core::engine::EngineName;
use herma_core::{Contract, Event, Report, RunId, Timestamp};
use herma_engines::Resume;
use herma_evidence::{layout, report, secrets};
use herma_trust::verify_run;

use crate::file_reading::{MAX_RECORD_BYTES, read_regular, read_start};
use crate::installation::Installation;
use crate::order::{KeptWorkspace, Order, Resumed, Work};
use crate::session::{self, Kept};
use herma_home::RunDirs;

/// The longest message to an agent.
const LONGEST_MESSAGE: usize = 16 << 10;
/// The most of the first event.
const FIRST_EVENT: u64 = 64 << 10;

/// Why a run cannot be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// Its agent cannot continue a session.
    #[error("the engine `{0}` cannot continue a session")]
    Unable(EngineName),
    /// A person discarded it.
    #[error("the workspace and the session of run {0} were discarded on {1:.0}")]
    Discarded(RunId, Timestamp),
    /// It keeps no workspace.
    #[error("run {0} keeps no workspace")]
    NoWorkspace(RunId),
    /// Nothing was kept of it.
    #[error(
        "nothing was kept of the session of run {0}: its agent was not started, gave it no name, \
         offers no way to go on with it, or was cut off"
    )]
    NoSession(RunId),
    /// The kept session cannot be read.
    #[error("what was kept of the session of run {0} cannot be read: {1}")]
    Kept(RunId, String),
    /// It was asked for by another run, whose workspace it began with.
    #[error("run {0} is the child of another run, and what it began with is gone")]
    Child(RunId),
    /// Its evidence is not valid, so nothing is built on it.
    #[error("the evidence of run {0} does not hold: {1}")]
    Evidence(RunId, String),
    /// The message to the agent is too long.
    #[error("the message has {0} bytes, and may have {LONGEST_MESSAGE}")]
    MessageTooLong(usize),
    /// The message to the agent holds a secret, and goes into the evidence.
    #[error("the message holds what looks like a secret ({0}), and it goes into the evidence")]
    Secret(String),
}

/// The files that a resumed run starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResumeFrom {
    /// The base, with the patch that the earlier run left.
    #[default]
    Patch,
    /// The workspace that was kept when the earlier run was interrupted.
    Workspace,
}

/// How a run is resumed.
#[derive(Clone, Debug, Default)]
pub struct ResumeOptions<'a> {
    /// A message of the person to the agent.
    pub message: Option<&'a str>,
    /// The files that it starts from.
    pub from: ResumeFrom,
    /// The script of `fake`.
    pub script: Option<String>,
}

/// Whether the run was interrupted after its agent had changed files, and its workspace is still there.
#[must_use]
pub fn kept_workspace(installation: &Installation, run: RunId) -> bool {
    let dirs = installation.home.run(run);
    session::keeps_workspace(&dirs) && dirs.workspace().is_dir()
}

/// The order by which this run is resumed. Everything that a new run needs is asked for again: gates, admissions, an
/// approval.
pub fn resume(
    installation: &Installation,
    run: RunId,
    options: ResumeOptions<'_>,
) -> Result<Order, ResumeError> {
    let ResumeOptions { message, from, script } = options;
    if let Some(message) = message {
        check(message)?;
    }
    if let Some(at) = installation.home.discarded_at(run) {
        return Err(ResumeError::Discarded(run, at));
    }
    let dirs = installation.home.run(run);
    let doubt = |why: String| ResumeError::Evidence(run, why);
    let expected = installation.expected_run(run);
    let checks = verify_run(&dirs.bundle(), &expected, &installation.trust(), None, None);
    if !checks.ok() {
        return Err(doubt(format!("`herma verify {run}` says why")));
    }
    let read = |name: &str, most: u64| {
        read_regular(&dirs.bundle().join(name), most).map_err(|e| doubt(format!("{name}: {e}")))
    };
    let report =
        report::parse(&read(layout::REPORT, MAX_RECORD_BYTES)?).map_err(|bad| doubt(bad.to_string()))?;
    let engine = installation.engines.get(&report.engine);
    let from_workspace = from == ResumeFrom::Workspace;
    if !from_workspace && engine.is_none_or(|engine| engine.sessions().is_empty()) {
        return Err(ResumeError::Unable(report.engine));
    }
    let events = read_start(&dirs.bundle().join(layout::EVENTS), FIRST_EVENT);
    if is_child(&events.map_err(|e| doubt(format!("{}: {e}", layout::EVENTS)))?) {
        return Err(ResumeError::Child(run));
    }
    let kept = Kept::of(&dirs).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound if from_workspace => ResumeError::NoWorkspace(run),
        io::ErrorKind::NotFound => ResumeError::NoSession(run),
        _ => ResumeError::Kept(run, e.to_string()),
    })?;
    let contract_text =
        String::from_utf8(read(layout::CONTRACT, MAX_BYTES)?).map_err(|e| doubt(e.to_string()))?;
    let contract = Contract::parse(contract_text.as_bytes()).map_err(|e| doubt(e.to_string()))?;
    let session = kept.session.filter(|_| engine_resumes(installation, &report));
    if session.is_none() && !from_workspace {
        return Err(ResumeError::NoSession(run));
    }
    let work = work_of(&report, &dirs, from)?;
    let message = match session {
        Some(_) => told(&report, work.is_some(), message),
        None => noted(message),
    };
    Ok(Order {
        contract,
        contract_text,
        contract_dir: kept.contract_dir,
        engine: report.engine,
        destination: Some(kept.destination),
        script,
        keep_workspace: false,
        egress: kept.egress,
        resumes: Some(Resumed {
            run,
            resume: session.map(|session| Resume { session, message: message.clone() }),
            message,
            work,
        }),
        fault: None,
    })
}

fn engine_resumes(installation: &Installation, report: &Report) -> bool {
    installation.engines.get(&report.engine).is_some_and(|engine| !engine.sessions().is_empty())
}

/// The work that the new run starts from.
fn work_of(report: &Report, dirs: &RunDirs, from: ResumeFrom) -> Result<Option<Work>, ResumeError> {
    if from == ResumeFrom::Workspace {
        let directory = dirs.workspace();
        if !session::keeps_workspace(dirs) || !directory.is_dir() {
            return Err(ResumeError::NoWorkspace(report.run_id));
        }
        let baseline_commit = report.baseline_commit.clone();
        return Ok(Some(Work::Workspace(KeptWorkspace { directory, baseline_commit })));
    }
    let there = !report.changed_files.is_empty() && report.artifacts.contains_key(layout::PATCH);
    let changed = report.result_tree.clone().filter(|_| there);
    Ok(changed.map(|tree| Work::Patch { patch: dirs.bundle().join(layout::PATCH), tree }))
}

/// The note for an agent that starts from the files of an interrupted run without its session.
fn noted(message: Option<&str>) -> String {
    let mut text = "An earlier attempt at this task was interrupted, and its changes are in the files. Continue from them.".to_owned();
    if let Some(message) = message {
        let _ = write!(text, "\n\n{}", message.trim());
    }
    text
}

/// Whether the first event names a parent run.
fn is_child(events: &[u8]) -> bool {
    let first = events.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let event: Option<Event> = serde_json::from_slice(first).ok();
    event.is_none_or(|event| event.data.contains_key("depth"))
}

fn check(message: &str) -> Result<(), ResumeError> {
    if message.len() > LONGEST_MESSAGE {
        return Err(ResumeError::MessageTooLong(message.len()));
    }
    match secrets::scan(message.as_bytes()).first() {
        Some(finding) => Err(ResumeError::Secret(finding.rule.to_string())),
        None => Ok(()),
    }
}

/// The prompt for the agent: the verdict on its work, the state of the files, and the person's message.
fn told(report: &Report, work_is_there: bool, message: Option<&str>) -> String {
    let mut text = format!("# Go on\n\nYour work was checked, and came to `{}`.\n", report.status.as_str());
    for record in &report.blockers {
        let _ = writeln!(text, "- `{}`: {}", record.blocker, record.detail);
    }
    text.push_str(if work_is_there {
        "\nThe files are as you left them. "
    } else {
        "\nThe files are as they were before you began. "
    });
    text.push_str("What may change and what must pass is as before; nobody can answer a question.\n");
    if let Some(message) = message {
        let _ = writeln!(text, "\n{}", message.trim());
    }
    text
}
