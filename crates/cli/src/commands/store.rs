//! `herma store`: whether the store agrees with the bundles, making it anew, and moving it.

use std::process::ExitCode;
use std::sync::Arc;

use herma_api::{
    StoreCommandError, StoreTarget, check_store, migrate_store, rebuild_store, set_corrupt_store_aside,
};
use herma_core::Clock as _;
use herma_core::store::{StoreCounts, StoreDescription};
use herma_harness::{Installation, SystemClock};

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn store(command: &args::Store, environment: &Environment, screen: &Screen) -> Ended {
    match command {
        args::Store::Check => check(&open(environment, screen)?, screen),
        args::Store::Rebuild => rebuild(environment, screen),
        args::Store::Migrate(args) => migrate(&open(environment, screen)?, args, screen),
    }
}

fn check(installation: &Installation, screen: &Screen) -> Ended {
    let output = check_store(installation)?;
    if screen.is_json() {
        screen.value(&output)?;
        return Ok(ExitCode::from(u8::from(!output.ok)));
    }
    show_store(&output.store, screen);
    show_counts(&output.counts, screen);
    for disagreement in &output.disagreements {
        let mark = screen.paint(Tone::Bad, "DIFFERS");
        screen.line(format_args!("{mark} {}: {}", disagreement.run_id, safe_line(&disagreement.problem)));
    }
    if output.ok {
        screen.line(format_args!("it agrees with the {} bundles of this home", output.bundles));
    } else {
        screen.note("`herma store rebuild` makes the index of runs anew from the bundles");
    }
    Ok(ExitCode::from(u8::from(!output.ok)))
}

fn rebuild(environment: &Environment, screen: &Screen) -> Ended {
    let clock = Arc::new(SystemClock);
    let set_aside = match Installation::open(environment.settings.clone(), Arc::<SystemClock>::clone(&clock))
    {
        Ok(_) => None,
        Err(error) => {
            let aside = set_corrupt_store_aside(&environment.settings, &error, clock.now())?;
            Some(aside.ok_or_else(|| Failure::from(error))?)
        }
    };
    let set_aside = set_aside.map(|file| file.display().to_string());
    let output = rebuild_store(&open(environment, screen)?, set_aside)?;
    if screen.is_json() {
        screen.value(&output)?;
        return Ok(ExitCode::from(u8::from(!output.refused.is_empty())));
    }
    show_store(&output.store, screen);
    if let Some(file) = &output.set_aside {
        screen.line(format_args!("the file that was no store is now {}", safe_line(file)));
    }
    screen.line(format_args!("{} runs are recorded from their bundles", output.runs));
    for refused in &output.refused {
        let mark = screen.paint(Tone::Bad, "REFUSED");
        screen.line(format_args!("{mark} {}: {}", refused.run_id, safe_line(&refused.problem)));
    }
    if output.voided_approvals > 0 {
        screen.line(format_args!("{} approvals that were not used are void", output.voided_approvals));
    }
    Ok(ExitCode::from(u8::from(!output.refused.is_empty())))
}

fn migrate(installation: &Installation, args: &args::StoreMigrate, screen: &Screen) -> Ended {
    let target = StoreTarget {
        url: args.to.clone(),
        password_file: args.password_file.clone(),
        is_to_be_used: args.is_to_be_used,
    };
    let output = migrate_store(installation, &target)?;
    if screen.is_json() {
        screen.value(&output)?;
        return Ok(ExitCode::SUCCESS);
    }
    screen.line(format_args!(
        "{} is copied to {}",
        safe_line(&output.from.location),
        safe_line(&output.to.location)
    ));
    show_counts(&output.counts, screen);
    if output.is_in_use {
        screen.line("settings.yaml names the new store");
    } else {
        screen
            .note("to use it, set `store.url` in settings.yaml or HERMA_STORE, and move the old store away");
    }
    Ok(ExitCode::SUCCESS)
}

fn show_store(store: &StoreDescription, screen: &Screen) {
    let StoreDescription { engine, version, schema_version, location, .. } = store;
    screen.line(format_args!(
        "{}: {engine} {}, schema {schema_version}",
        safe_line(location),
        safe_line(version)
    ));
    if store.other_processes > 0 {
        screen.line(format_args!("{} other processes use it", store.other_processes));
    }
}

fn show_counts(counts: &StoreCounts, screen: &Screen) {
    let StoreCounts { runs, events, artifacts, approvals, usage, leases } = counts;
    screen.line(format_args!(
        "{runs} runs, {events} events, {artifacts} artifacts, {approvals} approvals, {usage} rows of usage, {leases} leases"
    ));
}

impl From<StoreCommandError> for Failure {
    fn from(error: StoreCommandError) -> Self {
        let next_step = error.next_step();
        let failure = match error {
            StoreCommandError::Store(_)
            | StoreCommandError::Home(_)
            | StoreCommandError::Record(..)
            | StoreCommandError::File { .. } => Self::internal(error),
            StoreCommandError::ActiveRun(_) | StoreCommandError::InUse { .. } => Self::blocked(error),
            StoreCommandError::Place(_)
            | StoreCommandError::SameStore(_)
            | StoreCommandError::CannotUse(_) => Self::bad_input(error),
        };
        failure.hint(next_step)
    }
}
