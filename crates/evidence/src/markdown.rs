//! The report for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use herma_core::Report;
use herma_core::blocker::Blocker;
use herma_core::capability::{Capability, Support};
use herma_core::content::{MissingContent, MissingList};
use herma_core::report::{
    BaseResult, ChangedFile, ChildrenUse, EgressUse, EnvironmentUse, ModelToolCalls, PermissionProtocol,
    ToolUse, Usage, Verification, VerificationStatus,
};

/// The wording of a cell, which bundles of earlier versions have otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wording {
    Current,
    Earlier,
}

/// The report as Markdown: verdict, blockers with what to do next, changes, verification, files.
#[must_use]
pub fn render_markdown(report: &Report) -> String {
    rendered(report, Wording::Current)
}

/// The same as earlier versions wrote it, whose bundles still verify.
pub(crate) fn render_earlier_markdown(report: &Report) -> String {
    rendered(report, Wording::Earlier)
}

fn rendered(report: &Report, wording: Wording) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = render(report, wording, &mut text);
    text
}

fn render(report: &Report, wording: Wording, out: &mut String) -> std::fmt::Result {
    writeln!(out, "# {}: {}\n", report.contract_id, report.status.as_str())?;
    writeln!(out, "| | |\n| --- | --- |")?;
    writeln!(out, "| run | {} |", report.run_id)?;
    if let Some(parent) = report.parent_run {
        writeln!(out, "| parent run | {parent} |")?;
    }
    writeln!(out, "| contract | {} |", report.contract_digest)?;
    writeln!(out, "| engine | {} {} |", report.engine, cell(&report.engine_version))?;
    let started = if report.engine_started { "yes" } else { "no" };
    writeln!(out, "| engine started | {started} |")?;
    if !report.needs.is_empty() {
        writeln!(out, "| needs | {} |", needs(&report.needs))?;
    }
    writeln!(out, "| destination | {} |", report.destination.as_str())?;
    writeln!(out, "| stage | {} |", report.stage)?;
    if let (Some(provider), Some(model)) = (&report.model_provider, &report.model) {
        writeln!(out, "| model | {}/{} |", cell(provider), cell(model))?;
        writeln!(out, "| model calls | {} |", usage(&report.usage, wording))?;
    }
    if let Some(used) = &report.children {
        writeln!(out, "| child runs | {} |", children(used))?;
    }
    if let Some(used) = &report.egress {
        writeln!(out, "| egress | {} |", egress(used))?;
    }
    if let Some(used) = &report.tools {
        writeln!(out, "| tool calls | {} |", tools(used, wording))?;
    }
    if let Some(used) = &report.environment {
        writeln!(out, "| environment | {} |", environment(used))?;
    }
    if let Some(missing) = &report.missing_content {
        writeln!(out, "| not in the target | {} |", missing_content(missing))?;
    }
    if !report.verify_before.is_empty() {
        writeln!(out, "| verification on the base | {} |", base_results(&report.verify_before))?;
    }
    writeln!(out, "| started | {} |", report.run_started_at)?;
    writeln!(out, "| herma | {} |", cell(&report.herma_version))?;
    blockers(report, out)?;
    changes(report, out)?;
    verification(report, out)?;
    files(report, out)
}

fn environment(used: &EnvironmentUse) -> String {
    format!("{}; files {}", used.definition, used.tree)
}

/// How much missing content a page names.
const MAX_MISSING_SHOWN: usize = 10;

fn missing_content(missing: &MissingList) -> String {
    let shown: Vec<String> = missing.first.iter().take(MAX_MISSING_SHOWN).map(missing_one).collect();
    let more = missing.count.saturating_sub(shown.len() as u64);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    format!("{}{more}", shown.join("; "))
}

fn missing_one(missing: &MissingContent) -> String {
    format!("{}: {}", code(&missing.path.to_string()), cell(missing.reason.explain()))
}

fn base_results(results: &[BaseResult]) -> String {
    let each = results.iter().map(|result| match result {
        BaseResult::Passed { command } => format!("`{}` passes", cell(command)),
        BaseResult::Failed { command, .. } => format!("`{}` fails", cell(command)),
        BaseResult::Unrunnable { command, reason, .. } => {
            format!("`{}` cannot run: {}", cell(command), cell(reason))
        }
    });
    each.collect::<Vec<_>>().join("; ")
}

fn needs(needs: &BTreeMap<Capability, Support>) -> String {
    let each = needs.iter().map(|(need, support)| match support {
        Support::Native => format!("`{need}`: native"),
        Support::Translated => {
            format!("`{need}`: translated, by a program of herma's and other means of the agent")
        }
        Support::Unsupported => format!("`{need}`: unsupported by this engine"),
    });
    each.collect::<Vec<_>>().join("; ")
}

fn usage(usage: &Usage, wording: Wording) -> String {
    let Usage { requests, input_tokens, output_tokens, usd, charged_tokens, unsettled } = usage;
    let cost = match usage.cost() {
        None if wording == Wording::Current => "cost unknown".to_owned(),
        _ => format!("${usd}"),
    };
    let unsettled = match (unsettled, wording) {
        (0, _) => String::new(),
        (calls, Wording::Earlier) => format!(", {calls} of them unsettled and charged at the most"),
        (calls, Wording::Current) => {
            format!(", {calls} of them with unknown usage, counted at their maximum")
        }
    };
    format!(
        "{requests}{unsettled}; {input_tokens} tokens in, {output_tokens} out, {charged_tokens} charged; {cost}"
    )
}

fn children(used: &ChildrenUse) -> String {
    let ChildrenUse { runs, requests, charged_tokens, usd, unknown } = used;
    let unknown = match unknown {
        0 => String::new(),
        runs => format!("; not known for {runs} of them"),
    };
    format!("{runs}; {requests} model calls, {charged_tokens} tokens charged; ${usd}{unknown}")
}

fn egress(used: &EgressUse) -> String {
    let mode = used.mode.as_str();
    if used.decisions() == 0 {
        return format!("{mode}; nothing was asked for");
    }
    let by = |counts: &BTreeMap<String, u64>| {
        let each: Vec<String> =
            counts.iter().map(|(word, count)| format!("{count} {}", cell(word))).collect();
        if each.is_empty() { String::new() } else { format!(" ({})", each.join(", ")) }
    };
    format!(
        "{mode}; {} allowed, {} denied{}, {} failed{}; {} bytes out, {} in",
        used.allowed,
        used.all_denied(),
        by(&used.denied),
        used.all_failed(),
        by(&used.failed),
        used.bytes_out,
        used.bytes_in
    )
}

fn tools(used: &ToolUse, wording: Wording) -> String {
    let ToolUse { asking, asked, denied, unasked, model_calls, .. } = used;
    if wording == Wording::Current {
        let made = asked.saturating_add(*unasked);
        let requested = model_calls.as_ref().map(requested);
        let PermissionProtocol::Courtesy = asking;
        return format!(
            "{made} made, {asked} checked by hook (advisory), {denied} denied{}",
            requested.unwrap_or_default()
        );
    }
    let unasked = match unasked {
        0 => String::new(),
        calls => format!("; {calls} made without asking"),
    };
    let asked_for = model_calls.as_ref().map(asked_for).unwrap_or_default();
    format!("{}: {asked} asked about, {denied} denied{unasked}{asked_for}", asking.as_str())
}

fn requested(calls: &ModelToolCalls) -> String {
    let ModelToolCalls { asked_for, unreconciled, .. } = calls;
    let difference = match (unreconciled, unreconciled.unsigned_abs()) {
        (0, _) => String::new(),
        (1.., more) => format!(", {more} more than were made"),
        (_, fewer) => format!(", {fewer} fewer than were made"),
    };
    format!("; the model requested {asked_for}{difference}")
}

fn asked_for(calls: &ModelToolCalls) -> String {
    let ModelToolCalls { asked_for, unreconciled, .. } = calls;
    let difference = match (unreconciled, unreconciled.unsigned_abs()) {
        (0, _) => String::new(),
        (1.., more) => format!(", {more} more than the engine asked about or told of"),
        (_, fewer) => format!(", {fewer} fewer than the engine asked about or told of"),
    };
    format!("; the model asked for {asked_for}{difference}")
}

fn blockers(report: &Report, out: &mut String) -> std::fmt::Result {
    if report.blockers.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Why it is not a pass\n")?;
    for record in &report.blockers {
        writeln!(out, "- **{}**: {}", record.blocker, line(&record.detail))?;
        writeln!(out, "  - next: {}", line(&record.next_step))?;
    }
    Ok(())
}

fn changes(report: &Report, out: &mut String) -> std::fmt::Result {
    writeln!(out, "\n## Changed files\n")?;
    if report.engine_started && report.result_tree.is_none() {
        writeln!(out, "Not known: the run ended before the result was collected.")?;
    } else if report.changed_files.is_empty() {
        writeln!(out, "None.")?;
    }
    for file in &report.changed_files {
        writeln!(out, "- {} {}", kind(file), code(&file.path.to_string()))?;
    }
    if !report.path_violations.is_empty() {
        writeln!(out, "\nPaths that broke a rule:\n")?;
    }
    for violation in &report.path_violations {
        writeln!(out, "- {}: {}", code(&violation.path.to_string()), line(&violation.detail))?;
    }
    if !report.changed_tests.is_empty() {
        writeln!(out, "\nTests that the engine changed itself, so that their being green says less:\n")?;
    }
    for path in &report.changed_tests {
        writeln!(out, "- {}", code(&path.to_string()))?;
    }
    if !report.changed_verification_files.is_empty() {
        writeln!(out, "\nFiles that the engine changed and that decide what verification does:\n")?;
    }
    for path in &report.changed_verification_files {
        writeln!(out, "- {}", code(&path.to_string()))?;
    }
    Ok(())
}

fn kind(file: &ChangedFile) -> &'static str {
    match (&file.old, &file.new) {
        (None, _) => "added",
        (_, None) => "deleted",
        (Some(old), Some(new)) if old.id == new.id => "mode changed",
        _ => "modified",
    }
}

fn verification(report: &Report, out: &mut String) -> std::fmt::Result {
    writeln!(out, "\n## Verification\n")?;
    if report.verification.is_empty() {
        let cut_off = report.blockers.iter().any(|record| record.blocker == Blocker::Interrupted);
        return writeln!(out, "None ran{}.", if cut_off { " to its end" } else { "" });
    }
    commands(&report.verification, out)?;
    if !report.verification_with_baseline_tests.is_empty() {
        let what = match (report.changed_tests.is_empty(), report.changed_verification_files.is_empty()) {
            (_, true) => "the tests",
            (true, false) => "the files that decide what verification does",
            (false, false) => "the tests, and the files that decide what verification does,",
        };
        writeln!(out, "\nWith {what} as they were before the engine changed them:\n")?;
        commands(&report.verification_with_baseline_tests, out)?;
    }
    Ok(())
}

fn commands(commands: &[Verification], out: &mut String) -> std::fmt::Result {
    writeln!(out, "| command | status | exit code | ms |\n| --- | --- | --- | --- |")?;
    for command in commands {
        let status = match command.status {
            VerificationStatus::Passed => "passed",
            VerificationStatus::Failed => "failed",
            VerificationStatus::CommandMissing => "command missing",
            VerificationStatus::TimedOut => "timed out",
            VerificationStatus::ChangedFiles => "changed tracked files",
        };
        let exit = command.exit_code.map(|code| code.to_string()).unwrap_or_default();
        let shown = cell(&code(&command.command));
        writeln!(out, "| {shown} | {status} | {exit} | {} |", command.duration_ms)?;
    }
    for command in commands {
        let Some(changed) = &command.changed_files else { continue };
        writeln!(out, "\n{} changed {}.", code(&command.command), line(&changed.to_string()))?;
    }
    Ok(())
}

fn files(report: &Report, out: &mut String) -> std::fmt::Result {
    writeln!(out, "\n## Files\n\n| file | bytes | digest |\n| --- | --- | --- |")?;
    for (name, artifact) in &report.artifacts {
        writeln!(out, "| {} | {} | {} |", cell(name), artifact.size, artifact.sha256)?;
    }
    if !report.not_applicable.is_empty() {
        writeln!(out, "\nNot applicable:\n")?;
    }
    for (name, reason) in &report.not_applicable {
        writeln!(out, "- {}: {}", code(name), line(reason))?;
    }
    writeln!(out, "\n`herma verify` checks all of this offline.")
}

/// Text on one line, without control and direction characters and without effect as Markdown or HTML.
fn line(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '[' | ']' | '*' | '_' | '`' | '\\' | '!' | '#' => safe.extend(['\\', c]),
            c => push_visible(&mut safe, c),
        }
    }
    safe
}

/// Text as code: nothing in it has an effect.
fn code(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        push_visible(&mut shown, c);
    }
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if shown.starts_with('`') || shown.ends_with('`') || shown.is_empty() { " " } else { "" };
    format!("{fence}{pad}{shown}{pad}{fence}")
}

/// Text inside a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn push_visible(out: &mut String, c: char) {
    let turns =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    if c == '\n' {
        out.push(' ');
    } else if c.is_control() || turns {
        out.extend(c.escape_unicode());
    } else {
        out.push(c);
    }
}
