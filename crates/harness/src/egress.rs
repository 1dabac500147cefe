//! The egress of a run: its plan, the proxy that is started for it, and the record of the proxy's decisions.

mod plan;
mod recorder;
mod service;

pub(crate) use plan::{EgressPlan, look};
pub(crate) use recorder::recover;
pub(crate) use service::{EgressResults, RunEgress, end, start};
