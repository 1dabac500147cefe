//! Checks egress: the number of decisions, and their sum, agree with the report.

use herma_core::egress::EgressUse;
use herma_core::event::Event;
use herma_core::{EventType, Report};

use super::pass::BundleContents;

/// The decisions seen in the events.
#[derive(Default)]
pub(super) struct EgressSeen {
    /// The number of events. Their data is not checked: it may be withheld.
    decisions: u64,
    sums: Option<Result<EgressUse, String>>,
}

impl EgressSeen {
    pub(super) fn event(&mut self, event: &Event) {
        if event.kind != EventType::EgressDecided {
            return;
        }
        match EgressUse::from_data(&event.data) {
            Some(sums) => self.sums = Some(sums),
            None => self.decisions += 1,
        }
    }
}

/// The events of egress are those that the report counts.
pub(super) fn egress(seen: &BundleContents, report: &Report) -> Result<(), String> {
    // Whether their absence is excused is what the check of the events says.
    let Some(events) = &seen.events else { return Ok(()) };
    let found = events.egress();
    let none = EgressUse::default();
    let said = report.egress.as_ref().unwrap_or(&none);
    let with_an_event = said.decisions().saturating_sub(said.without_an_event);
    if found.decisions != with_an_event {
        return Err(format!(
            "{} decisions of egress have an event, the report says {with_an_event}",
            found.decisions
        ));
    }
    match &found.sums {
        None if said.decisions() == 0 && (said.bytes_out, said.bytes_in) != (0, 0) => {
            Err("bytes passed through egress, and nothing was decided".to_owned())
        }
        None => Ok(()),
        Some(Err(bad)) => Err(format!("what egress comes to cannot be read: {bad}")),
        Some(Ok(sums)) if sums == said => Ok(()),
        Some(Ok(_)) => Err("the last event of egress counts otherwise than the report".to_owned()),
    }
}
