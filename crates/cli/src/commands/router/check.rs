//! `herma router check`: whether a configuration can be served.

use std::path::Path;
use std::process::ExitCode;

use herma_api::UsableConfig;
use herma_harness::SecretSource;
use herma_router::config::Config;

use crate::commands::Ended;
use crate::output::{RouterCheckOutput, RouterModel};
use crate::screen::{Screen, Tone};

pub(super) fn check(file: &Path, secrets: &SecretSource, screen: &Screen) -> Ended {
    let config = UsableConfig::read(file, secrets)?.config;
    let output = RouterCheckOutput {
        schema: "herma.router-check/v1",
        upstreams: config
            .upstreams
            .iter()
            .map(|(name, upstream)| (name.clone(), upstream.provider.name()))
            .collect(),
        models: models(&config),
        clients: config.clients.keys().cloned().collect(),
    };
    if screen.is_json() {
        screen.value(&output)?;
        return Ok(ExitCode::SUCCESS);
    }
    screen.line(screen.paint(Tone::Good, format_args!("{} can be served", file.display())));
    for (name, provider) in &output.upstreams {
        screen.line(format_args!("  upstream {name}: {provider}"));
    }
    for model in &output.models {
        let also = if model.aliases.is_empty() {
            String::new()
        } else {
            format!(", also as {}", model.aliases.join(", "))
        };
        screen.line(format_args!("  model {}: {}{also}", model.name, model.chain.join(", then ")));
    }
    for client in &output.clients {
        screen.line(format_args!("  client {client}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn models(config: &Config) -> Vec<RouterModel> {
    let model = |(name, model): (&String, &herma_router::config::ModelConfig)| RouterModel {
        name: name.clone(),
        aliases: model.aliases.clone(),
        chain: model.chain.iter().map(|(upstream, model)| format!("{upstream}/{model}")).collect(),
    };
    config.models.iter().map(model).collect()
}
