//! `herma destinations`, `herma destination set|show`: where runs can take place, and where those on a repository do.

use std::path::Path;
use std::process::ExitCode;

use herma_api::{chosen_destination, destination_rows, repository_choice};
use herma_destination::DestinationCapabilities;
use herma_harness::{Choice, ChoiceError, Installation};

use crate::args;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::output::{DestinationOutput, DestinationsOutput};
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn destinations(of: &args::OfRepository, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let choice = choice_of(&installation, of)?;
    let rows = destination_rows(&installation, choice.as_ref());
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
    let kind = chosen_destination(choice.as_ref());
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

/// The choice for the repository of the arguments.
pub(super) fn choice_of(
    installation: &Installation,
    of: &args::OfRepository,
) -> Result<Option<Choice>, ChoiceError> {
    let named = of.repo != Path::new(args::OfRepository::HERE);
    repository_choice(installation, &of.repo, named)
}
