//! `herma quickstart`: the guided set-up, at a terminal or by flags.

mod person;
mod progress;

use std::process::ExitCode;

use herma_api::output::QuickstartOutput;
use herma_core::CancellationToken;
use herma_quickstart::{Choices, QuickstartError, quickstart as set_up};

use self::person::AtTerminal;
use self::progress::Shown;
use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::listen;
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn quickstart(args: &args::Quickstart, environment: &Environment, screen: &Screen) -> Ended {
    // Closes what an earlier, killed command left.
    drop(open(environment, screen)?);
    let choices = choices(args, environment)?;
    let cancellation = CancellationToken::default();
    listen(&cancellation, screen)?;
    let person = AtTerminal { args, environment, screen };
    let watch = Shown::new(screen);
    let output = set_up(&choices, &environment.settings, &cancellation, &person, &watch);
    drop(watch);
    let output = output.map_err(failure)?;
    if screen.is_json() {
        screen.value(&output)?;
    } else {
        end(&output, screen);
    }
    Ok(ExitCode::SUCCESS)
}

fn choices(args: &args::Quickstart, environment: &Environment) -> Result<Choices, Failure> {
    Ok(Choices {
        engine: args.engine.clone(),
        program: args.program.clone(),
        pin: args.pin.clone(),
        license: args.license.clone(),
        identity: args.identity.clone(),
        own_network: args.own_network,
        approver: args.unlock.approver.clone(),
        user: environment.user.clone(),
        provider: args.provider.map(Into::into),
        upstream: args.upstream.clone(),
        url: args.url.clone(),
        model: args.model.clone(),
        credential: args.credential().map_err(Failure::bad_input)?,
        directory: args.repo.clone(),
        write: args.write,
        verify: args.verify.clone(),
        allow: args.allow.clone(),
        landing: args.landing(),
        dry_run: args.dry_run,
    })
}

fn end(output: &QuickstartOutput, screen: &Screen) {
    screen.line("");
    if output.ready {
        screen.line(format_args!("{} {} is set up", screen.paint(Tone::Good, "ready:"), output.engine));
    }
    screen.line(format_args!("{} {}", screen.paint(Tone::Bold, "next:"), safe_line(&output.next_step)));
}

/// The failure, with the way to continue.
fn failure(error: QuickstartError) -> Failure {
    let failure = Failure::from(error);
    let again = "run the same command again: it continues where it stopped";
    let next_step = match failure.next_step {
        Some(next_step) => format!("{}; then {again}", next_step.trim_end_matches('.')),
        None => again.to_owned(),
    };
    Failure { next_step: Some(next_step), ..failure }
}

impl From<QuickstartError> for Failure {
    fn from(error: QuickstartError) -> Self {
        match error {
            QuickstartError::Open(error) => error.into(),
            QuickstartError::Missing { what, next_step } => Self::blocked(what).hint(next_step),
            QuickstartError::BadChoice { what, next_step } => Self::bad_input(what).hint(next_step),
            QuickstartError::Unanswered(unanswered) => {
                let code = if unanswered.is_interrupted { Self::BLOCKED } else { Self::BAD_INPUT };
                Self { code, what: unanswered.what, next_step: unanswered.next_step }
            }
            QuickstartError::Engine(error) => error.into(),
            QuickstartError::Install(error) => error.into(),
            QuickstartError::Approver(error) => error.into(),
            QuickstartError::Admission(error) => error.into(),
            QuickstartError::Router(error) => {
                Self::bad_input(error).hint("`herma router check` reads it again once it is corrected")
            }
            QuickstartError::ModelList(error) => {
                Self::bad_input(error).hint("correct the upstream in router.toml, or the source of its key")
            }
            QuickstartError::Probe(error) => error.into(),
            QuickstartError::Prove(error) => error.into(),
            QuickstartError::Order(error) => error.into(),
            QuickstartError::Defaults(error) => {
                let hint = error.next_step();
                Self::bad_input(error).hint(hint)
            }
            QuickstartError::AdHoc(error) => error.into(),
            error @ QuickstartError::Cancelled(_) => Self::blocked(error),
            error @ QuickstartError::Io { .. } => {
                Self::internal(error).hint("free space, or make the directory writable")
            }
        }
    }
}
