//! Destinations: whether each is ready, and which one runs on a repository use.

use std::path::Path;

use herma_core::engine::DestinationKind;
use herma_harness::{Choice, ChoiceError, Installation};

use crate::output::DestinationRow;

/// Lists the destinations, with the one that this choice selects.
#[must_use]
pub fn destination_rows(installation: &Installation, choice: Option<&Choice>) -> Vec<DestinationRow> {
    let chosen = chosen_destination(choice);
    let kinds = DestinationKind::ALL.into_iter();
    kinds.map(|kind| destination_row(installation, kind, choice, kind == chosen)).collect()
}

/// The destination chosen for a repository. A directory that the user named must be one.
pub fn repository_choice(
    installation: &Installation,
    repository: &Path,
    named: bool,
) -> Result<Option<Choice>, ChoiceError> {
    if named {
        installation.repository(repository)?;
    }
    installation.choice_in(repository)
}

/// The destination of runs, if neither the contract nor a flag names one.
#[must_use]
pub fn chosen_destination(choice: Option<&Choice>) -> DestinationKind {
    choice.map_or(DestinationKind::Sandbox, |choice| choice.destination)
}

fn destination_row(
    installation: &Installation,
    name: DestinationKind,
    choice: Option<&Choice>,
    chosen: bool,
) -> DestinationRow {
    match installation.destination(name, choice).and_then(|destination| destination.rehearse()) {
        Ok(ready) => DestinationRow {
            name,
            chosen,
            ready: true,
            detail: ready.detail,
            next_step: None,
            walls: ready.walls,
        },
        Err(why) => DestinationRow {
            name,
            chosen,
            ready: false,
            detail: why.what,
            next_step: Some(why.next_step),
            walls: Vec::new(),
        },
    }
}
