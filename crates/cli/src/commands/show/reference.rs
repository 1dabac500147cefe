//! `herma show bundle:RUN/FILE` and `herma show record:KIND/ID`.

use std::process::ExitCode;

use herma_api::open_reference;
use herma_core::reference::Reference;

use crate::commands::{Ended, open_to_read};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::screen::{Screen, Tone, safe, safe_line};

/// Shows what the reference names; none where the text is the name of a run.
pub(super) fn shown(named: &str, environment: &Environment, screen: &Screen) -> Option<Ended> {
    Reference::looks_like_one(named).then(|| show(named, environment, screen))
}

fn show(named: &str, environment: &Environment, screen: &Screen) -> Ended {
    let reference: Reference = named.parse().map_err(Failure::bad_input)?;
    let installation = open_to_read(environment)?;
    let opened = open_reference(&installation, &reference)
        .map_err(|e| Failure::bad_input(e).hint("`herma summary` prints references that can be opened"))?;
    if screen.is_json() {
        screen.value(&opened)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(problem) = &opened.problem {
        let warning = screen.paint(Tone::Bad, "WARNING: it does not verify:");
        screen.note(format_args!("{warning} {}", safe_line(problem)));
    }
    screen.line(safe(&opened.text).trim_end());
    Ok(ExitCode::SUCCESS)
}
