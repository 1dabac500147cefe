//! `herma router`: serves a configuration, checks it, and probes models.

mod check;
mod probe;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use herma_api::ConfiguredRouter;
use herma_harness::{ROUTER_FILE, SecretSource};
use herma_router::config::Config;
use herma_router::service::Signal;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

use crate::args::{self, RouterCommand};
use crate::commands::Ended;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::RouterOutput;
use crate::screen::Screen;

/// The time for in-flight calls to end when the router stops.
const DRAIN: Duration = Duration::from_secs(30);

pub(crate) fn router(args: &args::Router, environment: &Environment, screen: &Screen) -> Ended {
    let secrets = &environment.settings.secrets;
    match &args.command {
        None => serve(&config_file(args.config.as_ref(), environment)?, secrets, screen),
        Some(RouterCommand::Check { config }) => check::check(config, secrets, screen),
        Some(RouterCommand::Probe { model, config, api }) => {
            keep_memory_private()?;
            let file = config_file(config.as_ref(), environment)?;
            probe::probe(model, &file, api.map(Into::into), &*secrets.0, screen)
        }
        Some(RouterCommand::Example) => {
            screen.bytes(Config::example().as_bytes());
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The named configuration file, or the one of the home.
fn config_file(given: Option<&PathBuf>, environment: &Environment) -> Result<PathBuf, Failure> {
    given.map_or_else(|| Ok(environment.home()?.join(ROUTER_FILE)), |file| Ok(file.clone()))
}

fn serve(file: &Path, secrets: &SecretSource, screen: &Screen) -> Ended {
    keep_memory_private()?;
    let router = ConfiguredRouter::start(file, secrets.clone())?;
    let output = RouterOutput {
        schema: "herma.router/v1",
        listen: router.address().to_string(),
        admin: router.admin().map(ToString::to_string),
        clients: router.clients(),
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
    while router.wait_for_signal().map_err(Failure::internal)? == Signal::Reload {
        match router.reload() {
            Ok(reloaded) => screen.note(reloaded),
            Err(error) => screen.note(format_args!("the configuration stays as it was: {error}")),
        }
    }
    let left = router.drain(DRAIN);
    if left > 0 {
        screen.note(format_args!("{left} calls did not end within {} s and were cut off", DRAIN.as_secs()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Forbids core dumps and reading by other processes of the user: memory and environment of this process contain keys.
fn keep_memory_private() -> Result<(), Failure> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none)
        .and_then(|()| set_dumpable_behavior(DumpableBehavior::NotDumpable))
        .map_err(|e| {
            Failure::internal(format!("core dumps, which would hold keys, cannot be switched off: {e}"))
        })
}
