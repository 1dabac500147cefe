//! `herma usage`: what runs used of models.

use std::process::ExitCode;

use herma_core::report::Usage;

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::output::UsageOutput;
use crate::screen::{Screen, safe_line};

pub(crate) fn usage(args: &args::Usage, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let by = args.by.into();
    let rows = installation.store.call(|store| store.usage(by))?;
    let total = rows.iter().fold(Usage::NONE, |sum, row| sum.plus(row.usage));
    if screen.is_json() {
        screen.value(&UsageOutput { schema: "herma.usage/v1", by, rows, total })?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        screen.line("no run has asked a model yet");
        return Ok(ExitCode::SUCCESS);
    }
    let width =
        rows.iter().map(|row| safe_line(&row.key).chars().count()).max().unwrap_or(0).max("total".len());
    let line = |key: &str, usage: &Usage| {
        let unsettled = match usage.unsettled {
            0 => String::new(),
            calls => format!("  ({calls} calls with unknown usage, counted at their maximum)"),
        };
        screen.line(format_args!(
            "{key:width$}  {:>7} calls  {:>10} in  {:>10} out  {:>12} charged  ${}{unsettled}",
            usage.requests, usage.input_tokens, usage.output_tokens, usage.charged_tokens, usage.usd
        ));
    };
    for row in &rows {
        line(&safe_line(&row.key), &row.usage);
    }
    line("total", &total);
    Ok(ExitCode::SUCCESS)
}
