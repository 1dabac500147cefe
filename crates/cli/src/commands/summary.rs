//! `herma summary`: the control summary, and its check.

use std::fmt::Display;
use std::io::{Read as _, stdin};
use std::path::Path;
use std::process::ExitCode;

use herma_api::{MAX_SUMMARY_BYTES, check_summary, summary as make};
use herma_evidence::file_reading::read_named;

use crate::args::{self, SummaryCommand};
use crate::commands::{Ended, open_to_read};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{Field, HealthNow, LadderStatus, SummaryOutput};
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn summary(args: &args::Summary, environment: &Environment, screen: &Screen) -> Ended {
    match &args.command {
        Some(SummaryCommand::Check(args)) => check(args, environment, screen),
        None => {
            let summary = make(&open_to_read(environment)?)?;
            if screen.is_json() {
                screen.value(&summary)?;
            } else {
                show(&summary, screen);
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn check(args: &args::SummaryCheck, environment: &Environment, screen: &Screen) -> Ended {
    let bytes = read(&args.file)?;
    let result = check_summary(&open_to_read(environment)?, &bytes)?;
    if screen.is_json() {
        screen.value(&result)?;
    } else {
        for name in &result.checked {
            let errors: Vec<&str> =
                result.errors.iter().filter(|e| e.check == *name).map(|e| e.detail.as_str()).collect();
            let (tone, mark) = if errors.is_empty() { (Tone::Good, "ok") } else { (Tone::Bad, "BROKEN") };
            let mark = screen.paint(tone, mark);
            let line = format!("  {name:20} {mark}  {}", safe_line(&errors.join("; ")));
            screen.line(line.trim_end());
        }
        screen.line(if result.ok { "The summary holds." } else { "The summary does NOT hold." });
    }
    Ok(ExitCode::from(u8::from(!result.ok)))
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let read = if file == Path::new("-") {
        let mut bytes = Vec::new();
        stdin().take(MAX_SUMMARY_BYTES + 1).read_to_end(&mut bytes).map(|_| bytes)
    } else {
        read_named(file, MAX_SUMMARY_BYTES)
    };
    let bytes = read.map_err(|e| Failure::bad_input(format!("{}: cannot be read: {e}", file.display())))?;
    if bytes.len() as u64 > MAX_SUMMARY_BYTES {
        return Err(Failure::bad_input(format!(
            "{}: is above {MAX_SUMMARY_BYTES} bytes, and no summary is",
            file.display()
        )));
    }
    Ok(bytes)
}

fn show(summary: &SummaryOutput, screen: &Screen) {
    let line = |name: &str, value: &dyn Display| {
        screen.line(format_args!("{name:16} {}", safe_line(&value.to_string())));
    };
    let health = match summary.health.status {
        HealthNow::Green => screen.paint(Tone::Good, "green"),
        HealthNow::Red => screen.paint(Tone::Bad, "red"),
        HealthNow::Incomplete => screen.paint(Tone::Warn, "incomplete"),
        HealthNow::NotRecorded => screen.paint(Tone::Dim, "not recorded"),
        HealthNow::Blocked => screen.paint(Tone::Warn, "blocked"),
    };
    let reason = summary.health.reason.as_deref().unwrap_or_default();
    screen.line(format_args!("{:16} {health}  {}", "health", safe_line(reason)));
    let proven = summary.proof_ladder.iter().filter(|row| row.status == LadderStatus::Proven);
    let proven: Vec<String> = proven.map(|row| format!("{} {}", row.engine, row.stage)).collect();
    line("proven stages", &if proven.is_empty() { "none".to_owned() } else { proven.join(", ") });
    for row in summary.proof_ladder.iter().filter(|row| row.status == LadderStatus::Blocked) {
        let broken = screen.paint(Tone::Bad, "blocked");
        screen.line(format_args!("  {broken}  {} {}: {}", row.engine, row.stage, safe_line(&row.reason)));
    }
    let approval = &summary.approval;
    let id = approval.approval_id.map_or_else(|| "none".to_owned(), |id| id.to_string());
    line("approval", &format_args!("{id}: {}", approval.reason));
    line("execution", &if approval.execution_allowed { "allowed: one run" } else { "not allowed" });
    line("candidate", &in_words(&summary.candidate_default, |found| found.engine.to_string()));
    line(
        "target",
        &in_words(&summary.target_repository_mutation, |mutated| {
            if *mutated { "CHANGED beyond herma's own branch".to_owned() } else { "unchanged".to_owned() }
        }),
    );
    for landed in &summary.landed_branches {
        line("landed", &format_args!("{} ({})", landed.branch, landed.report_path));
    }
    line("next", &summary.next_operator_action);
}

fn in_words<T>(field: &Field<T>, known: impl Fn(&T) -> String) -> String {
    match field {
        Field::Known(value) => known(value),
        Field::Absent(absent) => absent.reason.clone(),
    }
}
