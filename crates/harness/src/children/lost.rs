//! Children that a run had and of which its events do not say how they ended, because herma died meanwhile.

use std::collections::BTreeSet;

use herma_core::child::ChildEnd;
use herma_core::event::Source;
use herma_core::{EventType, Report, RunId};
use herma_evidence::{EventLog, WriteError, layout, report};

use crate::file_reading::read_regular;
use crate::installation::Installation;

/// Tells of their end as their reports do, so that what they were charged is in the report of the run. They are closed before
/// the run that asked for them; one that could not be is known to nobody, and is counted as that.
pub(crate) fn tell_of_lost(installation: &Installation, events: &EventLog) -> Result<(), WriteError> {
    let all = events.events();
    let named = |kind: EventType| {
        let of_kind = all.iter().filter(move |event| event.kind == kind && event.source == Source::Harness);
        of_kind.filter_map(|event| event.data.get("child")?.as_str()?.parse::<RunId>().ok())
    };
    let ended: BTreeSet<RunId> = named(EventType::ChildEnded).collect();
    for child in named(EventType::ToolEvaluated).filter(|child| !ended.contains(child)) {
        let report = report_of(installation, child);
        let end = ChildEnd::of_report(child, report.as_ref());
        events.record(Source::Harness, end)?;
    }
    Ok(())
}

fn report_of(installation: &Installation, child: RunId) -> Option<Report> {
    let bytes =
        read_regular(&installation.home.run(child).bundle().join(layout::REPORT), report::MAX_BYTES).ok()?;
    report::parse(&bytes).ok().filter(|report| report.run_id == child)
}
