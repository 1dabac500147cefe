//! The tree around a run: its ancestors and its child runs.

use std::io::{BufRead as _, BufReader};

use herma_core::event::Source;
use herma_core::{Event, EventType, Report, RunId};
use herma_evidence::layout;
use herma_files::open_regular;
use herma_harness::Installation;
use serde_json::Value;

use crate::output::TreeNode;
use crate::reports::read_report;

/// The maximum depth of a tree, up and down.
const MAX_DEPTH: usize = 16;
/// The maximum number of children of one run.
const MAX_CHILDREN: usize = 200;

/// The tree around this run, from its topmost ancestor down.
#[must_use]
pub fn run_tree(installation: &Installation, run: &Report) -> TreeNode {
    let mut top = run.clone();
    for _ in 0..MAX_DEPTH {
        let Some(parent) = top.parent_run else { break };
        // A parent without evidence, or that is still active, is not shown.
        let Some(parent) = report_of(installation, parent) else { break };
        top = parent;
    }
    node(installation, top, 0, Some(run))
}

fn node(installation: &Installation, report: Report, below: usize, shown: Option<&Report>) -> TreeNode {
    let events = events(installation, report.run_id);
    let number = |key: &str| events.first().and_then(|event| event.data.get(key)).and_then(Value::as_u64);
    let depth = number("depth").and_then(|depth| u8::try_from(depth).ok()).unwrap_or(0);
    let named = events.iter().filter(|e| e.kind == EventType::ToolEvaluated && e.source == Source::Harness);
    let asked = named.filter_map(|event| event.data.get("child")?.as_str()?.parse::<RunId>().ok());
    let is_child = |child: &Report| child.parent_run == Some(report.run_id);
    let read = |child: RunId| report_of(installation, child).filter(is_child);
    let mut below_it: Vec<Report> =
        if below < MAX_DEPTH { asked.take(MAX_CHILDREN).filter_map(read).collect() } else { Vec::new() };
    // A resuming run names its parent; the parent does not name it.
    if let Some(shown) = shown.filter(|shown| is_child(shown))
        && !below_it.iter().any(|child| child.run_id == shown.run_id)
    {
        below_it.push(shown.clone());
    }
    let children = below_it.into_iter().map(|child| node(installation, child, below + 1, shown)).collect();
    TreeNode {
        run_id: report.run_id,
        contract_id: report.contract_id,
        engine: report.engine,
        status: report.status,
        depth,
        children,
    }
}

/// The report of a run, if the bundle in its directory is its own.
fn report_of(installation: &Installation, run: RunId) -> Option<Report> {
    let report = read_report(&installation.home.run(run).bundle()).ok()?;
    (report.run_id == run).then_some(report)
}

fn events(installation: &Installation, run: RunId) -> Vec<Event> {
    let Ok(file) = open_regular(&installation.home.run(run).bundle().join(layout::EVENTS)) else {
        return Vec::new();
    };
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    lines.map_while(|line| serde_json::from_str(&line).ok()).collect()
}
