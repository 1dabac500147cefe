//! `herma watch`: runs of any process, step by step and event by event, until they are closed.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use herma_api::denial;
use herma_core::{Event, EventType, RunId, Status, Timestamp};
use herma_evidence::file_reading::read_regular;
use herma_evidence::{layout, report};
use herma_harness::{FollowedEntry, Installation, RunFollower, recover};

use crate::args;
use crate::commands::{Ended, find_run, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{WatchOutput, Watched};
use crate::screen::{Screen, Tone, safe_line};
use crate::transcript_view::TranscriptView;
use serde_json::Value;

/// The pause between two looks at the files.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The pause between two looks for runs whose process has died.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(1);
/// The longest note that a line shows, in characters.
const MAX_NOTE_CHARS: usize = 120;

pub(crate) fn watch(args: &args::Watch, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let mut followed = BTreeMap::new();
    for named in &args.runs {
        let (run, _) = find_run(&installation, named)?;
        let tail = RunFollower::new(&installation, run.run_id);
        followed.insert(run.run_id, (tail, run.started_at));
    }
    let several = followed.len() > 1;
    let mut recovery = Recovery::new();
    let mut worst = ExitCode::SUCCESS;
    while !followed.is_empty() {
        // The order matters: what was written before the run was closed is read after that is seen.
        let closed: Vec<RunId> =
            followed.iter().filter(|(_, (run, _))| run.is_closed()).map(|(id, _)| *id).collect();
        for (id, (run, started_at)) in &mut followed {
            loop {
                let entries = run.poll().map_err(Failure::internal)?;
                for entry in &entries {
                    show((*id, *started_at), entry, several, run.has_transcript(), screen)?;
                }
                if entries.is_empty() || !closed.contains(id) {
                    break;
                }
            }
        }
        for run in closed {
            followed.remove(&run);
            if let Some(status) = show_closed(&installation, run, several, screen)?
                && status != Status::Pass
            {
                worst = ExitCode::from(status.exit_code());
            }
        }
        if !followed.is_empty() {
            recovery.look(&installation)?;
            thread::sleep(POLL_INTERVAL);
        }
    }
    Ok(worst)
}

/// Closes runs whose process dies while they are followed, as the next command would.
pub(crate) struct Recovery {
    last: Instant,
}

impl Recovery {
    pub(crate) fn new() -> Self {
        Self { last: Instant::now() }
    }

    pub(crate) fn look(&mut self, installation: &Installation) -> Result<(), Failure> {
        if self.last.elapsed() >= RECOVERY_INTERVAL {
            self.last = Instant::now();
            recover(installation)?;
        }
        Ok(())
    }
}

fn show(
    (run_id, started_at): (RunId, Timestamp),
    entry: &FollowedEntry,
    several: bool,
    has_transcript: bool,
    screen: &Screen,
) -> Result<(), Failure> {
    if screen.is_json() {
        let watched = match entry {
            FollowedEntry::Step(line) => Watched::Step(line.clone()),
            FollowedEntry::Event(event) => Watched::Event(event.clone()),
            FollowedEntry::Transcript(line) => Watched::Transcript(line.clone()),
        };
        return screen.value_line(&WatchOutput { schema: "herma.watch/v1", run_id, watched });
    }
    let view = TranscriptView::new(screen, started_at, false).with_prefix(prefix(run_id, several));
    let elapsed = entry.at().duration_since(started_at).as_secs_f64();
    let text = match entry {
        FollowedEntry::Step(line) => screen.paint(Tone::Bold, line.step),
        FollowedEntry::Transcript(line) => {
            view.print(line);
            return Ok(());
        }
        // The transcript shows it.
        FollowedEntry::Event(event) if has_transcript && is_transcribed(event) => return Ok(()),
        FollowedEntry::Event(event) => {
            if let Some(line) = denial(event) {
                view.print(&line);
                return Ok(());
            }
            let note: String = safe_line(&event.note()).chars().take(MAX_NOTE_CHARS).collect();
            format!("  {}  {}", event.kind, screen.paint(Tone::Dim, note))
        }
    };
    screen.line(format_args!("{}{elapsed:8.2}s  {}", prefix(run_id, several), text.trim_end()));
    Ok(())
}

/// Whether an event repeats what the transcript has: the agent's words, and calls that were not denied or forbidden.
fn is_transcribed(event: &Event) -> bool {
    match event.kind {
        EventType::EngineMessage | EventType::PlanUpdated => true,
        EventType::ToolEvaluated => {
            let forbidden = event.data.get("forbidden").and_then(Value::as_array);
            denial(event).is_none() && forbidden.is_none_or(Vec::is_empty)
        }
        _ => false,
    }
}

/// Shows how the run was closed, and says with which status; none where it left no report.
fn show_closed(
    installation: &Installation,
    run_id: RunId,
    several: bool,
    screen: &Screen,
) -> Result<Option<Status>, Failure> {
    let file = installation.home.run(run_id).bundle().join(layout::REPORT);
    let report = read_regular(&file, report::MAX_BYTES).ok().and_then(|bytes| report::parse(&bytes).ok());
    let status = report.as_ref().map(|report| report.status);
    if screen.is_json() {
        let watched = Watched::Closed { status };
        screen.value_line(&WatchOutput { schema: "herma.watch/v1", run_id, watched })?;
        return Ok(status);
    }
    let prefix = prefix(run_id, several);
    match report {
        Some(report) => {
            let blockers: Vec<&str> = report.blockers.iter().map(|b| b.blocker.as_str()).collect();
            let why = if blockers.is_empty() { String::new() } else { format!(": {}", blockers.join(", ")) };
            screen.line(format_args!("{prefix}closed  {}{why}", screen.status(report.status)));
        }
        None => screen.line(format_args!("{prefix}closed  the run left no report")),
    }
    Ok(status)
}

fn prefix(run_id: RunId, several: bool) -> String {
    if several { format!("{}  ", run_id.short()) } else { String::new() }
}
