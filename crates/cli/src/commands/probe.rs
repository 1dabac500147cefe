//! `herma probe`: the enforcement proof alone.

use std::process::ExitCode;

use herma_api::chosen_destination;
use herma_core::engine::DestinationKind;
use herma_destination::probe::ProbeResult;
use herma_harness::probe_alone;

use crate::args;
use crate::commands::destinations::choice_of;
use crate::commands::{Ended, open};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{ProbeOutput, ProbeRow};
use crate::screen::{Screen, Tone, safe_line};

pub(crate) fn probe(args: &args::Probe, environment: &Environment, screen: &Screen) -> Ended {
    let installation = open(environment, screen)?;
    let choice = choice_of(&installation, &args.of)?;
    let kind: DestinationKind =
        args.destination.map_or_else(|| chosen_destination(choice.as_ref()), Into::into);
    let found = installation
        .destination(kind, choice.as_ref())
        .and_then(|destination| probe_alone(&installation, destination.as_ref()))
        .map_err(|why| Failure::blocked(why.what).hint(why.next_step))?;
    let row = |ProbeResult { name, what, wall, denied, observed }| ProbeRow {
        name,
        what,
        wall,
        denied,
        detail: observed,
    };
    let output = ProbeOutput {
        schema: "herma.probe/v1",
        destination: found.destination,
        ok: found.broken().is_empty(),
        walls: found.walls,
        limits: found.limits,
        probes: found.probes.into_iter().map(row).collect(),
    };
    let code = if output.ok { ExitCode::SUCCESS } else { ExitCode::from(Failure::BLOCKED) };
    if screen.is_json() {
        screen.value(&output)?;
        return Ok(code);
    }
    for ProbeRow { name, wall, denied, detail, .. } in &output.probes {
        let mark = if *denied {
            screen.paint(Tone::Good, "denied    ")
        } else {
            screen.paint(Tone::Bad, "NOT DENIED")
        };
        screen.line(format_args!("{name:22} {:18} {mark} {}", wall.as_str(), safe_line(detail)));
    }
    let not_denied = output.probes.iter().filter(|probe| !probe.denied).count();
    screen.line(format_args!(
        "\n{} of {} probes were denied in `{}`.",
        output.probes.len() - not_denied,
        output.probes.len(),
        kind.as_str()
    ));
    Ok(code)
}
