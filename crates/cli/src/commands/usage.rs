//! `herma usage`: what runs used of models.

use std::collections::HashMap;
use std::process::ExitCode;

use herma_api::find_runs;
use herma_core::RunId;
use herma_core::contract::ContractId;
use herma_core::store::{RunSummary, UsageBy, UsageRow};
use herma_core::usage::Usage;

use crate::args;
use crate::cells::{cut, tokens};
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::output::{UsageItem, UsageOutput, UsageShown};
use crate::screen::{Screen, Tone, safe_line};
use crate::selection::filter;

/// The widest name of a group on a narrow terminal.
const MIN_NAME: usize = 16;
/// The name of herma's own calls.
const PROBES: &str = "  herma's own";

pub(crate) fn usage(args: &args::Usage, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let by = args.by.into();
    let filter = filter(&args.selection, installation.now())?;
    let found = find_runs(&installation, &filter, None, usize::MAX)?;
    let ids: Vec<RunId> = found.runs.iter().map(|run| run.run_id).collect();
    // A lost run may still be in the sums of everything.
    let ids = (!filter.is_everything()).then_some(ids);
    let rows = installation.store.call(|store| store.usage(by, ids.as_deref()))?;
    let total = UsageRow {
        key: "total".to_owned(),
        usage: rows.iter().fold(Usage::NONE, |sum, row| sum.plus(row.usage)),
        probes: rows.iter().fold(Usage::NONE, |sum, row| sum.plus(row.probes)),
        unpriced: rows.iter().map(|row| row.unpriced).sum(),
    };
    let runs: HashMap<String, RunSummary> =
        found.runs.into_iter().map(|run| (run.run_id.to_string(), run)).collect();
    if screen.is_json() {
        let item = |row: &UsageRow| item(row, runs.get(&row.key).map(|run| run.contract_id.clone()));
        let rows_shown = rows.iter().map(item).collect();
        let total = item(&total);
        screen.value(&UsageOutput { schema: "herma.usage/v1", by, rows: rows_shown, total })?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        let others = match found.left_out {
            0 => String::new(),
            runs => format!(" ({runs} runs of proofs, comparisons and demos: --all)"),
        };
        screen.line(format_args!("no run has asked a model yet{others}"));
        return Ok(ExitCode::SUCCESS);
    }
    let names: Vec<String> = rows.iter().map(|row| name(row, by, &runs)).collect();
    show(&rows, &names, &total, screen);
    Ok(ExitCode::SUCCESS)
}

/// The group in words: a run by its short name and its contract.
fn name(row: &UsageRow, by: UsageBy, runs: &HashMap<String, RunSummary>) -> String {
    match (by, row.key.parse::<RunId>()) {
        (UsageBy::Run, Ok(id)) => {
            let contract = runs.get(&row.key).map(|run| run.contract_id.to_string()).unwrap_or_default();
            format!("{} {contract}", id.short()).trim_end().to_owned()
        }
        _ => safe_line(&row.key),
    }
}

fn show(rows: &[UsageRow], names: &[String], total: &UsageRow, screen: &Screen) {
    // Calls, tokens in, tokens out and cost have 7, 8, 8 and 10 columns with the blanks before them.
    let room = screen.columns().map_or(usize::MAX, |columns| columns.saturating_sub(34).max(MIN_NAME));
    let has_probes = rows.iter().any(|row| row.probes.requests > 0);
    let least = if has_probes { PROBES.len() } else { "total".len() };
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(least).min(room);
    let head = format!("{:width$} {:>6} {:>7} {:>7} {:>9}", "", "calls", "in", "out", "cost");
    screen.line(screen.paint(Tone::Dim, head));
    let line = |name: &str, row: &UsageRow| {
        let name = cut(name, width);
        show_calls(&format!("{name:width$}"), &row.usage, &cost(&row.usage, row.unpriced), screen);
        if row.probes.requests > 0 {
            let label = cut(PROBES, width);
            show_calls(&format!("{label:width$}"), &row.probes, &cost(&row.probes, row.unpriced), screen);
        }
        if row.usage.unsettled > 0 {
            let calls = row.usage.unsettled;
            screen.line(format_args!("  {calls} calls with unknown usage, counted at their maximum"));
        }
    };
    for (row, name) in rows.iter().zip(names) {
        line(name, row);
    }
    line("total", total);
}

fn show_calls(name: &str, usage: &Usage, cost: &str, screen: &Screen) {
    let (input, output) = (tokens(usage.input_tokens), tokens(usage.output_tokens));
    screen.line(format_args!("{name} {:>6} {input:>7} {output:>7} {cost:>9}", usage.requests));
}

/// A sum of which a part is unknown is at least the other part.
fn cost(usage: &Usage, unpriced: u64) -> String {
    match (usage.cost(), unpriced) {
        (None, _) => "unknown".to_owned(),
        (Some(usd), 0) => format!("${usd}"),
        (Some(usd), _) if usage.requests > 0 => format!(">=${usd}"),
        (Some(usd), _) => format!("${usd}"),
    }
}

fn item(row: &UsageRow, contract_id: Option<ContractId>) -> UsageItem {
    let is_partly_unknown = row.unpriced > 0;
    let shown = |usage: &Usage| UsageShown {
        requests: usage.requests,
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        charged_tokens: usage.charged_tokens,
        usd: usage.cost().filter(|_| !is_partly_unknown || usage.requests == 0),
        unsettled: usage.unsettled,
    };
    UsageItem { key: row.key.clone(), contract_id, usage: shown(&row.usage), probes: shown(&row.probes) }
}
