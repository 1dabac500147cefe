//! The calls of an engine: tools, models, hosts and child runs, read from the events of its run.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use herma_core::{Event, EventType, Report};
use herma_evidence::layout;
use herma_files::open_regular;
use herma_harness::{engine_started, is_probe};
use herma_router::audit;
use serde_json::Value;

/// The maximum number of lines.
const MAX_LINES: usize = 200;
/// The maximum number of characters of a command.
const MAX_COMMAND_CHARS: usize = 100;

/// The tool name of events by which herma itself reports a call.
const WITNESS: &str = "witness";

/// The calls of an engine.
#[derive(Clone, Debug, Default)]
pub struct RunCalls {
    /// The first calls, one line each, in the order of their events. Agents write parts of them.
    pub lines: Vec<String>,
    /// How many more there are.
    pub more: usize,
}

/// Reads the calls of a run. Lines that cannot be read are skipped: `herma verify` reports them.
#[must_use]
pub fn run_calls(bundle: &Path, report: &Report) -> RunCalls {
    // An agent whose hook asked about every tool call reports each of them a second time.
    let all_asked = report.tools.as_ref().is_some_and(|tools| tools.asked > 0 && tools.unasked == 0);
    let mut calls = RunCalls::default();
    let probes = probe_calls(bundle, report);
    let Ok(file) = open_regular(&bundle.join(layout::EVENTS)) else { return calls };
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        let Ok(event) = serde_json::from_str::<Event>(&line) else { continue };
        if all_asked && is_repeated(&event) {
            continue;
        }
        let Some(line) = describe(&event, &probes) else { continue };
        if calls.lines.len() < MAX_LINES {
            calls.lines.push(line);
        } else {
            calls.more += 1;
        }
    }
    calls
}

/// The numbers of the model calls that herma made itself.
fn probe_calls(bundle: &Path, report: &Report) -> HashSet<u64> {
    let mut probes = HashSet::new();
    let Ok(file) = open_regular(&bundle.join(layout::MODEL_CALLS)) else { return probes };
    let started = engine_started(bundle);
    let read = audit::read(BufReader::new(file), &report.run_id.to_string(), |call| {
        if is_probe(call, started) {
            probes.insert(call.seq);
        }
    });
    // `herma verify` reports calls that cannot be read.
    drop(read);
    probes
}

fn describe(event: &Event, probes: &HashSet<u64>) -> Option<String> {
    let text = |key: &str| event.data.get(key).and_then(Value::as_str).unwrap_or_default();
    let number = |key: &str| event.data.get(key).and_then(Value::as_u64).unwrap_or_default();
    match event.kind {
        EventType::ToolEvaluated => {
            let forbidden = words(event.data.get("forbidden"));
            let mut verdict =
                if forbidden.is_empty() { String::new() } else { format!("  FORBIDDEN: {forbidden}") };
            if text("permission") == "denied" {
                verdict = format!("{verdict}  DENIED: {}", text("reason"));
            }
            Some(format!("tool    {}  {}{verdict}", text("tool"), short(text("command"))))
        }
        EventType::ModelCalled => {
            let charged =
                |key: &str| event.data.get("charged").and_then(|c| c.get(key)).and_then(Value::as_u64);
            let (tokens, cost) = (charged("tokens")?, charged("micro_usd")?);
            let reason = text("reason");
            let reason = if reason.is_empty() { String::new() } else { format!("  {reason}") };
            let cost = match (tokens, cost) {
                (1.., 0) => "cost unknown".to_owned(),
                _ => format!("${}.{:06}", cost / 1_000_000, cost % 1_000_000),
            };
            let by = if probes.contains(&number("seq")) { "  (herma's own probe)" } else { "" };
            Some(format!(
                "model   {}  {}  {tokens} tokens  {cost}{reason}{by}",
                text("asked"),
                number("status")
            ))
        }
        EventType::ChildEnded => {
            let (child, status) = (text("child"), text("status"));
            let charged = event.data.get("charged")?.get("tokens").and_then(Value::as_u64);
            let charged =
                charged.map_or_else(|| "charge unknown".to_owned(), |tokens| format!("{tokens} tokens"));
            Some(format!("child   {child}  {status}  {charged}"))
        }
        EventType::EgressDecided => {
            event.data.get("host")?;
            let reason = text("reason");
            Some(format!("egress  {}:{}  {} {reason}", text("host"), number("port"), text("verdict")))
        }
        _ => None,
    }
}

/// Whether the agent reports a call about which its hook has asked.
fn is_repeated(event: &Event) -> bool {
    event.kind == EventType::ToolEvaluated
        && event.data.get("permission").is_none()
        && event.data.get("tool").and_then(Value::as_str) != Some(WITNESS)
}

fn words(list: Option<&Value>) -> String {
    let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

/// The first line of a command, with a mark if there is more.
fn short(command: &str) -> String {
    let line = command.lines().next().unwrap_or_default();
    let shown: String = line.chars().take(MAX_COMMAND_CHARS).collect();
    if shown.len() < command.trim_end().len() { format!("{shown} …") } else { shown }
}
