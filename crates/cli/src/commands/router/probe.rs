//! `herma router probe`: prints the capabilities of a model.

use std::path::Path;
use std::process::ExitCode;

use herma_api::probe_model;
use herma_router::config::Lookup;
use herma_router::endpoint::Endpoint;
use herma_router::probe::Support;

use crate::commands::Ended;
use crate::failure::Failure;
use crate::output::RouterProbeOutput;
use crate::screen::{Screen, Tone, safe_line};

/// Probes the model `UPSTREAM/MODEL` of a configuration and prints the result.
pub(super) fn probe(
    named: &str,
    file: &Path,
    api: Option<Endpoint>,
    secrets: &dyn Lookup,
    screen: &Screen,
) -> Ended {
    let output = probe_model(named, file, api, secrets)?;
    let code = if output.blocker.is_some() { Failure::BLOCKED } else { 0 };
    if screen.is_json() {
        screen.value(&output)?;
    } else {
        show(&output, screen);
    }
    Ok(ExitCode::from(code))
}

fn show(output: &RouterProbeOutput, screen: &Screen) {
    screen.line(screen.paint(Tone::Bold, safe_line(&format!("{}/{}", output.upstream, output.model))));
    if let Some(found) = &output.capabilities {
        for (what, support) in
            [("content", &found.content), ("streaming", &found.streaming), ("tool calls", &found.tool_calls)]
        {
            screen.line(format_args!("  {what:12} {}", shown(support, screen)));
        }
        let endpoints: Vec<&str> = found.endpoints.iter().map(|endpoint| api_name(*endpoint)).collect();
        screen.line(format_args!("  {:12} {}", "answers at", endpoints.join(", ")));
        for left in &found.left_out {
            screen.line(format_args!(
                "  {:12} {}: {}",
                "not at",
                api_name(left.endpoint),
                safe_line(&left.why)
            ));
        }
        if let Some(model) = &found.model_answered {
            screen.line(format_args!("  {:12} {}", "calls itself", safe_line(model)));
        }
        let used = &found.used;
        screen.line(format_args!(
            "  {:12} {} tokens in, {} out, {} of these to reason",
            "used", used.input, used.output, used.reasoning
        ));
    }
    if let Some(record) = &output.blocker {
        let blocker = screen.paint(Tone::Warn, record.blocker.as_str());
        screen.line(format_args!("blocked: {blocker}: {}", safe_line(&record.detail)));
        screen.line(format_args!("next: {}", safe_line(&record.next_step)));
    }
}

fn shown(support: &Support, screen: &Screen) -> String {
    match support {
        Support::Yes => screen.paint(Tone::Good, "yes"),
        Support::No(why) => format!("{}, {}", screen.paint(Tone::Bad, "no"), safe_line(why)),
        Support::NotAsked => screen.paint(Tone::Dim, "not asked"),
    }
}

fn api_name(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Chat => "chat",
        Endpoint::Responses => "responses",
        Endpoint::Messages => "messages",
        Endpoint::Completions => "completions",
        Endpoint::CountTokens => "count_tokens",
        Endpoint::Embeddings => "embeddings",
    }
}
