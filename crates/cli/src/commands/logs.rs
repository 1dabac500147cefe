//! `herma logs`: the transcript of a run, or what the engine and the verification commands printed.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use herma_api::{denial, has_bundle, read_transcript};
use herma_core::RunId;
use herma_core::store::RunSummary;
use herma_core::transcript::TranscriptLine;
use herma_evidence::file_reading::read_regular;
use herma_evidence::layout;
use herma_harness::{FileTail, FollowedEntry, Installation, RunFollower};
use herma_home::RunDirs;

use crate::args::{self, LogArg};
use crate::commands::show::warn_if_touched;
use crate::commands::watch::{POLL_INTERVAL, Recovery};
use crate::commands::{Ended, find_run, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{LogChunkOutput, LogsOutput, TranscriptLineOutput};
use crate::screen::{Screen, Tone, safe};
use crate::transcript_view::TranscriptView;

const LOGS: [(LogArg, &str); 4] = [
    (LogArg::Stdout, layout::ENGINE_STDOUT),
    (LogArg::Stderr, layout::ENGINE_STDERR),
    (LogArg::Test, layout::TEST_LOG),
    (LogArg::Events, layout::EVENTS),
];

/// Prints each log as it grows, until the run is closed.
fn follow(installation: &Installation, run_id: RunId, names: &[&str], screen: &Screen) -> Ended {
    let bundle = installation.home.run(run_id).bundle();
    let follower = RunFollower::new(installation, run_id);
    let mut tails: Vec<(&str, LogTail)> =
        names.iter().map(|name| (*name, LogTail::new(bundle.join(name)))).collect();
    let mut recovery = Recovery::new();
    let mut shown = None;
    loop {
        // Check for the end first, so that everything written before it is still read.
        let closed = follower.is_closed();
        for (name, tail) in &mut tails {
            let text = tail.read(closed).map_err(Failure::internal)?;
            if text.is_empty() {
                continue;
            }
            if screen.is_json() {
                let log = (*name).to_owned();
                screen.value_line(&LogChunkOutput { schema: "herma.log-chunk/v1", run_id, log, text })?;
                continue;
            }
            if names.len() > 1 && shown != Some(*name) {
                screen.line(screen.paint(Tone::Bold, format_args!("== {name}")));
                shown = Some(*name);
            }
            screen.line(safe(text.trim_end()));
        }
        if closed {
            return Ok(ExitCode::SUCCESS);
        }
        recovery.look(installation)?;
        thread::sleep(POLL_INTERVAL);
    }
}

/// A growing log, by whole lines.
struct LogTail {
    file: FileTail,
    rest: Vec<u8>,
}

impl LogTail {
    fn new(path: PathBuf) -> Self {
        Self { file: FileTail::new(path), rest: Vec::new() }
    }

    /// The whole lines since the last read; at the end of the run also a last line without its newline.
    fn read(&mut self, ended: bool) -> io::Result<String> {
        loop {
            let bytes = self.file.read()?;
            self.rest.extend_from_slice(&bytes);
            if !ended || bytes.is_empty() {
                break;
            }
        }
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let rest = self.rest.split_off(if ended { self.rest.len() } else { whole });
        let lines = std::mem::replace(&mut self.rest, rest);
        Ok(String::from_utf8_lossy(&lines).into_owned())
    }
}

/// Prints the transcript as it grows, until the run is closed.
fn follow_transcript(installation: &Installation, run: &RunSummary, full: bool, screen: &Screen) -> Ended {
    let mut follower = RunFollower::new(installation, run.run_id);
    let view = TranscriptView::new(screen, run.started_at, full);
    let mut recovery = Recovery::new();
    loop {
        // Check for the end first, so that everything written before it is still read.
        let closed = follower.is_closed();
        loop {
            let entries = follower.poll().map_err(Failure::internal)?;
            let is_last = entries.is_empty();
            for line in entries.into_iter().filter_map(transcribed) {
                show_line(run.run_id, line, &view, screen)?;
            }
            if !closed || is_last {
                break;
            }
        }
        if closed {
            return Ok(ExitCode::SUCCESS);
        }
        recovery.look(installation)?;
        thread::sleep(POLL_INTERVAL);
    }
}

fn transcribed(entry: FollowedEntry) -> Option<TranscriptLine> {
    match entry {
        FollowedEntry::Transcript(line) => Some(line),
        FollowedEntry::Event(event) => denial(&event),
        FollowedEntry::Step(_) => None,
    }
}

fn show_line(
    run_id: RunId,
    line: TranscriptLine,
    view: &TranscriptView<'_>,
    screen: &Screen,
) -> Result<(), Failure> {
    if screen.is_json() {
        return screen.value_line(&TranscriptLineOutput { schema: "herma.transcript-line/v1", run_id, line });
    }
    view.print(&line);
    Ok(())
}

/// Prints the transcript of a run, or says why there is none.
fn show_transcript(
    installation: &Installation,
    run: &RunSummary,
    dirs: &RunDirs,
    full: bool,
    screen: &Screen,
) -> Ended {
    let names = [layout::TRANSCRIPT, layout::EVENTS];
    // Nothing is signed while the run is under way.
    let touched = match run.status {
        Some(_) => warn_if_touched(installation, dirs, run, &names, screen),
        None => Vec::new(),
    };
    let transcript = read_transcript(&dirs.bundle()).map_err(Failure::internal)?;
    if screen.is_json() {
        let (run_id, logs) = (run.run_id, BTreeMap::new());
        screen.value(&LogsOutput { schema: "herma.logs/v1", run_id, transcript, logs, touched })?;
        return Ok(ExitCode::SUCCESS);
    }
    match transcript {
        None => {
            screen.note("the run has no transcript: no engine was started, or an earlier herma ran it");
            screen.note(format_args!("next: `herma logs {} --raw`, or `herma show`", run.run_id.short()));
        }
        Some(lines) => {
            let view = TranscriptView::new(screen, run.started_at, full);
            for line in &lines {
                view.print(line);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn logs(args: &args::Logs, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let (run, dirs) = find_run(&installation, &args.run)?;
    has_bundle(&installation, &run)?;
    match (args.raw || args.only.is_some(), args.follow) {
        (false, false) => {
            screen.page();
            show_transcript(&installation, &run, &dirs, args.full, screen)
        }
        (false, true) => follow_transcript(&installation, &run, args.full, screen),
        (true, follows) => {
            // The events are many and for programs: they are shown when asked for.
            let wanted = |log| args.only.map_or(log != LogArg::Events, |only| only == log);
            let names: Vec<&str> =
                LOGS.into_iter().filter(|(log, _)| wanted(*log)).map(|(_, name)| name).collect();
            if follows {
                return follow(&installation, run.run_id, &names, screen);
            }
            screen.page();
            show_logs(&installation, &run, &dirs, &names, screen)
        }
    }
}

/// Prints logs as they were written.
fn show_logs(
    installation: &Installation,
    run: &RunSummary,
    dirs: &RunDirs,
    names: &[&str],
    screen: &Screen,
) -> Ended {
    // Nothing is signed while the run is under way.
    let touched = match run.status {
        Some(_) => warn_if_touched(installation, dirs, run, names, screen),
        None => Vec::new(),
    };
    let mut logs = BTreeMap::new();
    for name in names {
        if let Ok(bytes) = read_regular(&dirs.bundle().join(name), u64::MAX) {
            logs.insert((*name).to_owned(), String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    if screen.is_json() {
        let (run_id, transcript) = (run.run_id, None);
        screen.value(&LogsOutput { schema: "herma.logs/v1", run_id, transcript, logs, touched })?;
        return Ok(ExitCode::SUCCESS);
    }
    if logs.is_empty() && touched.is_empty() {
        screen.note("the run left no such log; `herma show` says why under `not applicable`");
    }
    for (name, text) in logs {
        if names.len() > 1 {
            screen.line(screen.paint(Tone::Bold, format_args!("== {name}")));
        }
        screen.line(safe(text.trim_end()));
    }
    Ok(ExitCode::SUCCESS)
}
