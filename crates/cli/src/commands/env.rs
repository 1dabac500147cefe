//! `herma env`: the environments of contracts, without a run.

mod shell;

use std::process::ExitCode;

use herma_api::{
    LayersError, environment_layer, environments, prune_environments, read_contract, resolve_destination,
};
use herma_core::egress::EgressMode;
use herma_core::environment::{LayerBuildRecord, LayerName};
use herma_core::units::Bytes;
use herma_harness::{EnvironmentError, Installation, Order, build_environment};

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::listen;
use crate::output::EnvironmentBuiltOutput;
use crate::screen::{Screen, Tone, readable_bytes as readable, safe_line};
use crate::timed_notes::timed_notes;

/// How many digits of a key are shown.
const SHORT_KEY: usize = 12;

pub(crate) fn env(command: &args::Env, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    match command {
        args::Env::Build(args) => build(&installation, args, screen)?,
        args::Env::Shell(args) => return shell::shell(&installation, args, screen),
        args::Env::List => list(&installation, screen)?,
        args::Env::Show { key } => show(&installation, key, screen)?,
        args::Env::Prune { max } => prune(&installation, *max, screen)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The order of a contract whose environment is used without a run.
fn order(
    installation: &Installation,
    contract: &str,
    destination: Option<args::DestinationArg>,
) -> Result<Order, Failure> {
    let read = read_contract(contract, installation.settings())?;
    Ok(Order {
        destination: resolve_destination(destination.map(Into::into), installation, &read)?,
        contract: read.contract,
        contract_text: read.text,
        contract_dir: read.dir,
        engine: "fake".parse().map_err(Failure::internal)?,
        script: None,
        keep_workspace: false,
        egress: EgressMode::default(),
        resumes: None,
        fault: None,
    })
}

fn build(installation: &Installation, args: &args::EnvBuild, screen: &Screen) -> Result<(), Failure> {
    let order = order(installation, &args.contract, args.destination)?;
    listen(&installation.cancellation, screen)?;
    let layers = build_environment(installation, &order, &timed_notes(screen))?;
    if screen.is_json() {
        return screen.value(&EnvironmentBuiltOutput { schema: "herma.environment-built/v1", layers });
    }
    for layer in &layers {
        describe(layer, screen);
    }
    Ok(())
}

fn list(installation: &Installation, screen: &Screen) -> Result<(), Failure> {
    let output = environments(installation)?;
    if screen.is_json() {
        return screen.value(&output);
    }
    if output.layers.is_empty() {
        screen.line("there is no environment yet: `herma env build CONTRACT` builds one, and so does a run");
        return Ok(());
    }
    for layer in &output.layers {
        let used = layer.last_used.map_or_else(|| "never".to_owned(), |at| format!("{at:.0}"));
        let in_use = if layer.in_use { "  in use" } else { "" };
        screen.line(format_args!(
            "{}  {:5}  {:>8} files  {:>10}  used {used}{in_use}",
            short(&layer.key.hex()),
            layer.kind,
            layer.files,
            readable(layer.bytes)
        ));
        for command in &layer.commands {
            screen.line(format_args!("    {}", screen.paint(Tone::Dim, safe_line(command))));
        }
    }
    screen.line(format_args!("{} layers, {}", output.layers.len(), readable(output.bytes)));
    Ok(())
}

fn show(installation: &Installation, key: &str, screen: &Screen) -> Result<(), Failure> {
    let output = environment_layer(installation, key)?;
    if screen.is_json() {
        return screen.value(&output);
    }
    let layer = &output.layer;
    describe(layer, screen);
    screen.line(format_args!("  key          {}", layer.key));
    screen.line(format_args!("  built        {:.0}, in {:.1} s", layer.built_at, seconds(layer.duration_ms)));
    screen.line(format_args!("  destination  {}, {}", safe_line(&layer.destination), layer.architecture));
    screen.line(format_args!("  files        {}", safe_line(&output.directory)));
    for tool in &layer.tools {
        screen.line(format_args!("  tool         {} {}", safe_line(&tool.name), safe_line(&tool.version)));
    }
    for input in &layer.inputs {
        screen.line(format_args!("  input        {}", safe_line(&input.path.to_string())));
    }
    for command in &layer.commands {
        let took = seconds(command.duration_ms);
        screen.line(format_args!("  command      {}  ({took:.1} s)", safe_line(&command.command)));
    }
    for decision in &layer.egress {
        let (host, verdict) = (safe_line(&decision.host), safe_line(&decision.verdict));
        screen.line(format_args!("  egress       {host}:{} {verdict}, {}x", decision.port, decision.count));
    }
    if layer.source_and_network {
        screen.line("  source and network together: the fetch commands saw the whole tree");
    }
    Ok(())
}

fn prune(installation: &Installation, Bytes(max): Bytes, screen: &Screen) -> Result<(), Failure> {
    let output = prune_environments(installation, max)?;
    if screen.is_json() {
        return screen.value(&output);
    }
    for key in &output.removed {
        screen.line(format_args!("removed {}", short(&key.hex())));
    }
    for key in &output.in_use {
        screen.line(format_args!("kept {}, which a process uses", short(&key.hex())));
    }
    let (removed, kept) = (output.removed.len(), output.kept.len());
    screen.line(format_args!("{removed} removed, {} freed; {kept} kept", readable(output.freed_bytes)));
    Ok(())
}

fn describe(layer: &LayerBuildRecord, screen: &Screen) {
    let kind = match layer.kind {
        LayerName::Fetch => "fetch",
        LayerName::Setup => "setup",
    };
    screen.line(format_args!(
        "{}  {kind}  {} files, {}",
        screen.paint(Tone::Bold, short(&layer.key.hex())),
        layer.files,
        readable(layer.bytes)
    ));
}

fn short(hex: &str) -> String {
    hex.chars().take(SHORT_KEY).collect()
}

#[allow(clippy::cast_precision_loss, reason = "tenths of a second for a person")]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

impl From<LayersError> for Failure {
    fn from(error: LayersError) -> Self {
        match error {
            LayersError::NotOne { .. } => Self::bad_input(error).hint("`herma env list` shows the keys"),
            LayersError::Io(_) | LayersError::Record(_) => Self::internal(error),
        }
    }
}

impl From<EnvironmentError> for Failure {
    fn from(error: EnvironmentError) -> Self {
        match error {
            EnvironmentError::NoEnvironment => {
                Self::bad_input(error).hint("add one: docs/environments.md has an example for each ecosystem")
            }
            EnvironmentError::Blocked(ref record) => {
                let next_step = record.next_step.clone();
                Self::blocked(error).hint(next_step)
            }
            EnvironmentError::Build(_) => Self::blocked(error)
                .hint("correct the command, `registries` or `tools` in the contract's `environment`"),
            EnvironmentError::Start(_) => {
                Self::blocked(error).hint("`herma doctor` says what is missing on this machine")
            }
            EnvironmentError::Shell(_) => Self::internal(error),
            EnvironmentError::Internal(error) => error.into(),
        }
    }
}
