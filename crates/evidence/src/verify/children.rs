//! The check of child runs: each that began ended once, none ended that did not begin, and together they were charged what the
//! report says.

use std::collections::BTreeMap;

use herma_core::child::{ChildEnd, ChildrenUse};
use herma_core::event::Event;
use herma_core::{EventType, Report, RunId};
use serde_json::Value;

use super::pass::BundleContents;

/// The child runs seen in the events.
#[derive(Default)]
pub(super) struct ChildrenSeen {
    /// The started ones, and whether each has ended.
    begun: BTreeMap<RunId, bool>,
    used: Option<ChildrenUse>,
    problem: Option<String>,
}

impl ChildrenSeen {
    /// Takes an event of the harness.
    pub(super) fn event(&mut self, event: &Event) {
        let problem = match event.kind {
            EventType::ToolEvaluated => self.begins(event),
            EventType::ChildEnded => self.ends(event),
            _ => return,
        };
        if let Err(problem) = problem {
            self.problem.get_or_insert(problem);
        }
    }

    fn begins(&mut self, event: &Event) -> Result<(), String> {
        // A tool call, or an ask that came to no run.
        let Some(named) = event.data.get("child") else { return Ok(()) };
        let child = named.as_str().and_then(|named| named.parse().ok());
        let child: RunId = child.ok_or_else(|| format!("a child run is called {named}"))?;
        match self.begun.insert(child, false) {
            None => Ok(()),
            Some(_) => Err(format!("the child run {child} begins twice")),
        }
    }

    fn ends(&mut self, event: &Event) -> Result<(), String> {
        ChildrenUse::take(&mut self.used, event);
        let end: ChildEnd = serde_json::from_value(Value::Object(event.data.clone()))
            .map_err(|bad| format!("the end of a child run cannot be read: {bad}"))?;
        match self.begun.insert(end.child, true) {
            Some(false) => Ok(()),
            Some(true) => Err(format!("the child run {} ends twice", end.child)),
            None => Err(format!("the child run {} ends and never began", end.child)),
        }
    }

    /// Their sum agrees with the report.
    fn agrees(&self, said: Option<ChildrenUse>) -> Result<(), String> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        if let Some((child, _)) = self.begun.iter().find(|(_, ended)| !**ended) {
            return Err(format!("the child run {child} began, and nothing says how it ended"));
        }
        if self.used == said {
            return Ok(());
        }
        Err("the events add up to another number of child runs, or to another charge, than the report says"
            .to_owned())
    }
}

/// The report's statement about child runs agrees with the events of each.
pub(super) fn children(seen: &BundleContents, report: &Report) -> Result<(), String> {
    // Whether their absence is excused is what the check of the events says.
    seen.events.as_ref().map_or(Ok(()), |events| events.children().agrees(report.children))
}

#[cfg(test)]
mod tests {
    use herma_core::event::Source;
    use herma_core::{Digest, Timestamp};
    use serde_json::json;

    use super::*;

    const ONE: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
    const OTHER: &str = "01890a5d-ac96-774b-bcce-b302099a8058";

    fn agrees(events: &[(EventType, Value)]) -> Result<(), String> {
        let mut seen = ChildrenSeen::default();
        for (kind, data) in events {
            let (ts, source, prev) = (Timestamp::UNIX_EPOCH, Source::Harness, Digest::of(b""));
            let data = data.as_object().unwrap().clone();
            seen.event(&Event { seq: 0, ts, run_id: ONE.parse().unwrap(), kind: *kind, source, data, prev });
        }
        seen.agrees(seen.used)
    }

    fn begins(child: &str) -> (EventType, Value) {
        (EventType::ToolEvaluated, json!({ "child": child }))
    }

    fn ends(child: &str) -> (EventType, Value) {
        (EventType::ChildEnded, json!({ "child": child, "status": null, "charged": null }))
    }

    #[test]
    fn each_child_begins_once_and_ends_once() {
        let tool = (EventType::ToolEvaluated, json!({ "tool": "shell" }));
        assert_eq!(agrees(&[tool, begins(ONE), ends(ONE), begins(OTHER), ends(OTHER)]), Ok(()));
        for (wrong, events) in [
            ("nothing says how it ended", vec![begins(ONE), ends(ONE), begins(OTHER)]),
            ("begins twice", vec![begins(ONE), ends(ONE), begins(ONE), ends(ONE)]),
            ("ends twice", vec![begins(ONE), ends(ONE), ends(ONE)]),
            ("never began", vec![ends(ONE)]),
            ("never began", vec![ends(ONE), begins(ONE)]),
            ("is called", vec![begins("me")]),
            ("cannot be read", vec![begins(ONE), (EventType::ChildEnded, json!({}))]),
        ] {
            let found = agrees(&events).unwrap_err();
            assert!(found.contains(wrong), "{wrong}: {found}");
        }
    }
}
