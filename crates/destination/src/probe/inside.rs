//! What the hidden `herma __probe` does with its plan: runs the probes of the table from where it is.

use std::fs;
use std::io;

use super::attempts::Attempt;
use super::table::{PROBES, Probe};
use super::{ProbePlan, ProbeResult};

/// Tries everything in the plan from where this process is, tells of each as it is done, and leaves the sign in the workspace.
pub fn run_inside(plan: &ProbePlan, mut tell: impl FnMut(&ProbeResult) -> io::Result<()>) -> io::Result<()> {
    // The outside looks for it; whether this fails is for the outside to see.
    let _ = fs::write(plan.workspace.join(super::outside::SIGN), &plan.sign);
    let mut under_way = Vec::new();
    for probe in PROBES.iter().filter(|probe| probe.small == plan.small.is_some()) {
        match (probe.attempt)(plan) {
            Attempt::UnderWay(ended) => under_way.push((probe, ended)),
            ended => tell(&result(probe, ended))?,
        }
    }
    under_way.into_iter().try_for_each(|(probe, ended)| tell(&result(probe, ended())))
}

fn result(probe: &Probe, attempt: Attempt) -> ProbeResult {
    match attempt {
        Attempt::Denied(observed) => probe.result(true, observed),
        Attempt::NotDenied(observed) => probe.result(false, observed),
        Attempt::UnderWay(ended) => result(probe, ended()),
    }
}
