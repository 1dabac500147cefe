//! What the hidden `herma __probe` does with its plan: runs the probes of the table from where it is.

use std::fs;
use std::io;

use super::attempts::Attempt;
use super::table::PROBES;
use super::{ProbePlan, ProbeResult};

/// Tries everything in the plan from where this process is, tells of each as it is done, and leaves the sign in the workspace.
pub fn run_inside(plan: &ProbePlan, mut tell: impl FnMut(&ProbeResult) -> io::Result<()>) -> io::Result<()> {
    let observed = |attempt: Attempt| match attempt {
        Attempt::Denied(observed) => (true, observed),
        Attempt::NotDenied(observed) => (false, observed),
    };
    // The outside looks for it; whether this fails is for the outside to see.
    let _ = fs::write(plan.workspace.join(super::outside::SIGN), &plan.sign);
    PROBES.iter().filter(|probe| probe.small == plan.small.is_some()).try_for_each(|probe| {
        let (denied, observed) = observed((probe.attempt)(plan));
        tell(&probe.result(denied, observed))
    })
}
