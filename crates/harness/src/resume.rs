//! Goes on with an earlier run: a new run of the same contract, whose agent keeps its session and finds its work again.

use std::fmt::Write as _;
use std::io;

use herma_core::contract::MAX_BYTES;
use herma_core::engine::EngineName;
use herma_core::{Contract, Event, Report, RunId};
use herma_engines::Resume;
use herma_evidence::{layout, report, secrets};
use herma_trust::verify_run;

use crate::file_reading::{MAX_RECORD_BYTES, read_regular, read_start};
use crate::installation::Installation;
use crate::order::{Order, Resumed, Work};
use crate::session::Kept;

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

/// The order by which this run is resumed. Everything that a new run needs is asked for again: gates, admissions, an
/// approval.
pub fn resume(installation: &Installation, run: RunId, message: Option<&str>) -> Result<Order, ResumeError> {
    if let Some(message) = message {
        check(message)?;
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
    if engine.is_none_or(|engine| engine.sessions().is_empty()) {
        return Err(ResumeError::Unable(report.engine));
    }
    let events = read_start(&dirs.bundle().join(layout::EVENTS), FIRST_EVENT);
    if is_child(&events.map_err(|e| doubt(format!("{}: {e}", layout::EVENTS)))?) {
        return Err(ResumeError::Child(run));
    }
    let kept = Kept::of(&dirs).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => ResumeError::NoSession(run),
        _ => ResumeError::Kept(run, e.to_string()),
    })?;
    let contract_text =
        String::from_utf8(read(layout::CONTRACT, MAX_BYTES)?).map_err(|e| doubt(e.to_string()))?;
    let contract = Contract::parse(contract_text.as_bytes()).map_err(|e| doubt(e.to_string()))?;
    let there = !report.changed_files.is_empty() && report.artifacts.contains_key(layout::PATCH);
    let changed = report.result_tree.clone().filter(|_| there);
    let work = changed.map(|tree| Work { patch: dirs.bundle().join(layout::PATCH), tree });
    let message = told(&report, work.is_some(), message);
    Ok(Order {
        contract,
        contract_text,
        contract_dir: kept.contract_dir,
        engine: report.engine,
        destination: Some(kept.destination),
        script: None,
        keep_workspace: false,
        egress: kept.egress,
        resumes: Some(Resumed { run, resume: Resume { session: kept.session, message }, work }),
        fault: None,
    })
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
