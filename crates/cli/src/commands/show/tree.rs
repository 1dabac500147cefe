//! The tree that a run stands in: the runs that it came from, and the children that it asked for.

use std::io::{BufRead as _, BufReader};

use herma_core::event::Source;
use herma_core::{Event, EventType, Report, RunId};
use herma_evidence::file_reading::open_regular;
use herma_evidence::layout;
use herma_harness::Installation;
use serde_json::Value;

use crate::commands::show::read_report;
use crate::output::TreeNode;

/// How far a tree is followed up and down.
const FARTHEST: usize = 16;
/// How many children of one run are shown.
const MOST: usize = 200;

/// The tree around this run, from its topmost run down.
pub(super) fn around(installation: &Installation, run: &Report) -> TreeNode {
    let mut top = run.clone();
    for _ in 0..FARTHEST {
        let Some(parent) = top.parent_run else { break };
        // A parent whose evidence is gone, or that is still under way, is not shown.
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
        if below < FARTHEST { asked.take(MOST).filter_map(read).collect() } else { Vec::new() };
    // A run that resumes another one is named by itself only.
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

/// The tree in lines, with a mark at the run that was asked about.
pub(super) fn lines(node: &TreeNode, shown: RunId) -> Vec<String> {
    let mut all = Vec::new();
    draw(node, 0, shown, &mut all);
    all
}

fn draw(node: &TreeNode, below: usize, shown: RunId, all: &mut Vec<String>) {
    let mark = if node.run_id == shown { "  <- this run" } else { "" };
    all.push(format!(
        "{}{}  {}  {}  {}{mark}",
        "  ".repeat(below),
        node.run_id,
        node.status.as_str(),
        node.contract_id,
        node.engine
    ));
    for child in &node.children {
        draw(child, below + 1, shown, all);
    }
}
