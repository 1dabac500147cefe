//! `herma models`: which models are configured and admitted, by which names they are asked, and what they cost.

use std::process::ExitCode;

use herma_api::model_rows;
use herma_core::report::Admission;
use herma_harness::{ROUTER_FILE, router_config};

use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{ModelRow, ModelsOutput};
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn models(environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let config = router_config(installation.home.root()).map_err(|bad| {
        Failure::bad_input(bad.to_string()).hint("fix the file, or remove it to run without models")
    })?;
    let rows = model_rows(&installation, config.as_ref())?;
    if screen.is_json() {
        let configured = config.is_some();
        screen.value(&ModelsOutput { schema: "herma.models/v1", configured, models: rows })?;
        return Ok(ExitCode::SUCCESS);
    }
    if config.is_none() {
        screen.line(format_args!("there is no {ROUTER_FILE} in herma's home: no model can be asked"));
    }
    if let Some(config) = config.as_ref().filter(|_| rows.is_empty()) {
        let upstreams: Vec<&str> = config.upstreams.keys().map(|name| &**name).collect();
        screen.line(match &upstreams[..] {
            [] => format!("{ROUTER_FILE} has no upstream and no model"),
            upstreams => {
                format!("no model is admitted; {ROUTER_FILE} has the upstreams: {}", upstreams.join(", "))
            }
        });
        screen.line("next: `herma admit model UPSTREAM/MODEL`, then `herma admit sign model UPSTREAM/MODEL`");
    }
    for row in &rows {
        show(row, screen);
    }
    Ok(ExitCode::SUCCESS)
}

fn show(row: &ModelRow, screen: &Screen) {
    let tone = if row.admission == Admission::Admitted { Tone::Good } else { Tone::Warn };
    screen.line(format_args!(
        "{:40} {:11} {}",
        safe_line(&row.model),
        row.provider.as_deref().unwrap_or("-"),
        screen.paint(tone, row.admission.as_str())
    ));
    if !row.aliases.is_empty() {
        screen.line(format_args!("  asked as  {}", safe_line(&row.aliases.join(", "))));
    }
    match &row.price {
        Some(price) => screen.line(format_args!(
            "  price     ${} in, ${} out, ${} cached, for a million tokens",
            price.input, price.output, price.cached_input
        )),
        None => screen.line("  price     unknown; add it to [prices] to use limits.usd"),
    }
    if let Some(next) = &row.next_step {
        screen.line(format_args!("  next      {}", safe_line(next)));
    }
}
