//! Checks egress: the number of decisions, and their sum, agree with the report.

use herma_core::egress::EgressUse;
use herma_core::event::Event;
use herma_core::{EventType, Report};

use super::pass::BundleContents;

/// The totals in the last event of egress.
#[derive(Default)]
enum Totals {
    #[default]
    Missing,
    Unreadable(serde_json::Error),
    Read(EgressUse),
}

/// The decisions seen in the events.
#[derive(Default)]
pub(super) struct EgressSeen {
    /// The number of events. Their data is not checked: it may be withheld.
    decisions: u64,
    totals: Totals,
}

impl EgressSeen {
    pub(super) fn event(&mut self, event: &Event) {
        if event.kind != EventType::EgressDecided {
            return;
        }
        match EgressUse::from_data(&event.data) {
            Ok(Some(totals)) => self.totals = Totals::Read(totals),
            Ok(None) => self.decisions += 1,
            Err(error) => self.totals = Totals::Unreadable(error),
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
    match &found.totals {
        Totals::Missing if said.decisions() == 0 && (said.bytes_out, said.bytes_in) != (0, 0) => {
            Err("bytes passed through egress, and nothing was decided".to_owned())
        }
        Totals::Missing => Ok(()),
        Totals::Unreadable(error) => Err(format!("the totals of egress cannot be read: {error}")),
        Totals::Read(totals) if totals == said => Ok(()),
        Totals::Read(_) => Err("the last event of egress counts otherwise than the report".to_owned()),
    }
}
