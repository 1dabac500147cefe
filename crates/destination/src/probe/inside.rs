//! The hidden `herma __probe`: runs the probes of the table inside the destination.

use std::fs;
use std::io;

use super::attempts::ProbeOutcome;
use super::table::{PROBES, ProbeSpec};
use super::{ProbePlan, ProbeResult};

/// Runs every probe of the plan, reports each result as it comes, and writes the marker to the workspace.
pub fn run_inside(plan: &ProbePlan, mut tell: impl FnMut(&ProbeResult) -> io::Result<()>) -> io::Result<()> {
    // The outside checks it, so an error is noticed there.
    let _ = fs::write(plan.workspace.join(super::outside::MARKER), &plan.marker);
    let mut under_way = Vec::new();
    for probe in PROBES.iter().filter(|probe| probe.small == plan.small.is_some()) {
        match (probe.attempt)(plan) {
            ProbeOutcome::Pending(ended) => under_way.push((probe, ended)),
            ended => tell(&result(probe, ended))?,
        }
    }
    under_way.into_iter().try_for_each(|(probe, ended)| tell(&result(probe, ended())))
}

fn result(probe: &ProbeSpec, attempt: ProbeOutcome) -> ProbeResult {
    match attempt {
        ProbeOutcome::Denied(observed) => probe.result(true, observed),
        ProbeOutcome::NotDenied(observed) => probe.result(false, observed),
        ProbeOutcome::Pending(ended) => result(probe, ended()),
    }
}
