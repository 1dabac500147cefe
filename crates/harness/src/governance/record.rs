//! What is written down of a tool call that was judged, and what is added up of all of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use herma_core::contract::Action;
use herma_core::tool::{CHILD_TOOL, ToolAction, ToolCall};
use herma_policy::{ChildRun, Decision};
use serde_json::{Value, json};

/// How much of one text an event holds.
const MOST_TEXT: usize = 64 << 10;

/// How herma came to know of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The agent told of it, whatever it did about it.
    Told,
    /// The agent asked in its dialogue with herma.
    Dialogue,
    /// The agent's hook asked.
    Hook,
}

impl Seen {
    /// Whether herma's answer reached the agent before the call.
    pub(crate) fn asked(self) -> bool {
        self != Self::Told
    }
}

/// What is added up.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) asked: u64,
    pub(crate) denied: u64,
    /// How many child runs were refused.
    pub(crate) refused: u64,
    /// What was attempted that is forbidden: that it was denied does not make it as if it had not been tried.
    pub(crate) attempted: BTreeSet<Action>,
    /// Why something could not be written down.
    pub(crate) unwritten: Option<String>,
}

/// The data of `tool.evaluated`. `allowed` is what an agent was told that asked.
pub(crate) fn data(
    call: &ToolCall,
    decision: &Decision,
    forbidden: &BTreeSet<Action>,
    seen: Seen,
    allowed: bool,
) -> Value {
    let mut data = json!({
        "tool": bounded(call.tool.clone()),
        "command": bounded(call.subject.clone()),
        "action": call.action,
        "actions": decision.does,
        "forbidden": forbidden,
    });
    if seen.asked() {
        data["permission"] = if allowed { "allowed" } else { "denied" }.into();
        data["rules"] = decision.rules.clone().into();
    }
    if seen == Seen::Hook {
        data["asked_by"] = "hook".into();
    }
    if seen.asked() && !allowed {
        data["reason"] = bounded(decision.reason.clone()).into();
    }
    data
}

/// The same for a child run that a herma inside asked for; `denied` says why there is none.
pub(crate) fn child(child: Option<&ChildRun>, rules: &[String], denied: Option<&str>) -> Value {
    let mut data = json!({
        "tool": CHILD_TOOL,
        "command": child.map_or("", |child| child.contract.as_str()),
        "action": ToolAction::Spawn,
        "actions": [],
        "forbidden": [],
        "permission": if denied.is_some() { "denied" } else { "allowed" },
        "rules": rules,
        "asked_by": "herma",
    });
    if let Some(child) = child {
        data["engine"] = json!(child.engine);
    }
    if let Some(why) = denied {
        data["reason"] = bounded(why.to_owned()).into();
    }
    data
}

/// A text as an event holds it.
pub(crate) fn bounded(mut text: String) -> String {
    if text.len() > MOST_TEXT {
        let more = text.len() - MOST_TEXT;
        text.truncate(text.floor_char_boundary(MOST_TEXT));
        let _ = write!(text, " [{more} bytes more]");
    }
    text
}
