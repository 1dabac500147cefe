//! The facts of a run that fit on one screen, read from its bundle.

use std::io::BufReader;
use std::path::Path;

use herma_core::event::WorkspacePrepared;
use herma_core::model_call::Sums;
use herma_core::step::TraceLine;
use herma_core::transcript::TranscriptEntry;
use herma_core::usage::Usage;
use herma_core::{Contract, Event, EventType, Report, Step};
use herma_evidence::layout;
use herma_files::{open_regular, read_regular};
use herma_harness::{engine_started, is_probe};
use herma_router::audit;
use serde_json::Value;

use crate::patch_stat::{FileStat, patch_stat};
use crate::run_filter::target_name;
use crate::transcript::read_transcript;

/// The longest message of an agent that is kept.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// The facts of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOverview {
    /// The contract's title.
    pub title: String,
    /// The repository, or `fixture:NAME`.
    pub target: String,
    /// The tree that the run started from.
    pub base_tree: Option<String>,
    /// The changed files with their lines; empty without a patch.
    pub stat: Vec<FileStat>,
    /// The agent's last message.
    pub last_message: Option<String>,
    /// The usage of models.
    pub models: ModelUse,
    /// How long each part took.
    pub phases: Vec<PhaseTime>,
    /// Every tool call that was denied, in one line.
    pub denials: Vec<String>,
}

/// The usage of models, by who called.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelUse {
    /// The engine's calls.
    pub engine: Usage,
    /// herma's own calls, by which it asks before the engine starts how the model answers.
    pub probes: Usage,
}

/// A part of a run.
#[derive(Clone, Copy, Debug)]
pub struct PhaseTime {
    /// Its first step.
    pub step: Step,
    /// How long it took.
    pub millis: u64,
}

/// Reads the facts. A fact that cannot be read is left out: `herma verify` reports it.
#[must_use]
pub fn run_overview(bundle: &Path, report: &Report) -> RunOverview {
    let read = |name: &str| read_regular(&bundle.join(name), u64::MAX).unwrap_or_default();
    let title = Contract::parse(&read(layout::CONTRACT)).map(|contract| contract.terms.title);
    let has_patch = report.artifacts.contains_key(layout::PATCH);
    let stat =
        if has_patch { patch_stat(&String::from_utf8_lossy(&read(layout::PATCH))) } else { Vec::new() };
    let transcript = read_transcript(bundle).ok().flatten().unwrap_or_default();
    let mut last_message = None;
    let mut denials = Vec::new();
    for line in transcript {
        match line.entry {
            TranscriptEntry::Message { text } if !text.trim().is_empty() => {
                last_message = Some(text.chars().take(MAX_MESSAGE_CHARS).collect());
            }
            TranscriptEntry::Denial { tool, arguments, reason } => {
                let command = arguments.lines().next().unwrap_or_default();
                denials.push(format!("{tool} {command}: {reason}"));
            }
            _ => {}
        }
    }
    denials.extend(denied_hosts(report));
    RunOverview {
        title: title.unwrap_or_default(),
        target: target_name(bundle).unwrap_or_default(),
        base_tree: base_tree(&read(layout::EVENTS)),
        stat,
        last_message,
        models: model_use(bundle, report),
        phases: phases(&read(layout::TRACE), report),
        denials,
    }
}

fn denied_hosts(report: &Report) -> impl Iterator<Item = String> {
    let denied = report.egress.iter().flat_map(|used| &used.denied);
    denied.map(|(reason, count)| format!("{count} requests to other hosts: {reason}"))
}

fn base_tree(events: &[u8]) -> Option<String> {
    let lines = events.split(|byte| *byte == b'\n');
    let events = lines.filter_map(|line| serde_json::from_slice::<Event>(line).ok());
    let prepared = events.into_iter().find(|event| event.kind == EventType::WorkspacePrepared)?;
    let data: WorkspacePrepared = serde_json::from_value(Value::Object(prepared.data)).ok()?;
    Some(data.baseline_tree)
}

/// Sums the calls of a bundle. Before the engine started herma itself asked.
fn model_use(bundle: &Path, report: &Report) -> ModelUse {
    let Ok(file) = open_regular(&bundle.join(layout::MODEL_CALLS)) else { return ModelUse::default() };
    let started = engine_started(bundle);
    let (mut engine, mut probes) = (Sums::default(), Sums::default());
    let read = audit::read(BufReader::new(file), &report.run_id.to_string(), |call| {
        if is_probe(call, started) { probes.add(call) } else { engine.add(call) }
    });
    drop(read);
    ModelUse { engine: Usage::from(&engine), probes: Usage::from(&probes) }
}

/// The time from each step to the next; the last one ends with the run.
fn phases(trace: &[u8], report: &Report) -> Vec<PhaseTime> {
    let lines = trace.split(|byte| *byte == b'\n');
    let steps: Vec<TraceLine> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let ends = steps.iter().skip(1).map(|next| next.ts).chain([report.run_finished_at]);
    let millis = |from: herma_core::Timestamp, to: herma_core::Timestamp| {
        u64::try_from(to.as_millisecond() - from.as_millisecond()).unwrap_or(0)
    };
    steps
        .iter()
        .zip(ends)
        .map(|(line, end)| PhaseTime { step: line.step, millis: millis(line.ts, end) })
        .collect()
}
