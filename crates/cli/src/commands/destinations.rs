//! `herma destinations`, `herma destination set|show`: where runs can take place, and where those on a repository do.

use std::path::Path;
use std::process::ExitCode;

use herma_core::engine::DestinationKind;
use herma_destination::DestinationCapabilities;
use herma_harness::{Choice, ChoiceError, Installation};

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::output::{DestinationOutput, DestinationRow, DestinationsOutput};
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn destinations(of: &args::OfRepository, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let choice = choice_of(&installation, of)?;
    let chosen = kind_of(choice.as_ref());
    let rows: Vec<DestinationRow> = DestinationKind::ALL
        .into_iter()
        .map(|kind| look(&installation, kind, choice.as_ref(), kind == chosen))
        .collect();
    if screen.is_json() {
        screen.value(&DestinationsOutput { schema: "herma.destinations/v1", destinations: rows })?;
        return Ok(ExitCode::SUCCESS);
    }
    for row in &rows {
        let mark = if row.ready {
            screen.paint(Tone::Good, "ready    ")
        } else {
            screen.paint(Tone::Warn, "not ready")
        };
        let chosen = if row.chosen { " (runs take place here)" } else { "" };
        screen.line(format_args!("{:10} {mark} {}{chosen}", row.name.as_str(), safe_line(&row.detail)));
        if let Some(next) = &row.next_step {
            screen.line(format_args!("           next: {}", safe_line(next)));
        }
        for wall in &row.walls {
            screen.line(format_args!("           {}", screen.paint(Tone::Dim, safe_line(wall))));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn destination(command: &args::Destination, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let (choice, repository) = match command {
        args::Destination::Set(args::SetDestination { name, image, runtime, of }) => {
            let choice = installation.choose(&of.repo, (*name).into(), image.clone(), runtime.clone())?;
            let repository = choice.repository.clone();
            (Some(choice), repository)
        }
        args::Destination::Show(of) => {
            let repository = installation.repository(&of.repo)?;
            (installation.choice_in(&of.repo)?, repository)
        }
    };
    let kind = kind_of(choice.as_ref());
    let needs_image = DestinationCapabilities::of(kind).needs_image();
    let options = needs_image.then(|| installation.container_options(choice.as_ref()));
    let container = options.and_then(|options| Some((options.image?.to_string(), options.runtime)));
    let (image, runtime) = container.unzip();
    let output = DestinationOutput {
        schema: "herma.destination/v1",
        repository: repository.display().to_string(),
        destination: kind,
        chosen: choice.is_some(),
        image,
        runtime: runtime.flatten(),
    };
    if screen.is_json() {
        screen.value(&output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let by = if output.chosen { "chosen for" } else { "the default, as nothing was chosen for" };
    screen.line(format_args!("{} ({by} {})", kind.as_str(), safe_line(&output.repository)));
    for (what, value) in [("image", &output.image), ("runtime", &output.runtime)] {
        if let Some(value) = value {
            screen.line(format_args!("  {what}: {}", safe_line(value)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What was chosen for the repository. One that was named has to be there; where no name was given, the directory that
/// herma was started in may be none.
pub(super) fn choice_of(
    installation: &Installation,
    of: &args::OfRepository,
) -> Result<Option<Choice>, ChoiceError> {
    if of.repo != Path::new(args::OfRepository::HERE) {
        installation.repository(&of.repo)?;
    }
    installation.choice_in(&of.repo)
}

/// Where runs take place, if neither the contract nor a flag says it.
pub(super) fn kind_of(choice: Option<&Choice>) -> DestinationKind {
    choice.map_or(DestinationKind::Sandbox, |choice| choice.destination)
}

fn look(
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
