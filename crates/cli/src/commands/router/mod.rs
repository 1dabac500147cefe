//! `herma router`: the one way to a model, alone.

mod check;
mod lookup;
pub(crate) mod serving;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use herma_router::config::Config;
use herma_router::service::Signal;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

use crate::args::{self, RouterCommand};
use crate::commands::Ended;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::RouterOutput;
use crate::screen::Screen;
use serving::Serving;

pub(crate) use lookup::EnvironmentLookup;

/// How long calls under way may still take when the router is told to stop.
const DRAIN: Duration = Duration::from_secs(30);

/// The name of the configuration in herma's home.
pub(crate) const CONFIG_FILE: &str = "router.toml";

pub(crate) fn router(args: &args::Router, environment: &Environment, screen: &Screen) -> Ended {
    match &args.command {
        None => serve(&config_file(args.config.as_ref(), environment)?, screen),
        Some(RouterCommand::Check { config }) => check::check(config, screen),
        Some(RouterCommand::Probe { model, config, api }) => {
            keep_memory_private()?;
            let file = config_file(config.as_ref(), environment)?;
            super::router_probe::router_probe(model, &file, api.map(Into::into), &EnvironmentLookup, screen)
        }
        Some(RouterCommand::Example) => {
            screen.bytes(Config::example().as_bytes());
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The configuration that is meant.
pub(crate) fn config_file(given: Option<&PathBuf>, environment: &Environment) -> Result<PathBuf, Failure> {
    given.map_or_else(|| Ok(environment.home()?.join(CONFIG_FILE)), |file| Ok(file.clone()))
}

fn serve(file: &Path, screen: &Screen) -> Ended {
    keep_memory_private()?;
    let serving = Arc::new(Serving::start(file)?);
    let output = RouterOutput {
        schema: "herma.router/v1",
        listen: serving.address().to_string(),
        admin: serving.admin().map(ToString::to_string),
        clients: serving.clients(),
    };
    if screen.is_json() {
        screen.value_line(&output)?;
    } else {
        screen.line(format_args!("the router listens on {}", output.listen));
        if let Some(admin) = &output.admin {
            screen.line(format_args!("the operator's socket is {admin}"));
        }
        screen.line(format_args!("send SIGHUP to read {} again, SIGTERM to drain and stop", file.display()));
    }
    while serving.wait_for_signal().map_err(Failure::internal)? == Signal::Reload {
        match serving.reload() {
            Ok(said) => screen.note(format_args!("{said}")),
            Err(said) => screen.note(format_args!("the configuration stays as it was: {said}")),
        }
    }
    let left = serving.drain(DRAIN);
    if left > 0 {
        screen
            .note(format_args!("{left} calls did not end within {} s and were broken off", DRAIN.as_secs()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Keys lie in this process's memory, and may lie in its environment: no core dump holds them, and no other process of
/// this user reads them there.
fn keep_memory_private() -> Result<(), Failure> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none)
        .and_then(|()| set_dumpable_behavior(DumpableBehavior::NotDumpable))
        .map_err(|e| {
            Failure::internal(format!("core dumps, which would hold keys, cannot be switched off: {e}"))
        })
}
