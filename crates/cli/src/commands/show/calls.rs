//! What an engine called during its run: tools, its model, hosts. Read from the events, in their order.

use std::io::{BufRead as _, BufReader};
use std::path::Path;

use herma_core::{Event, EventType};
use herma_evidence::file_reading::open_regular;
use herma_evidence::layout;
use serde_json::Value;

/// The most lines that are shown.
const MOST: usize = 200;
/// The most characters of one command that are shown.
const LONGEST: usize = 100;

/// What herma's own witness is called where it tells of a call.
const WITNESS: &str = "witness";

/// What a run called, one line each.
pub(super) struct Calls {
    pub(super) lines: Vec<String>,
    /// How many more there are.
    pub(super) more: usize,
}

/// Reads the calls of a run. What cannot be read is for `herma verify` to say.
///
/// `all_asked` says that the agent asked about each tool call: then what it told of them is nothing new.
pub(super) fn read(bundle: &Path, all_asked: bool) -> Calls {
    let mut calls = Calls { lines: Vec::new(), more: 0 };
    let Ok(file) = open_regular(&bundle.join(layout::EVENTS)) else { return calls };
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        let Ok(event) = serde_json::from_str::<Event>(&line) else { continue };
        if all_asked && is_told_again(&event) {
            continue;
        }
        let Some(told) = tell(&event) else { continue };
        if calls.lines.len() < MOST {
            calls.lines.push(told);
        } else {
            calls.more += 1;
        }
    }
    calls
}

fn tell(event: &Event) -> Option<String> {
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
            let cost = format!("${}.{:06}", cost / 1_000_000, cost % 1_000_000);
            Some(format!("model   {}  {}  {tokens} tokens  {cost}{reason}", text("asked"), number("status")))
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

/// Whether the agent told of a call about which its hook asked before.
fn is_told_again(event: &Event) -> bool {
    event.kind == EventType::ToolEvaluated
        && event.data.get("permission").is_none()
        && event.data.get("tool").and_then(Value::as_str) != Some(WITNESS)
}

fn words(list: Option<&Value>) -> String {
    let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

/// The first line of a command, and that there was more of it.
fn short(command: &str) -> String {
    let line = command.lines().next().unwrap_or_default();
    let shown: String = line.chars().take(LONGEST).collect();
    if shown.len() < command.trim_end().len() { format!("{shown} …") } else { shown }
}
